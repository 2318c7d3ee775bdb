"""The code section of a context: what fits, with text or without, and nothing that is sent anyway."""

from __future__ import annotations

from ragforge_tui.llm import count_tokens
from ragforge_tui.memory.context import ContextBuilder, ContextInputs, SystemPart
from ragforge_tui.memory.context.code import code_section
from ragforge_tui.memory.context.sections import CODE_SECTION
from ragforge_tui.settings.schema import MemorySettings
from ragforge_tui.shared.code_records import FoundCode
from tests.support.fake_code import SCOPES, scope


def test_the_best_two_come_with_their_text_and_the_others_as_a_line() -> None:
    section = code_section(SCOPES[:4], 1_000, [])
    assert [item.text.count("```") for item in section.items] == [2, 2, 0, 0]
    assert section.items[0].text.startswith("src/session.py:41-48 method Session.send")
    assert (section.items[0].kind, section.items[0].source) == ("code", "c1")
    assert section.items[2].cut == len(SCOPES[2].text)


def test_it_keeps_to_its_share() -> None:
    for share in (0, 20, 60, 90, 200):
        section = code_section(SCOPES, share, [])
        assert section.tokens <= share
        assert section.left_out == len(SCOPES) - len(section.items)
        assert sum(count_tokens(item.text) for item in section.items) <= section.tokens


def test_a_text_cannot_close_its_fence_and_shows_its_control_characters() -> None:
    hostile = scope("h", "h", "function", "h.py", 1, 3, text="```\n\x1b[31mred\n````")
    [item] = code_section([hostile], 500, []).items
    assert item.text.splitlines()[1] == "`````python"
    assert "\x1b" not in item.text


def test_code_shown_by_a_result_is_left_out() -> None:
    numbered = "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(SCOPES[0].text.splitlines(), 41))
    section = code_section(SCOPES[:3], 1_000, [{"role": "tool", "content": f"src/session.py\n{numbered}"}])
    assert [item.source for item in section.items] == ["c2", "c3"]


async def built(find: object, text: str = "How does Session.send retry?") -> list[str]:
    """The names of the sections of a context."""
    inputs = ContextInputs(
        conversation_id="c",
        turn_index=1,
        text=text,
        model="m",
        window=32_000,
        system=[SystemPart(kind="system", name="x", text="Instructions.")],
        turns=[],
    )
    context = await ContextBuilder(MemorySettings()).build(inputs, None, find)  # type: ignore[arg-type]
    return [section.name for section in context.sections if section.items]


async def test_the_section_is_there_only_if_something_was_found() -> None:
    async def some(_: str) -> FoundCode:
        return FoundCode(scopes=SCOPES[:1])

    async def none(_: str) -> FoundCode:
        return FoundCode()

    assert CODE_SECTION in await built(some)
    assert CODE_SECTION not in await built(none)
    assert CODE_SECTION not in await built(None)
