"""How providers cut tool calls, and that they come out whole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ragforge_tui.llm.assemble import Assembler


def chunk(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> Any:
    function = SimpleNamespace(name=name, arguments=arguments)
    delta = SimpleNamespace(tool_calls=[SimpleNamespace(index=index, id=call_id, function=function)])
    return SimpleNamespace(choices=[SimpleNamespace(delta=delta, finish_reason=None)])


def assembled(*chunks: Any) -> list[tuple[str, str]]:
    assembler = Assembler()
    for piece in chunks:
        assert list(assembler.feed(piece)) == []
    return [(request.name, request.arguments) for request in assembler.requests()]


def test_pieces_of_parallel_calls_interleaved() -> None:
    chunks = [
        chunk(0, "a", "f", '{"x'),
        chunk(1, "b", "g", '{"y'),
        chunk(0, None, None, '": 1}'),
        chunk(1, None, None, '": 2}'),
    ]
    assert assembled(*chunks) == [("f", '{"x": 1}'), ("g", '{"y": 2}')]


def test_every_call_with_index_zero() -> None:
    assert assembled(chunk(0, "a", "f", "{}"), chunk(0, "b", "f", '{"n": 1}')) == [("f", "{}"), ("f", '{"n": 1}')]
    assert assembled(chunk(0, None, "f", "{}"), chunk(0, None, "g", "{}")) == [("f", "{}"), ("g", "{}")]


def test_the_name_repeated_in_every_piece_is_one_call() -> None:
    assert assembled(chunk(0, "a", "f", '{"x'), chunk(0, "a", "f", '": 1}')) == [("f", '{"x": 1}')]


def test_no_index_at_all() -> None:
    assert assembled(chunk(None, "a", "f", '{"x'), chunk(None, None, None, '": 1}')) == [("f", '{"x": 1}')]
