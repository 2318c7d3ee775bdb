"""The Markdown export: what the memory made is in it, and no foreign text can change its structure."""

from __future__ import annotations

import html
from datetime import UTC, datetime

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragforge_tui.export import json as document
from ragforge_tui.export import to_json, to_markdown
from ragforge_tui.export.markdown import code_block, escaped_block, escaped_line
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport
from ragforge_tui.shared.records import (
    Conversation,
    FileAccess,
    Finding,
    Message,
    Summary,
    ToolCall,
    ToolResult,
    Topic,
    Turn,
)

MOMENT = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
MEAN = [
    "</details>",
    "```",
    "~~~~",
    "<!--",
    "<script>",
    "<![CDATA[",
    "<?php",
    "# Title",
    "## Turn 99",
    "Title\n===",
    "[t1]: http://example.org",
    "- ",
    "> ",
    "    ",
    "\n",
    "\n\n",
    "`",
    "*",
    "_",
    "\\",
    "<b>",
    "<",
    "1. ",
    "---",
    "&lt;",
    "[a](b)",
    "text",
    "\x1b[2J",
    "\r",
    "\t",
    "é日",
]
TEXTS = st.lists(st.sampled_from(MEAN), max_size=8).map("".join)
SHAPE = MarkdownIt("commonmark")


def exported(text: str) -> ConversationExport:
    """A conversation in which everything that may be foreign is `text`."""
    call = ToolCall(
        uuid="t",
        message_id="m1",
        tool_name=text,
        arguments=msgspec.json.encode({"path": text}).decode(),
        timestamp=MOMENT,
        duration_ms=3,
        success=True,
        result=ToolResult(
            uuid="r",
            tool_call_id="t",
            success=True,
            result=msgspec.json.encode({"text": text}).decode(),
            timestamp=MOMENT,
        ),
        files=[FileAccess(path=text or "x", access="write")],
    )
    base = {"conversation_id": "c", "turn_index": 1, "timestamp": MOMENT}
    messages = [
        Message(uuid="m0", role="user", content=text, **base),
        Message(
            uuid="m1",
            role="assistant",
            position=1,
            content=text,
            reasoning=text,
            persona=text,
            tool_calls=[call],
            **base,
        ),
        Message(
            uuid="m2",
            role="assistant",
            position=2,
            content="Last words.",
            state="failed",
            error=text,
            persona=text,
            **base,
        ),
    ]
    below = Summary(
        uuid="s1",
        conversation_id="c",
        level=1,
        title=text,
        conversation_summary=text,
        actions_summary=text,
        key_findings=[Finding(text=text, turns=[1], kind="decision")],
        start_turn_index=1,
        end_turn_index=1,
        turn_count=1,
        parent="s2",
        created_at=MOMENT,
    )
    above = msgspec.structs.replace(below, uuid="s2", level=2, parent="", parent_summaries=["s1"])
    return ConversationExport(
        conversation=Conversation(
            uuid="c", title=text, summary=text, tags=[text], model=text, created_at=MOMENT, updated_at=MOMENT
        ),
        turns=[Turn(turn_index=1, messages=messages)],
        memory=MemoryExport(
            summaries=[below, above],
            topics=[Topic(uuid="p", name=text or "x", description=text, created_at=MOMENT)],
        ),
    )


def outline(text: str) -> list[tuple[str, str]]:
    """The headings of the levels the document uses, wherever they stand outside of quotes, and its tags."""
    tokens = SHAPE.parse(text)
    found = []
    quoted = 0
    for number, token in enumerate(tokens):
        quoted += token.type == "blockquote_open"
        quoted -= token.type == "blockquote_close"
        if token.type == "heading_open" and token.tag in ("h1", "h2") and not quoted:
            found.append((token.tag, tokens[number + 1].content))
        if token.type == "html_block":
            found.append(("html", token.content.split(">")[0]))
    return found


@given(TEXTS)
@example("<!--\n\n```\n</details>")
@example("- ```\n  # x")
@example("    </details>")
def test_foreign_text_cannot_change_the_structure(text: str) -> None:
    parts = outline(to_markdown(exported(text)))
    headings = [part for part in parts if part[0] != "html"]
    assert [tag for tag, _ in headings] == ["h1", "h2", "h2", "h2", "h2"]
    assert [content for _, content in headings[1:4]] == ["Summaries", "Topics", "Files"]
    assert headings[4][1] == "Turn 1 · 2026-03-04 05:06 UTC"
    # A text of spaces is no reasoning and no result, and is not folded.
    tags = [content for tag, content in parts if tag == "html"]
    assert set(tags) <= {"<details", "</details"}
    assert tags.count("<details") == tags.count("</details") <= 2
    assert to_markdown(exported(text)).endswith("*\n")


