"""The HTML export: everything of the conversation is in it, and nothing foreign acts in it or loads anything."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from ragforge_tui.export.html import to_html
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport
from ragforge_tui.shared.finding_records import FindingState, KeptFinding
from ragforge_tui.shared.records import (
    Conversation,
    FileAccess,
    Finding,
    Insight,
    Message,
    Summary,
    ToolCall,
    ToolResult,
    Topic,
    Turn,
)
from tests.support.key_shapes import GITHUB_KEY, filled

MOMENT = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
MEAN = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![dot](https://example.org/dot.png)",
    "![x](javascript:alert(1))",
    "[a](javascript:alert(1))",
    "[a](file:///etc/passwd)",
    "[a](data:text/html,x)",
    "[a](https://example.org)",
    "</details></section>",
    "</pre>",
    "</style>",
    '"><b>',
    "' onload='x",
    "```html\n<script>\n```",
    "```diff\n+<b>\n-<i>\n```",
    "<!--",
    "\x1b[2J",
    "&lt;",
    "\n\n",
    "# ",
    "text",
    "é日",
]
TEXTS = st.lists(st.sampled_from(MEAN), max_size=8).map("".join)
STATES: tuple[FindingState, ...] = ("valid", "replaced")
VOID = {"meta", "br", "hr"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "aria-label", "id", "href", "start", "style"}


class Page(HTMLParser):
    """What a browser would see: elements, their attributes, and the text outside of tags."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(document)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data


def call(name: str, arguments: dict[str, str], result: dict[str, object], **more: object) -> ToolCall:
    stored = ToolResult(
        uuid="r",
        tool_call_id="t",
        success=True,
        result=msgspec.json.encode(result).decode(),
        timestamp=MOMENT,
    )
    fields = {"uuid": "t", "message_id": "m2", "tool_name": name, "timestamp": MOMENT, "success": True}
    fields |= {"arguments": msgspec.json.encode(arguments).decode(), "duration_ms": 12, "result": stored, **more}
    return msgspec.convert(fields, ToolCall, from_attributes=True)


def exported(text: str) -> ConversationExport:
    """A conversation in which everything that may be foreign is `text`."""
    calls = [
        call(text, {"path": text, "reason": text}, {"text": text}, files=[FileAccess(path=text, access="edit")]),
        call("edit_file", {"path": "a.py"}, {"text": "done", "diff": f"--- a/a.py\n+++ b/a.py\n-old\n+{text}\n"}),
    ]
    summary = Summary(
        uuid="s",
        conversation_id="c",
        level=1,
        title=text,
        conversation_summary=text,
        actions_summary=text,
        key_findings=[Finding(text=text, kind="decision", turns=[1])],
        start_turn_index=1,
        end_turn_index=1,
        turn_count=1,
        created_at=MOMENT,
    )
    insight = Insight(uuid="i", conversation_id="c", main_topic=text, created_at=MOMENT)
    message = {"conversation_id": "c", "turn_index": 1, "timestamp": MOMENT}
    reply = {"uuid": "m2", "position": 1, "role": "assistant", "content": text, "reasoning": text, "persona": text}
    return ConversationExport(
        conversation=Conversation(
            uuid="c",
            title=text,
            summary=text,
            workspace=text,
            model=text,
            tags=[text],
            created_at=MOMENT,
            updated_at=MOMENT,
        ),
        turns=[
            Turn(
                turn_index=1,
                messages=[
                    Message(uuid="m1", role="user", content=text, **message),
                    msgspec.convert(
                        {**message, **reply, "state": "failed", "error": text, "tool_calls": calls},
                        Message,
                        from_attributes=True,
                    ),
                ],
            )
        ],
        memory=MemoryExport(
            summaries=[summary],
            insight=insight,
            findings=[
                KeptFinding(
                    uuid=state,
                    kind="decision",
                    text=text,
                    state=state,
                    scope="folder",
                    workspace="/w",
                    conversation_id="c",
                    turn_index=1,
                    since=MOMENT,
                    made_by="rule",
                    closed_by=text,
                )
                for state in STATES
            ],
            topics=[Topic(uuid="t", name=text, description=text, created_at=MOMENT)],
        ),
    )


@given(TEXTS)
@example("<script>alert(1)</script>")
@example("![dot](https://example.org/dot.png)")
@example("[a](javascript:alert(1))")
def test_foreign_text_stays_text(text: str) -> None:
    page = Page(to_html(exported(text)))
    assert page.attributes <= ATTRIBUTES
    assert not {"script", "img", "iframe", "link", "object", "base", "form"} & set(page.tags)
    assert all(link.startswith(("#t", "http://", "https://", "mailto:")) for link in page.links)
    assert "\x1b" not in page.text


def test_everything_is_there() -> None:
    document = to_html(exported("Look **here**"))
    page = Page(document)
    assert document.startswith("<!doctype html>")
    assert "<strong>here</strong>" in document
    assert page.text.count("Look") >= 12
    assert '<section class="turn" id="t1">' in document
    assert '<span class="add">+Look **here**</span>' in document
    assert '<span class="del">-old</span>' in document
    assert "failed: Look" in page.text
    assert "Decided:" in page.text
    assert document.count("<del>") == 1


def test_the_tree_nests_summaries_in_order() -> None:
    export = exported("x")
    first, second = (
        msgspec.structs.replace(
            export.memory.summaries[0],
            uuid=f"s{n}",
            title=f"Part {n}",
            start_turn_index=n,
            end_turn_index=n,
            parent="s",
        )
        for n in (1, 2)
    )
    whole = msgspec.structs.replace(
        export.memory.summaries[0], title="Whole", level=2, end_turn_index=2, parent_summaries=["s1", "s2"]
    )
    export.memory.summaries = [second, whole, first]
    page = Page(to_html(export))
    places = [page.text.index(title) for title in ("Whole", "Part 1", "Part 2")]
    assert places == sorted(places)


def test_secrets_are_masked_and_replaced_replies_left_out() -> None:
    key = filled(GITHUB_KEY)
    export = exported(f"```python\nkey = '{key}'\n```")
    export.turns[0].messages.append(
        Message(uuid="m3", conversation_id="c", role="assistant", content="Gone", state="superseded", timestamp=MOMENT)
    )
    document = to_html(export)
    assert key not in document
    assert "…[masked]" in document
    assert "Gone" not in document


def test_code_is_highlighted() -> None:
    assert '<span class="k">def</span>' in to_html(exported("```python\ndef f(): pass\n```"))
