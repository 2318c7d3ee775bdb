"""Formulas in answers: what becomes Unicode, and above all what does not."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.tui.transcript.markdown import render
from ragforge_tui.tui.transcript.stream import StreamedText
from tests.tui.transcript.samples import DARK, text_of


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"$t_n = t_0 \cdot 2^n$", "tₙ = t₀ · 2ⁿ"),
        (r"$\sum_{i=0}^{n} x_i \times \alpha$", "∑ᵢ₌₀ⁿ xᵢ × α"),
        (r"$\frac{a+b}{2} \le \sqrt{x^2}$", "(a+b)/2 ≤ √(x²)"),
        (r"$e^{-x^2}$ and $w_b$", "e^(−x²) and w_b"),
        (r"$\mathbb{R}^n \to \mathbb{R}$", "ℝⁿ → ℝ"),
        (r"$P(A \mid B)$, $\text{if } x > 0$", "P(A ∣ B), if x > 0"),
        (r"$\left( \frac{1}{2} \right)^k \log n$", "(1/2)ᵏ log n"),
        (r"\( O(n \log n) \)", "O(n log n)"),
        (r"$n$, $2n + 1$, **$x_1$**, ($a_i$)", "n, 2n + 1, x₁, (aᵢ)"),
        (r"$90^\circ$, $\lambda^\top$, $\hat{x}$", "90°, λᵀ, x̂"),
        (r"| $\alpha$ |", "| α |"),
    ],
)
def test_formulas_are_shown_in_unicode(source: str, shown: str) -> None:
    assert text_of(render(source, 100, DARK)) == [shown]


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $6, or 5$ to 6$, or $5 - 6$, or $5k-10k$.",
        "Set $HOME/$NAME, $PATH:$HOME and $foo_bar; $FOO_BAR$ is a template, $$ the process, $$PID$$ none.",
        "A pattern ^a.$|^b.$ and echo $x, then $y.",
        r"$\begin{matrix}a & b\end{matrix}$ and $\unknown x$",
        "${x_1} has a bracket too many}$",
        "$" + "{" * 200 + "x^2" + "}" * 200 + "$",
        "$" + "^" * 300 + "x$",
    ],
)
def test_what_is_no_formula_or_has_no_such_form_stays(text: str) -> None:
    assert "".join(text_of(render(text, 2_000, DARK))) == text


def test_a_formula_without_such_a_form_keeps_its_backslashes() -> None:
    rows = r"\begin{aligned} a &= b \\ c &= d_1 \,dx \end{aligned}"
    for formula in (rf"$${rows}$$", rf"\[{rows}\]"):
        assert "".join(text_of(render(formula, 200, DARK))) == formula


def test_escaped_brackets_and_code_stay() -> None:
    text = r"arr\[0\], \[x\], file\(s\), \(no list\), `$x_1$`, \$5^2$"
    assert text_of(render(text, 100, DARK)) == ["arr[0], [x], file(s), (no list), $x_1$, $5^2$"]


def test_a_formula_of_its_own_has_a_line_of_its_own() -> None:
    for opening, closing in (("$$", "$$"), ("\\[", "\\]")):
        text = f"The wait is\n{opening}\nt_n = 2^n\n{closing}\nand grows."
        assert text_of(render(text, 60, DARK)) == ["The wait is", "tₙ = 2ⁿ", "and grows."]


def test_formulas_are_read_out_as_written_in_plain_mode() -> None:
    plain = msgspec.structs.replace(DARK, plain=True)
    assert text_of(render("so $t_n = 2^n$.", 60, plain)) == ["so $t_n = 2^n$."]


@pytest.mark.parametrize("formula", [r"$t_n = t_0 \cdot 2^n$", r"\(t_n = t_0 \cdot 2^n\)"])
def test_a_formula_that_streams_in_a_long_paragraph_ends_as_drawn_at_once(formula: str) -> None:
    text = f"Words before it, and {formula} in the middle. " * 60
    for size in (7, 23, 90):
        stream = StreamedText(70, DARK)
        for at in range(0, len(text), size):
            stream.add(text[at : at + size])
            stream.advance()
        drawn = text_of(stream.lines)
        stream.finish()
        assert drawn == text_of(stream.lines) == text_of(render(text, 70, DARK))