@given(TEXTS)
def test_a_contained_text_ends_where_it_ends(text: str) -> None:
    environment: dict[str, object] = {}
    tokens = SHAPE.parse(f"{escaped_block(text)}\n\nafter", environment)
    assert (tokens[-2].content, tokens[-2].level) == ("after", 1)
    assert not environment.get("references")
    assert not [token for token in tokens if token.type == "html_block"]


@given(st.text(max_size=60))
def test_a_line_reads_as_it_was_written(text: str) -> None:
    line = escaped_line(text)
    assert "\n" not in line
    shown = html.unescape(SHAPE.render(f"- x{line}").split("<li>")[1].split("</li>")[0]).strip()
    assert shown == "x" + " ".join(line_of(text).split())


def line_of(text: str) -> str:
    from ragforge_tui.shared.sanitize import plain_text

    return plain_text(text)


@given(st.text("`~ab\n", max_size=30))
def test_a_fence_holds_what_is_in_it(text: str) -> None:
    (token,) = SHAPE.parse(code_block(text))
    assert token.type == "fence"
    assert token.content == text + "\n"


def test_failed_tests_are_in_it() -> None:
    message = Message(
        uuid="a",
        conversation_id="c",
        turn_index=1,
        position=1,
        role="assistant",
        content="Done.",
        failed_tests="1 failed, 673 passed",
        timestamp=MOMENT,
    )
    record = Conversation(uuid="c", created_at=MOMENT, updated_at=MOMENT)
    text = to_markdown(ConversationExport(conversation=record, turns=[Turn(turn_index=1, messages=[message])]))
    assert "*The last test run: 1 failed, 673 passed*" in text


def test_plain_answers_stay_as_they_are() -> None:
    answer = "Use **this**:\n\n```python\nx = '<b>'\n```\n\n- one\n- two\n\n### Details\n\n`</details>` [t3]"
    assert escaped_block(answer) == answer
    assert escaped_line("src/my_file_name.py [t3] a < b & c") == "src/my_file_name.py [t3] a < b & c"
    assert escaped_block("word " * 100_000).startswith("```\n")


def test_the_tree_topics_and_files_are_given() -> None:
    text = to_markdown(exported("app.py"))
    assert (
        "## Summaries\n\n"
        "- **L2** · turn 1 · **app.py** · app.py\n  - Done: app.py\n  - Decided: app.py (t1)\n"
        "  - **L1** · turn 1 · **app.py** · app.py\n    - Done: app.py\n    - Decided: app.py (t1)\n\n"
        "## Topics\n\n- app.py: app.py\n\n"
        "## Files\n\nModified:\n\n- app.py (app.py, t1)\n\n"
        "## Turn 1"
    ) in text


@given(TEXTS)
def test_the_pieces_of_the_json_are_the_whole(text: str) -> None:
    export = exported(text)
    pieces = [document.head(export.conversation)]
    for name in document.LISTS:
        records = getattr(export, name)
        pieces += [document.list_begin(name), *document.items(records, first=True)]
        pieces.append(document.list_end(empty=not records))
    assert b"".join((*pieces, document.tail(export.memory))) == to_json(export)


def test_commits_of_a_call_are_listed_below_it() -> None:
    commit = {"hash": "a" * 40, "subject": "Fix *it*", "committed_at": "2026-03-04T05:06:00Z"}
    result = msgspec.json.encode({"text": "ok", "commits": [commit]}).decode()
    call = ToolCall(uuid="t", message_id="a", tool_name="run_command", arguments="{}", timestamp=MOMENT)
    call.result = ToolResult(uuid="r", tool_call_id="t", success=True, result=result, timestamp=MOMENT)
    reply = Message(uuid="a", conversation_id="c", role="assistant", timestamp=MOMENT, tool_calls=[call])
    export = ConversationExport(
        conversation=Conversation(uuid="c", created_at=MOMENT, updated_at=MOMENT),
        turns=[Turn(turn_index=1, messages=[reply])],
    )
    assert "- commit aaaaaaa Fix \\*it\\*" in to_markdown(export)
