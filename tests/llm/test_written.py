"""Calls that a server left in the text are read by their shape, however the text is cut; explanations stay text."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.llm.base import ReasoningPart, TextPart
from ragforge_tui.llm.written import TextReader

TOOLS = {
    "grep_files": {
        "properties": {
            "pattern": {"type": "string"},
            "limit": {"type": "integer"},
            "path": {"type": ["string", "null"]},
        },
        "required": ["pattern"],
    },
    "list_todos": {"properties": {}},
}
OBJECT = '{"name": "grep_files", "arguments": {"pattern": "def main", "limit": 3}}'
INNER = '{"pattern": "def main", "limit": 3}'
PAIRS = "<parameter=pattern>\ndef main\n</parameter>\n<parameter=limit>3</parameter>"
NAMED = '<parameter name="pattern">def main</parameter>\n<parameter name="limit">3</parameter>'
CALLS = {
    "tagged": f"<tool_call>\n{OBJECT}\n</tool_call>",
    "never closed": f"<tool_call>\n{OBJECT}",
    "tags of another name": f"<invocation>{OBJECT}</invocation>",
    "special tokens": f"<|tool_call_begin|>{OBJECT}<|tool_call_end|>",
    "list": f"<TOOLCALL>[{OBJECT}]</TOOLCALL>",
    "word in capitals": f"[TOOL_CALLS][{OBJECT}]",
    "name before the object": f"[TOOL_CALLS]grep_files[ARGS]{INNER}",
    "id between them": f"[TOOL_CALLS]grep_files[CALL_ID]a1b2c3d4e[ARGS]{INNER}",
    "channel": f"<|channel|>commentary to=functions.grep_files <|constrain|>json<|message|>{INNER}<|call|>",
    "name with a number": f"<|section|><|begin|>functions.grep_files:0<|arguments|>{INNER}<|end_of_call|>",
    "wide bars": f"<｜calls▁begin｜><｜call▁begin｜>function<｜sep｜>grep_files\n```json\n{INNER}\n```<｜call▁end｜>",
    "pairs": f"<tool_call>\n<function=grep_files>\n{PAIRS}\n</function>\n</tool_call>",
    "pairs without an opening tag": f"<function=grep_files>\n{PAIRS}\n</function>\n</tool_call>",
    "named pairs": f'<x:calls><invoke name="grep_files">{NAMED}</invoke></x:calls>',
    "keys and values": "<tool_call>grep_files\n<arg_key>pattern</arg_key>\n<arg_value>def main</arg_value>\n"
    "<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
    "tags named like the arguments": "<grep_files>\n<pattern>def main</pattern>\n<limit>3</limit>\n</grep_files>",
    "object in a tag": f"<function=grep_files>{INNER}</function>",
    "Python": '<|python_tag|>grep_files.call(pattern="def main", limit=3)',
    "Python in a list": '[grep_files(pattern="def main", limit=3)]',
    "Python in a fence": '```tool_code\ngrep_files(pattern="def main", limit=3)\n```',
    "bare": OBJECT,
    "arguments first": f'{{"arguments": {INNER}, "name": "grep_files"}}',
    "other keys": f'{{"tool": "grep_files", "input": {INNER}}}',
    "within an object": json.dumps(
        {"calls": [{"id": "1", "type": "function", "function": {"name": "grep_files", "arguments": INNER}}]}
    ),
    "whole answer in a fence": f"```json\n{OBJECT}\n```",
}
TEXTS = [
    f"Models write it so:\n```\n<tool_call>\n{OBJECT}\n</tool_call>\n```\nThat is all.",
    f"```json\n{OBJECT}\n```\nThis is the form of a call.",
    f"It sends `<tool_call>{OBJECT}</tool_call>` then.",
    f'The template writes "<tool_call>{OBJECT}</tool_call>" for it.',
    f"You write <tool_call>{OBJECT}</tool_call> and the server reads it.",
    f"> <tool_call>{OBJECT}</tool_call>\n\nwas his answer.",
    f"For instance\n{OBJECT}\nwould search.",
    '{"name": "Ada", "arguments": {"limit": 3}}',
    "Use grep_files(pattern) or <b>grep_files</b>, [grep_files](docs), {grep_files}.",
    'if a < b:\n    c = [d for d in {"grep_files": 1}]',
    "- [ ] one\n- [x] two <https://example.org>\n",
]


def read(pieces: list[str]) -> tuple[str, str, list[tuple[str, str]]]:
    reader = TextReader(TOOLS)
    parts = [*(part for piece in pieces for part in reader.feed(piece)), *reader.rest()]
    said = "".join(part.text for part in parts if isinstance(part, TextPart))
    return said, "".join(part.text for part in parts if isinstance(part, ReasoningPart)), reader.calls


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS)
def test_a_call_in_the_text_is_a_call_and_what_is_before_it_stays(text: str) -> None:
    before = "" if text.startswith("```") else "I search for it.\n\n"
    for size in (1, 3, 8, 10_000):
        for lead in ("", before):
            said, _, calls = read(cut(lead + text, size))
            assert [(name, json.loads(given)) for name, given in calls] == [
                ("grep_files", {"pattern": "def main", "limit": 3})
            ], (size, lead)
            assert said.strip() == lead.strip()


@pytest.mark.parametrize("text", TEXTS)
def test_an_explanation_stays_text(text: str) -> None:
    for size in (1, 3, 8, 10_000):
        assert read(cut(text, size)) == (text, "", [])


def test_several_calls_and_words_after_them() -> None:
    marked = f"<tool_call>{OBJECT}</tool_call>"
    said, _, calls = read(cut(f"<think>Both.</think>First.\n{marked}\n{marked}\nDone.", 3))
    assert (said.split(), [name for name, _ in calls]) == (["First.", "Done."], ["grep_files"] * 2)
    assert read(["<function=list_todos></function>"])[2] == [("list_todos", "{}")]


def test_a_thought_before_a_call_in_channels() -> None:
    text = f"<|channel|>analysis<|message|>Look.<|end|><|start|>assistant{CALLS['channel']}"
    said, thought, calls = read(cut(text, 5))
    assert (said, thought, len(calls)) == ("", "Look.", 1)


def test_text_is_shown_as_it_arrives() -> None:
    reader = TextReader(TOOLS)
    pieces = ["A list: ", "x < y, ", "[1] and <b>bold", "</b> words that go on", " and on."]
    shown = [part.text for piece in pieces for part in reader.feed(piece) if isinstance(part, TextPart)]
    assert "".join(shown) == "".join(pieces)


@given(
    st.lists(
        st.sampled_from([*CALLS.values(), *TEXTS, "<think>", "</think>", "\n", "a", "`", "```", "<", " "]), max_size=4
    ),
    st.lists(st.integers(0, 900), max_size=6),
)
def test_cuts_change_nothing(texts: list[str], places: list[int]) -> None:
    text = "".join(texts)
    cuts = sorted({0, len(text), *(place for place in places if place < len(text))})
    assert read([text[a:b] for a, b in pairwise(cuts)])[2] == read([text])[2]


@pytest.mark.parametrize(
    "text",
    [
        "<grep_files>\n" * 4000,
        '\n{"a": 1}' * 6000,
        "<b>x</b> " * 6000,
        "[TOOL_CALLS]" * 4000,
        "<parameter=path>" * 4000,
    ],
)
def test_a_text_full_of_markers_takes_no_long_time(text: str) -> None:
    began = time.process_time()
    assert read([text])[2] == []
    assert time.process_time() - began < 5
