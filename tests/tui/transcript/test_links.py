"""Links of messages: what may be opened, where it leads, and what opens it."""

from __future__ import annotations

from typing import Any

import pytest

from ragforge_tui.tui.commands.link_commands import opener
from ragforge_tui.tui.transcript.links import (
    META,
    Link,
    cited_turn,
    cited_turns,
    file_path,
    linked_runs,
    trimmed,
    web_address,
)
from ragforge_tui.tui.transcript.markdown import links_of, render
from tests.tui.transcript.samples import DARK


@pytest.mark.parametrize(
    ("href", "address"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"),
        ("mailto:okapi@example.org", "mailto:okapi@example.org"),
        ("https://ex\u0430mple.org/", "https://xn--exmple-4nf.org/"),
        ("https://example.org/ü b", ""),
        ("https://example.org/\u00fc", "https://example.org/%C3%BC"),
        ("https://good.org@evil.org/", ""),
        ("javascript:alert(1)", ""),
        ("file:///etc/passwd", ""),
        ("https://", ""),
        ("https://exa\x1b]8;;x\x07mple.org", "https://example.org"),
        ("https://example.org/" + "a" * 3_000, ""),
        ("https://[broken", ""),
        ("https://evil.org\\.good.org/", ""),
        ("https://good.org%2f.evil.org/", ""),
        ("https://good.org;$(id)/", ""),
        ("https://good.org/$(id)'", "https://good.org/%24(id)%27"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("https://example.org:99999/", ""),
    ],
)
def test_addresses_that_may_be_opened(href: str, address: str) -> None:
    assert web_address(href) == address


@pytest.mark.parametrize(
    ("href", "path"),
    [
        ("src/app.py", "src/app.py"),
        ("./src/a%20b.py#L12", "src/a b.py"),
        ("src/app.py:12", "src/app.py"),
        ("/etc/passwd", ""),
        ("~/x", ""),
        ("data:text/html,x", ""),
        ("#part", ""),
    ],
)
def test_paths(href: str, path: str) -> None:
    assert file_path(href) == path


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("As agreed [t12].", ["turn:12:"]),
        ("See [t3, t5] and [t7-t9]", ["turn:3:", "turn:5:", "turn:7:", "turn:9:"]),
        ("From [Wrapping kit · t12]", ["turn:12:Wrapping kit"]),
        ("From [5fa1c0de · t2]", ["turn:2:5fa1c0de"]),
        ("in “naturalsize” · t3, then", ["turn:3:naturalsize"]),
        ('T: t5 of "kit"', ["turn:5:kit"]),
        ("[t12](https://a.org) [x] t12 [total] [to do · now]", []),
        ("at12 of “a”", []),
    ],
)
def test_cited_turns(text: str, targets: list[str]) -> None:
    assert [target for _, _, target in cited_turns(text)] == targets
    opened = [style.meta.get(META) for _, style in linked_runs(text, DARK.text, DARK.link) if style.meta.get(META)]
    assert [one for one in opened if str(one).startswith("turn:")] == targets


def test_a_cited_turn_in_code_is_no_link() -> None:
    assert [link.target for link in links_of("`[t1]` and [t2]\n\n    [t3]\n", markdown=True)] == ["turn:2:"]
    assert cited_turn("turn:2:a:b") == ("a:b", 2)
    assert cited_turn("https://a.org/turn:2:") is None


def test_the_links_of_an_answer() -> None:
    text = (
        "See [the docs](https://example.org/docs), https://bare.org/x_y_z. and `https://code.org`\n\n"
        "- ![shot](shot.png) and [bad](javascript:x) (https://wiki.org/A_(b))\n\n```\nhttps://fence.org\n```\n"
        "[the docs again](https://example.org/docs)"
    )
    assert links_of(text, markdown=True) == [
        Link("web", "https://example.org/docs", "the docs"),
        Link("web", "https://bare.org/x_y_z", ""),
        Link("file", "shot.png", "shot"),
        Link("web", "https://wiki.org/A_(b)", ""),
    ]
    assert [link.target for link in links_of("*x* https://a.org, [b](c.md)", markdown=False)] == ["https://a.org"]


def test_a_label_never_hides_where_it_leads() -> None:
    (line,) = render("[https://good.org](https://evil.org/x)", 80, DARK)
    assert line.text == "https://good.org (https://evil.org/x)"
    targets = {segment.style.meta.get(META) for segment in line.strip if segment.style and segment.style.meta}
    assert targets == {"https://evil.org/x"}
    assert {segment.style.link for segment in line.strip if segment.style and segment.style.link} == targets


def test_only_safe_addresses_reach_the_terminal() -> None:
    (line,) = render("[x](javascript:1) [y](<https://a.org/\x1b[31m>) [z](file.md)", 120, DARK)
    links = {segment.style.link for segment in line.strip if segment.style and segment.style.link}
    assert links <= {"https://a.org/"}


def test_keys_and_clicks_that_open_an_address() -> None:
    def here(name: str) -> str:
        return f"/usr/bin/{name}"

    assert opener({"DISPLAY": ":0"}, "linux", here) == "/usr/bin/xdg-open"
    assert opener({}, "darwin", here) == "/usr/bin/open"
    assert opener({"WSL_DISTRO_NAME": "x"}, "linux", here) == "/usr/bin/wslview"
    assert not opener({}, "linux", here)
    assert not opener({"DISPLAY": ":0", "SSH_CONNECTION": "1"}, "linux", here)
    assert not opener({"SSH_TTY": "1"}, "darwin", here)


def test_a_look_alike_host_in_running_text_is_written_out_plainly() -> None:
    runs = linked_runs("see https://ex\u0430mple.org/x now", DARK.text, DARK.link)
    assert "".join(text for text, _ in runs) == ("see https://ex\u0430mple.org/x (https://xn--exmple-4nf.org/x) now")


@pytest.mark.parametrize(("found", "kept"), [("a)).", "a"), ("a_(b)),", "a_(b)"), ("((a)!)", "((a)!)"), (").", "")])
def test_the_end_of_the_sentence_is_no_part_of_an_address(found: str, kept: str) -> None:
    assert trimmed(found) == kept


def test_an_address_followed_by_very_many_signs_is_looked_through_once() -> None:
    class Counted(str):
        counts = 0

        def count(self, *args: Any) -> int:
            Counted.counts += 1
            return str.count(self, *args)

        def __getitem__(self, key: Any) -> Counted:
            return Counted(str.__getitem__(self, key))

    assert trimmed(Counted("a" + ")" * 1_000)) == "a"
    assert Counted.counts == 2
