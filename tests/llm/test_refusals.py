"""No talk ends: what a server refuses is left out, remembered and told once, whatever the words."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ragforge_tui.llm.base import IMAGES, PAST_REASONING
from ragforge_tui.llm.forms import IMAGE, NO_IMAGES, called_name, formed, request_in_forms
from ragforge_tui.llm.provider_errors import ServerRefusal, to_model_error
from ragforge_tui.llm.refusals import MOST_STEPS, Refusals, WayOut
from ragforge_tui.shared.errors import ModelError

Request = dict[str, Any]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "b": {"type": "array"}},
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": SCHEMA}}
    for name in ("read_file", "run_command", "srv__lookup")
]
OPTIONS = {"temperature": 0.2, "stream_options": {"include_usage": True}, "reasoning_effort": "low", "max_tokens": 100}


def call(at: int, name: str) -> dict[str, Any]:
    return {"id": f"call-{at}-{name}", "type": "function", "function": {"name": name, "arguments": "{}"}}


def turn(at: int) -> list[dict[str, Any]]:
    """A turn with all that history may hold: reasoning, two calls, names that no server takes, an image."""
    calls = [call(at, name) for name in ("read_file", 'functions.read_file" path="a', "x" * 90)]
    asked: dict[str, Any] = {"role": "user", "content": f"question {at}"}
    if at % 5 == 1:
        asked[IMAGES] = [f"data:image/png;base64,{at}"]
    return [
        asked,
        {"role": "assistant", "content": "", "tool_calls": calls, PAST_REASONING: "Hm."},
        *({"role": "tool", "tool_call_id": each["id"], "content": "result"} for each in calls),
        {"role": "assistant", "content": f"answer {at}", PAST_REASONING: "Well."},
    ]


def parts(request: Request) -> list[dict[str, Any]]:
    contents = [message.get("content") for message in request["messages"]]
    return [part for content in contents if isinstance(content, list) for part in content]


REFUSED: dict[str, tuple[Callable[[Request], bool], list[str]]] = {
    **{
        option: (lambda request, option=option: option in request, [f"{{}} {option} {{}}", f"'{option}': {{}}"])  # type: ignore[misc]
        for option in OPTIONS
    },
    "tools": (lambda request: "tools" in request, ["{} tools {}", "{} function calling {}", "tool use {}"]),
    "one tool": (
        lambda request: any(tool["function"]["name"] == "srv__lookup" for tool in request.get("tools", ())),
        ["{} function 'srv__lookup' {}", "tools.2.custom: {}", "tools[2].function.parameters {}"],
    ),
    "a schema": (lambda request: "anyOf" in str(request.get("tools")), ["{} schema {}", "anyOf {}", "{}"]),
    "many tools": (
        lambda request: len(request.get("tools", ())) > 2,
        ["{} at most 2 tools", "array of 3 tools, most 2"],
    ),
    "results": (
        lambda request: any(message["role"] == "tool" for message in request["messages"]),
        ["role 'tool' {}", "{} tool_call_id", "tool messages {}"],
    ),
    "system": (
        lambda request: any(message["role"] == "system" for message in request["messages"]),
        ["{} role system", "the system message {}", "{}"],
    ),
    "reasoning": (
        lambda request: any("reasoning_content" in message for message in request["messages"]),
        ["{} reasoning_content", "messages.2.reasoning_content: {}", "{}"],
    ),
    "calls": (
        lambda request: any(len(message.get("tool_calls") or ()) > 1 for message in request["messages"]),
        ["parallel tool calls {}", "{} one tool call", "{}"],
    ),
    "images": (
        lambda request: any("image_url" in part for part in parts(request)),
        ["{} image {}", "image_url: {}", "{}"],
    ),
    "empty": (lambda request: any(m.get("content") in ("", None) for m in request["messages"]), ["{} content", "{}"]),
    "names": (
        lambda request: any(
            not each["function"]["name"].replace("_", "").isalnum() or len(each["function"]["name"]) > 64
            for message in request["messages"]
            for each in message.get("tool_calls") or ()
        ),
        ["{}"],
    ),
}
PHRASES = ["is not something we take", "unsupported", "cannot be used here", "nope", "nicht erlaubt", "不支持", "E1234"]


def body(words: str, chance: random.Random) -> Any:
    """The words of a refusal in one of the forms that servers have."""
    return chance.choice(
        [
            {"error": {"message": words, "type": "invalid_request_error", "code": None}},
            {"error": words},
            [{"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}],
            {"detail": words},
            {"detail": [{"loc": ["body"], "msg": words, "type": "value_error"}]},
            {"object": "error", "message": words, "code": 400},
            words,
        ]
    )


def ask(refusals: Refusals, messages: list[dict[str, Any]], refuse: Callable[[Request], Any]) -> tuple[int, str]:
    """Ask as the client does; return the number of requests and what the user was told."""
    way = WayOut(refusals)
    for count in range(1, MOST_STEPS + 2):
        sent = formed(messages, source="m", both_names=True, forms=way.forms)
        request = request_in_forms({"messages": sent, "stream": True, **OPTIONS, "tools": TOOLS}, way.forms)
        refused = refuse(request)
        if refused is None:
            return count, refusals.accepted(request, way)
        error = to_model_error(ServerRefusal(400, {}, refused), model="m", destination="the server")
        if not way.next(error, request):
            raise error
    raise AssertionError("too many requests")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("refused", REFUSED)
def test_no_talk_ends_and_nothing_is_refused_twice(refused: str, seed: int) -> None:
    chance = random.Random(f"{refused} {seed}")
    holds, sentences = REFUSED[refused]

    def refuse(request: Request) -> Any:
        if not holds(request):
            return None
        phrase = chance.choice(sentences)
        return body(phrase.format(*[chance.choice(PHRASES)] * phrase.count("{}")), chance)

    refusals = Refusals()
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    told = []
    requests = []
    for at in range(1, 41):
        messages += turn(at)
        count, said = ask(refusals, [*messages, {"role": "user", "content": "And?"}], refuse)
        requests.append(count)
        told += [said] if said else []
    # Each new image is tried once more, until it is clear that none is taken.
    assert len(told) == (0 if refused == "names" else 2 if refused == "images" else 1), told
    assert sum(count > 1 for count in requests) == len(told), requests


def test_several_refusals_one_after_another_and_again_in_the_next_process() -> None:
    def refuse(request: Request) -> Any:
        found = [name for name in ("stream_options", "temperature", "tools", "images") if REFUSED[name][0](request)]
        return {"detail": f"{found[0]} {PHRASES[0]}"} if found else None

    kept: set[str] = set()
    messages = [*turn(1), {"role": "user", "content": "And?"}]
    count, said = ask(Refusals(keep=kept.update), messages, refuse)
    assert count == 5 and said.count(";") == 3
    assert ask(Refusals(kept), messages, refuse) == (1, "")


def test_a_refusal_of_everything_is_an_error_and_leaves_nothing_out() -> None:
    refusals = Refusals()
    for _ in range(2):
        with pytest.raises(ModelError, match="tools are a nuisance"):
            ask(refusals, [{"role": "user", "content": "Hi"}], lambda request: {"error": "tools are a nuisance"})
    assert not refusals.forms


def test_a_vague_refusal_of_what_was_taken_before_is_asked_once() -> None:
    refusals = Refusals()
    asked = [{"role": "user", "content": "Hi"}]
    assert ask(refusals, asked, lambda request: None) == (1, "")
    tried: list[Request] = []
    with pytest.raises(ModelError):
        ask(refusals, asked, lambda request: tried.append(request) or "That is against our rules.")
    assert len(tried) == 1


def test_only_the_image_that_was_refused_is_left_out() -> None:
    broken = "data:image/png;base64,broken"
    good = {"role": "user", "content": "one", IMAGES: ["data:image/png;base64,good"]}
    bad = {"role": "user", "content": "two", IMAGES: [broken]}
    refusals = Refusals()
    refuse: Callable[[Request], Any] = lambda request: "Could not process it" if broken in str(request) else None  # noqa: E731
    assert ask(refusals, [good], refuse) == (1, "")
    answer = {"role": "assistant", "content": "1"}
    assert ask(refusals, [good, answer, bad], refuse)[0] == 2
    assert [form[: len(IMAGE)] for form in refusals.forms] == [IMAGE] and NO_IMAGES not in refusals.forms
    sent = formed([good, answer, bad], source="m", forms=refusals.forms)
    assert "good" in str(sent[0]) and "without them" in str(sent[2])
    assert ask(refusals, [good, answer, bad], refuse) == (1, "")


@pytest.mark.parametrize(
    ("written", "understood"),
    [
        ("functions.read_file", "read_file"),
        ("default_api:read_file", "read_file"),
        ("functions.read_file:0", "read_file"),
        ("read_file<|channel|>commentary", "read_file"),
        ('read_file" path="a.py', "read_file"),
        ("functions.open_turn", "open_turn"),
        ("no such tool", "no such tool"),
    ],
)
def test_a_name_with_a_prefix_or_a_token_is_understood(written: str, understood: str) -> None:
    assert called_name(written, {"read_file": {}}) == understood
