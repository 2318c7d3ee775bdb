"""Vim's keys in the prompt."""

from __future__ import annotations

from textual.widget import Widget

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.shared.requests.turns import SendMessage
from tests.tui.conftest import Chat, ChatRunner

VIM = TuiSettings(reduced_motion=True, sidebar=False, vim=True)

SIGNS = {" ": "space", "$": "dollar_sign", "^": "circumflex_accent", "~": "tilde"}


def keys(typed: str) -> list[str]:
    """Return names of keys: a letter each, and names between angle brackets."""
    found, rest = [], typed
    while rest:
        if rest[0] == "<":
            name, _, rest = rest[1:].partition(">")
            found.append(name)
        else:
            found.append(
                {" ": "space", "$": "dollar_sign", "^": "circumflex_accent", "~": "tilde"}.get(rest[0], rest[0])
            )
            rest = rest[1:]
    return found


CASES = [
    ("one two three", "0dw", "two three"),
    ("one two three", "0wd$", "one "),
    ("one two three", "0cwONE<escape>", "ONE two three"),
    ("one two three", "bdb", "one three"),
    ("one two three", "0wdiw", "one  three"),
    ("one two three", "0wdaw", "one three"),
    ("one two three", "0d2w", "three"),
    ("one two three", "02x", "e two three"),
    ("one two three", "0dtt", "two three"),
    ("one two three", "$dF ", "one twoe"),
    ("one two three", "0rX", "Xne two three"),
    ("one two three", "0D", ""),
    ("one two three", "0wC2<escape>", "one 2"),
    ("one two three", "0dwu", "one two three"),
    ("one two three", "0dwu<ctrl+r>", "two three"),
    ("one two three", "0dwP", "one two three"),
    ("one two three", "0yw$p", "one two threeone "),
    ("one two three", "0~", "One two three"),
    ("one two three", "Ix <escape>", "x one two three"),
    ("one two three", "0ea!<escape>", "one! two three"),
    ("one\ntwo\nthree", "ggdd", "two\nthree"),
    ("one\ntwo\nthree", "dd", "one\ntwo"),
    ("one\ntwo\nthree", "ggddp", "two\none\nthree"),
    ("one\ntwo\nthree", "gg2yyGp", "one\ntwo\nthree\none\ntwo"),
    ("one\ntwo\nthree", "2Gcc2<escape>", "one\n2\nthree"),
    ("one\ntwo\nthree", "ggdj", "three"),
    ("one\ntwo\nthree", "ggoand<escape>", "one\nand\ntwo\nthree"),
    ("one\ntwo\nthree", "Oand<escape>", "one\ntwo\nand\nthree"),
    ("one", "0qzz", "one"),
]


async def test_commands(run_chat: ChatRunner) -> None:
    async with run_chat(tui=VIM) as chat:
        prompt = chat.app.chat.prompt
        for text, typed, expected in CASES:
            prompt.empty()
            prompt.put_whole(text)
            await chat.press("escape", *keys(typed))
            assert prompt.text == expected, (text, typed)


def normal(chat: Chat) -> bool:
    vim = chat.app.chat.prompt.vim
    return vim is not None and vim.mode == "normal"


async def test_enter_sends_in_both_modes_and_escape_still_stops(run_chat: ChatRunner) -> None:
    async with run_chat(tui=VIM) as chat:
        await chat.ready()
        prompt = chat.app.chat.prompt
        row = prompt.parent
        assert isinstance(row, Widget)
        await chat.press(*keys("Hello<escape>"))
        assert normal(chat)
        assert row.border_subtitle == "normal"
        await chat.press("enter")
        await chat.until(lambda: any(isinstance(request, SendMessage) for request in chat.engine.requests))
        assert not normal(chat)
        assert row.border_subtitle == ""
        await chat.press("escape")
        assert normal(chat)
        assert prompt.text == ""


async def test_it_is_switched_on_and_off(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        prompt = chat.app.chat.prompt
        assert prompt.vim is None
        await chat.type("/vim")
        await chat.press("enter")
        await chat.until(lambda: prompt.vim is not None)
        await chat.type("/vim")
        await chat.press("enter")
        await chat.until(lambda: prompt.vim is None)
