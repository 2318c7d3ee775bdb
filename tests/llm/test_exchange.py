"""Answers and refusals of servers, in all the forms they have, before LiteLLM sees them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ragforge_tui.llm.exchange import Exchange, read_events
from ragforge_tui.llm.provider_errors import ServerRefusal, to_model_error, words_of

HI = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]}
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
LINE, LAST = f"data: {json.dumps(HI)}\n\n", f"data: {json.dumps(END)}\n\n"
WHOLE = {
    "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3},
}


async def pieces(text: str, size: int) -> AsyncIterator[bytes]:
    data = text.encode()
    for at in range(0, len(data), size):
        yield data[at : at + size]


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("text", "events"),
    [
        (f"{LINE}{LAST}data: [DONE]\n\n", [HI, END]),
        (f"\ufeff{LINE}{LAST}", [HI, END]),
        (f": ping\r\n\r\nretry: 3000\n\n{LINE}data:\n\nevent: beat\ndata: alive\n\nid: 3\n{LAST}", [HI, END]),
        (f'{LINE}data: {{"choices": [{{"del\n\n{LAST}', [HI, END]),
        (f"{json.dumps(HI)}\n{json.dumps(END)}\n", [HI, END]),
        (json.dumps(WHOLE), [WHOLE]),
        (json.dumps(WHOLE, indent=2), [WHOLE]),
        (json.dumps([HI, END]), [HI, END]),
        ('event: error\ndata: {"message": "busy"}\n\n', [{"error": {"message": "busy"}}]),
        ("<html><body>Sign in</body></html>", ["<html><body>Sign in</body></html>\n"]),
    ],
)
async def test_lines_that_are_no_events_do_not_end_an_answer(text: str, events: list[Any], size: int) -> None:
    assert [event async for event in read_events(pieces(text, size))] == events


async def received(text: str, path: str = "/v1/chat/completions", status: int = 200) -> tuple[Exchange, str]:
    exchange = Exchange()
    request = httpx.Request("POST", f"http://localhost{path}", content=b"{}")
    response = httpx.Response(status, request=request, content=pieces(text, 20))
    await exchange.receive(response, streamed=True)
    return exchange, (await response.aread()).decode()


async def test_events_are_kept_whole_and_litellm_gets_a_sign_for_each() -> None:
    exchange, passed_on = await received(LINE + LAST)
    assert exchange.read_here and list(exchange.take()) == [HI, END] and list(exchange.take()) == []
    assert passed_on.count("chat.completion.chunk") == 3 and passed_on.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize(
    "event",
    ['"stop_reason": "pause_turn"', '"finishReason":"MALFORMED_FUNCTION_CALL"', '"done_reason": "unload"'],
)
async def test_of_other_answers_the_last_word_is_read(event: str) -> None:
    text = f'data: {{"text": "\\"stop_reason\\": \\"no\\""}}\n\ndata: {{{event}}}\n\n'
    exchange, passed_on = await received(text, "/v1/messages")
    assert not exchange.read_here and passed_on == text
    assert exchange.finish_reason == event.rsplit('"', 2)[1]


@pytest.mark.parametrize(
    ("text", "status", "named"),
    [
        ('{"error": {"message": "busy", "code": 503}}', 200, 503),
        (f'{LINE}data: {{"error": "lost the model"}}\n\n', 200, 500),
        ('{"detail": "no such thing"}', 422, 422),
        ("<title>Sign in</title>", 200, 200),
    ],
)
async def test_an_error_with_any_status_is_a_refusal(text: str, status: int, named: int) -> None:
    with pytest.raises(ServerRefusal) as caught:
        await received(text, status=status)
    assert caught.value.status_code == named


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Not this way.", "type": "invalid", "code": 400}},
        {"error": "Not this way."},
        [{"error": {"code": 400, "message": "Not this way.", "status": "INVALID"}}],
        {"detail": "Not this way."},
        {"detail": [{"msg": "Not this way.", "type": "value_error"}]},
        {"object": "error", "message": "Not this way."},
        {"error": {"message": "Not this way.", "metadata": {"provider_name": "x"}}},
        {"fault": {"faultstring": "Not this way."}},
        "Not this way.",
        "<html><head><title>400</title></head><body><p>Not this\nway.</p></body></html>",
        '{"error": {"message": "Not this way."}}',
    ],
)
def test_words_are_found_wherever_they_are(body: Any) -> None:
    assert words_of(body) == "Not this way."
    error = to_model_error(ServerRefusal(400, {}, body), model="m", destination="the server")
    assert error.info.what == "The server refused the request. It said: “Not this way.”"


def test_the_place_of_an_error_is_said() -> None:
    body = {"detail": [{"loc": ["body", "messages", 1, "extra"], "msg": "Not permitted", "type": "extra"}]}
    assert words_of(body) == "Not permitted (body messages extra)"


TOO_LONG: list[tuple[int, Any, int | None]] = [
    (400, "Your input of 300000 tokens is above the limit of 262144.", 262_144),
    (400, "We counted 12,000 tokens, and 8,192 is the maximum.", 8_192),
    (400, "total 9000 > 8192", 8_192),
    (400, "The conversation is larger than this deployment can hold.", None),
    (400, "Please shorten your prompt.", None),
    (400, "No more than 8192 fit.", 8_192),
    (400, "5000 given", None),
    (422, {"detail": "inputs must have less than 4096 tokens. Given: 5000"}, 4_096),
    (400, {"error": {"message": "Rejected.", "code": "context_window_exceeded"}}, None),
    (400, {"error": {"message": "Rejected.", "type": "prompt_too_long"}}, None),
    (500, {"error": {"message": "exceeds the context", "n_ctx": 4096, "n_prompt_tokens": 5000}}, 4_096),
    (413, "<h1>413 Request Entity Too Large</h1> nginx 1.18.0", None),
    (413, "Limit 6000 tokens per minute, requested 9000", None),
]
NOT_TOO_LONG: list[tuple[int, Any]] = [
    (400, "temperature must be at most 2"),
    (400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected at most 40, got 45."),
    (400, "The parameter foo is wrong"),
    (400, "Extra inputs are not permitted"),
    (422, {"detail": [{"loc": ["body", "top_k"], "msg": "Input should be a valid number", "type": "int_parsing"}]}),
    (500, "CUDA out of memory"),
    (503, "The server is overloaded, too many requests"),
    (404, "no such model: it exceeds nothing"),
]


@pytest.mark.parametrize(("status", "body", "window"), TOO_LONG)
def test_a_refusal_for_its_size_is_recognised_by_words_numbers_and_codes(
    status: int, body: Any, window: int | None
) -> None:
    error = to_model_error(ServerRefusal(status, {}, body), model="m", destination="the server", size=24_000)
    assert (error.info.kind, error.window, error.of_body) == ("context_too_long", window, status == 413)


@pytest.mark.parametrize(("status", "body"), NOT_TOO_LONG)
def test_other_refusals_are_not_about_the_size(status: int, body: Any) -> None:
    error = to_model_error(ServerRefusal(status, {}, body), model="m", destination="the server", size=24_000)
    assert error.info.kind != "context_too_long"
