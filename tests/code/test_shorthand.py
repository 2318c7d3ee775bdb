"""Shorthand properties of JavaScript, which name a variable and a property at once."""

from __future__ import annotations

from ragforge_tui.code.parser import parse_file


def test_a_shorthand_property_is_read_once_as_a_mention_of_its_variable() -> None:
    parsed = parse_file("app.js", b"function send() {}\nfunction run() { return start({ send, other: { send } }) }\n")
    assert parsed is not None
    run = next(scope for scope in parsed.scopes if scope.name == "run")
    assert [(mention.kind, mention.path) for mention in run.mentions] == [("calls", "start"), ("uses", "send")]
