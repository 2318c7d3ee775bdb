"""Conversations as files."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from ragforge_tui.cli.output import width
from ragforge_tui.export import file_name, from_json, readable_name, safe_json, to_json, to_markdown
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import Conversation, Message, ToolCall, ToolResult, Turn
from ragforge_tui.shared.tool_calls import main_argument
from tests.support.key_shapes import GITHUB_KEY, filled

MOMENT = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


def call(name: str, arguments: str, *, success: bool | None, text: str = "", took: int | None = 12) -> ToolCall:
    result = None
    if success is not None:
        body = msgspec.json.encode({"text": text}).decode()
        result = ToolResult(uuid=f"r-{name}", tool_call_id=name, success=success, result=body, timestamp=MOMENT)
    return ToolCall(
        uuid=name,
        message_id="m2",
        tool_name=name,
        arguments=arguments,
        timestamp=MOMENT,
        duration_ms=took,
        success=success,
        result=result,
    )


def message(uuid: str, position: int, role: str, content: str, **more: object) -> Message:
    fields = {"uuid": uuid, "conversation_id": "c", "turn_index": 1, "position": position, "role": role}
    return msgspec.convert({**fields, "content": content, "timestamp": MOMENT, **more}, Message)


@pytest.fixture
def exported() -> ConversationExport:
    calls = [
        call("read_file", '{"path": "a<b>.md"}', success=True, text="```\ncode\n```"),
        call("run_command", '{"command": "false"}', success=False, text="exit 1"),
        call("grep_files", "not JSON", success=None, took=None),
    ]
    turn = Turn(
        turn_index=1,
        messages=[
            message("m1", 0, "user", "Look\x1b[31m here"),
            message("m2", 1, "assistant", "", reasoning="Let me see.", persona="Ada", tool_calls=calls),
            message("m3", 2, "assistant", "Replaced.", state="superseded"),
            message("m4", 3, "assistant", "Half", state="interrupted", persona="Ada"),
        ],
    )
    conversation = Conversation(uuid="c", title="A *title*\nof two", created_at=MOMENT, updated_at=MOMENT)
    return ConversationExport(conversation=conversation, turns=[turn])


def test_markdown(exported: ConversationExport) -> None:
    text = to_markdown(exported)
    assert text.startswith("# A \\*title\\* of two\n")
    assert "## Turn 1 · 2026-03-04 05:06 UTC" in text
    assert "**You**\n\nLook here\n" in text
    assert "<details><summary>Reasoning</summary>\n\nLet me see.\n\n</details>" in text
    assert "<summary>✓ <code>read_file</code> a&lt;b&gt;.md · 12 ms</summary>\n\n````\n```\ncode\n```\n````" in text
    assert "<summary>✗ <code>run_command</code> false · 12 ms</summary>" in text
    assert "- ? <code>grep_files</code> · unknown outcome" in text
    assert text.count("**Ada**") == 1
    assert "Replaced." not in text
    assert text.endswith("Half\n\n*interrupted*\n")


def test_json_round_trip(exported: ConversationExport) -> None:
    assert from_json(to_json(exported)) == exported
    assert from_json(safe_json(to_json(exported))) == exported


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": "other"}', b"\xff", b"[" * 100_000])
def test_files_that_are_not_exports(data: bytes) -> None:
    with pytest.raises(RagforgeError, match="not an exported conversation"):
        from_json(data)


def test_an_export_of_a_newer_program(exported: ConversationExport) -> None:
    exported.version = 99
    with pytest.raises(RagforgeError, match="newer"):
        from_json(to_json(exported))


def test_names() -> None:
    assert file_name("x", "json") == "conv-x.json"
    assert file_name("x", "markdown") == "conv-x.md"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Why: retries/double *turns*?", "Why-retries-double-turns-0000abcd.md"),
        ("../../etc", "etc-0000abcd.md"),
        ("Größe \u202e\x1b[31m", "Größe-31m-0000abcd.md"),
        ("…", "conversation-0000abcd.md"),
        ("", "conversation-0000abcd.md"),
        ("a" * 200, f"{'a' * 60}-0000abcd.md"),
    ],
)
def test_a_name_for_people_has_the_words_of_the_title(title: str, name: str) -> None:
    assert readable_name(title, "0000abcd-1111") == name


@pytest.mark.parametrize(
    "uuid", ["", ".", "..", "a/b", "x/../../victim", "-rf", "a\\b", "x\n", "nul\0x", "é", "z" * 65]
)
def test_no_file_is_named_after_what_is_no_plain_name(uuid: str) -> None:
    with pytest.raises(RagforgeError, match="No file can be named"):
        file_name(uuid, "json")
    with pytest.raises(RagforgeError):
        readable_name("T", uuid)


def test_main_argument_is_one_line() -> None:
    assert main_argument(call("run_command", '{"command": "a\\n b"}', success=True)) == "a b"
    assert main_argument(call("run_command", '{"command": 5}', success=True)) == ""


def test_json_for_terminals() -> None:
    document = msgspec.json.encode({"a": "\x9b\x7f\u202e☃"})
    assert safe_json(document) == '{"a":"\\u009b\\u007f\\u202e☃"}'.encode()
    assert msgspec.json.decode(safe_json(document)) == {"a": "\x9b\x7f\u202e☃"}


def test_width_counts_columns() -> None:
    assert (width("abc"), width("日本"), width("e\u0301")) == (3, 4, 1)


def test_unmasked_stored_secrets_are_masked_on_export_and_import() -> None:
    pem = filled("-----BEGIN RSA PRIVATE KEY-----\n<64b>\n")  # its end is in another message
    turn = Turn(
        turn_index=1,
        messages=[
            message("m1", 0, "user", f"{pem} {GITHUB_KEY}"),
            message("m2", 1, "user", "-----END RSA PRIVATE KEY-----"),
        ],
    )
    export = ConversationExport(conversation=Conversation(uuid="c", created_at=MOMENT, updated_at=MOMENT), turns=[turn])
    assert GITHUB_KEY not in to_markdown(export)
    assert GITHUB_KEY not in to_json(export).decode()
    read = from_json(msgspec.json.encode(export))
    assert GITHUB_KEY not in str(read)
    assert from_json(to_json(export)) == read
    assert [one.uuid for one in read.turns[0].messages] == ["m1", "m2"]
