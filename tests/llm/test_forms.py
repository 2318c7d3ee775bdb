"""Reasoning comes back to whoever sent it, to the letter, and in a form the server takes."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace as Made
from typing import Any

import pytest

from ragforge_tui.llm import PAST_REASONING, PROVIDER_STATE, Finished, LiteLLMModel, ModelChoice, ToolRequest
from ragforge_tui.llm.assemble import Assembler
from ragforge_tui.llm.forms import formed
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ModelError
from tests.llm.conftest import MakeModel
from tests.support.model_script import Call, Step
from tests.support.openai_server import OpenAIServer

TOOL = {
    "type": "function",
    "function": {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is in a.py and b.py?"}]
TWO = [Call(name="read_file", arguments={"path": path}) for path in ("a.py", "b.py")]


async def reply_of(
    model: LiteLLMModel, messages: list[dict[str, Any]], marks: tuple[int, ...] = ()
) -> tuple[list[ToolRequest], Finished]:
    parts = [part async for part in model.stream(messages, tools=[TOOL], cache_marks=marks)]
    assert isinstance(parts[-1], Finished)
    return [part for part in parts if isinstance(part, ToolRequest)], parts[-1]


async def step_of(model: LiteLLMModel, text: str = "") -> list[dict[str, Any]]:
    """Ask, and return the messages of the next request as the turn loop makes them, with ids of its own."""
    requests, finished = await reply_of(model, ASKED)
    calls = [
        {"id": f"own-id-{at}", "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
        for at, each in enumerate(requests)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "text"} for call in calls]
    return [
        *ASKED,
        {"role": "assistant", "content": text, "tool_calls": calls, PROVIDER_STATE: finished.state},
        *results,
    ]


def native(server: OpenAIServer, name: str, path: str = "") -> LiteLLMModel:
    base = server.base_url.removesuffix("/v1") + path
    return LiteLLMModel(
        ModelChoice(name=name, origin="test", destination="the test server", api_base=base, api_key="k"),
        ModelSettings(reasoning_effort="low", retries=0),
        backoff=0.01,
    )


def anthropic(*blocks: tuple[dict[str, Any], list[dict[str, Any]]], stop: str = "end_turn") -> Step:
    """Anthropic's stream of these blocks, each with its deltas."""
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "content": [],
                "model": "claude",
                "stop_reason": None,
                "usage": {"input_tokens": 9, "output_tokens": 1},
            },
        }
    ]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}})
    return Step(raw=[*events, {"type": "message_stop"}])


async def test_anthropic_gets_its_signed_blocks_back(server: OpenAIServer) -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    signature = "sk-ant-api03-not-a-key-but-" + "EqQBCgIYAhIM1gbcDa9GJwZA2b3h" * 4
    server.script(
        [
            anthropic(
                (
                    thinking,
                    [
                        {"type": "thinking_delta", "thinking": "Two "},
                        {"type": "thinking_delta", "thinking": "files."},
                        {"type": "signature_delta", "signature": signature},
                    ],
                ),
                ({"type": "redacted_thinking", "data": "c2VjcmV0"}, []),
                (thinking, [{"type": "signature_delta", "signature": "of a block that is not shown"}]),
                ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Reading."}]),
                (
                    {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}},
                    [{"type": "input_json_delta", "partial_json": '{"path": "a.py"}'}],
                ),
                stop="tool_use",
            ),
            anthropic(({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Done."}])),
        ]
    )
    model = native(server, "anthropic/claude-sonnet-4-5")
    messages = await step_of(model, "Reading.")
    await reply_of(model, messages)
    first, second = (request.body for request in server.requests)
    assert first["thinking"]["type"] == second["thinking"]["type"] == "enabled"
    _, reply, result = second["messages"]
    assert reply["content"][:4] == [
        {"type": "thinking", "thinking": "Two files.", "signature": signature},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "thinking", "thinking": "", "signature": "of a block that is not shown"},
        {"type": "text", "text": "Reading."},
    ]
    assert reply["content"][4]["type"] == "tool_use" and len(reply["content"]) == 5
    assert result["content"][0]["tool_use_id"] == reply["content"][4]["id"]


async def test_gemini_gets_the_signature_of_a_call_back(server: OpenAIServer) -> None:
    def candidate(parts: list[dict[str, Any]]) -> Step:
        events = [{"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in parts]
        end = {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]}
        return Step(raw=[*events, end])

    calls = [{"functionCall": {"name": "read_file", "args": {"path": path}}} for path in ("a.py", "b.py")]
    signed = {**calls[0], "thoughtSignature": "c2lnbmF0dXJlIG9mIHRoZSBmaXJzdA=="}
    thought = {"text": "Two files.", "thought": True}
    server.script([candidate([thought, signed, calls[1]]), candidate([{"text": "Done."}])])
    model = native(server, "gemini/gemini-3-pro-preview")
    await reply_of(model, await step_of(model))
    _, reply, results = server.requests[1].body["contents"]
    sent = [part for part in reply["parts"] if "function_call" in part or "functionCall" in part]
    assert [part.get("thoughtSignature") for part in sent] == [signed["thoughtSignature"], None]
    assert "Two files." not in str(reply), "the signature stands for the thought"
    assert len(results["parts"]) == 2


async def test_openais_newer_models_get_their_reasoning_items_back(server: OpenAIServer) -> None:
    """LiteLLM sends requests with tools to GPT-5.4 and later to another address, in another form."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Two."}]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read_file", "arguments": ""}
    done = {**call, "arguments": '{"path": "a.py"}', "status": "completed"}
    response = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-5.4", "output": [item, done]}
    usage = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "summary": []}},
        {
            "type": "response.reasoning_summary_text.delta",
            "item_id": "rs_1",
            "output_index": 0,
            "summary_index": 0,
            "delta": "Two.",
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.output_item.added", "output_index": 1, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": done["arguments"]},
        {"type": "response.output_item.done", "output_index": 1, "item": done},
        {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}},
    ]
    server.script([Step(raw=events), Step(raw=events)])
    model = native(server, "openai/gpt-5.4", "/v1")
    await reply_of(model, await step_of(model))
    # The instructions are a field of their own or, with newer versions of LiteLLM, the first message.
    sent = [each for each in server.requests[1].body["input"] if each["type"] != "message"]
    assert [each["type"] for each in sent] == ["reasoning", "function_call", "function_call_output"]
    assert (sent[0]["id"], sent[0]["summary"]) == ("rs_1", item["summary"])
    assert sent[1]["call_id"] == sent[2]["call_id"]


@pytest.mark.parametrize("name", ["openai/kimi-k2-thinking", "deepseek/deepseek-reasoner"])
async def test_plain_reasoning_goes_back_with_the_calls_it_led_to(
    server: OpenAIServer, make: MakeModel, name: str
) -> None:
    server.script([Step(reasoning="Both are needed.", text="Reading.", tool_calls=TWO), Step(text="Done.")])
    model = make(name)
    await reply_of(model, await step_of(model, "Reading."))
    reply = server.chats()[1]["messages"][2]
    assert (reply["content"], reply["reasoning_content"]) == ("Reading.", "Both are needed.")
    assert reply.get("reasoning") == ("Both are needed." if name.startswith("openai/") else None)
    assert PROVIDER_STATE not in str(server.chats())


async def test_reasoning_of_another_model_is_left_out(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(reasoning="Both are needed.", tool_calls=TWO), Step(text="Done.")])
    messages = await step_of(make("openai/one"))
    await reply_of(make("openai/another"), messages)
    assert "Both are needed." not in str(server.chats()[1])
    assert len(server.chats()[1]["messages"][2]["tool_calls"]) == 2


async def test_a_reply_without_calls_holds_nothing_back(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(reasoning="Easy.", text="Yes.")])
    assert (await reply_of(make(), ASKED))[1].state is None


async def test_thoughts_in_the_text_go_back_in_the_text(server: OpenAIServer, make: MakeModel) -> None:
    written = "<think>\nBoth are needed.\n</think>\n\nReading."
    server.script([Step(text=written, chunk=3, tool_calls=TWO), Step(text="Done.")])
    await reply_of(make(), await step_of(make(), "Reading."))
    assert server.chats()[1]["messages"][2]["content"] == written


async def test_openrouters_details_go_back_as_whole_blocks(server: OpenAIServer, make: MakeModel) -> None:
    text = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    encrypted = {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "rs_1", "format": "openai", "index": 1}
    pieces = [
        {"reasoning": "Both ", "reasoning_details": [{**text, "text": "Both "}]},
        {"reasoning": "needed.", "reasoning_details": [{**text, "text": "needed.", "signature": None}]},
        {"reasoning_details": [{**text, "text": None, "signature": "c2ln"}]},
        {"reasoning_details": [encrypted]},
    ]
    server.script([Step(raw=pieces, tool_calls=TWO), Step(text="Done.")])
    model = make("openrouter/anthropic/claude-sonnet-4.5")
    await reply_of(model, await step_of(model))
    reply = server.chats()[1]["messages"][2]
    assert reply["reasoning_details"] == [{**text, "text": "Both needed.", "signature": "c2ln"}, encrypted]
    assert "reasoning_content" not in reply


async def test_the_signature_at_googles_compatible_address(server: OpenAIServer, make: MakeModel) -> None:
    google = {"google": {"thought_signature": "c2ln"}}
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    server.script(
        [Step(raw=[{"tool_calls": [{**call, "extra_content": google}]}], finish="tool_calls"), Step(text="x")]
    )
    model = make("openai/gemini-3-flash")
    await reply_of(model, await step_of(model))
    assert server.chats()[1]["messages"][2]["tool_calls"][0]["extra_content"] == google


def test_a_block_ends_with_its_signature() -> None:
    assembler = Assembler()
    for block in (
        {"type": "thinking", "thinking": "one"},
        {"type": "thinking", "thinking": "", "signature": "1"},
        {"type": "thinking", "thinking": "two"},
        {"type": "thinking", "thinking": "", "signature": "2"},
    ):
        list(assembler.feed(Made(choices=[Made(delta=Made(thinking_blocks=[block]), finish_reason=None)])))
    call = Made(index=0, id="c", function=Made(name="f", arguments="{}"))
    list(assembler.feed(Made(choices=[Made(delta=Made(tool_calls=[call]), finish_reason="tool_calls")])))
    state = assembler.state()
    assert state is not None and [block["signature"] for block in state["message"]["thinking_blocks"]] == ["1", "2"]


GROQ = "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]"  # noqa: E501


async def test_a_server_that_refuses_reasoning_is_asked_without(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(reasoning="Both.", tool_calls=TWO), Step(status=400, message=GROQ), Step(text="Done.")])
    model = make(retries=0)
    messages = await step_of(model)
    await reply_of(model, messages)
    await reply_of(model, messages)
    first, refused, again, later = server.chats()
    assert "Both." in str(refused["messages"])
    assert again == later and "Both." not in str(again["messages"]) and first["messages"] == again["messages"][:2]


async def test_past_reasoning_goes_to_models_that_take_it(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(text="Yes."), Step(status=400, message=GROQ), Step(text="Yes.")])
    model = make(retries=0)
    assert model.takes_reasoning
    past = {"role": "assistant", "content": "Earlier.", PAST_REASONING: "It was easy."}
    messages = [*ASKED, past, {"role": "user", "content": "Sure?"}]
    await reply_of(model, messages)
    await reply_of(model, messages)
    taken, refused, again = (chat["messages"][2] for chat in server.chats())
    assert (
        taken
        == refused
        == {
            "role": "assistant",
            "content": "Earlier.",
            "reasoning_content": "It was easy.",
            "reasoning": "It was easy.",
        }
    )
    assert again == {"role": "assistant", "content": "Earlier."}
    assert not model.takes_reasoning
    assert PAST_REASONING in past


@pytest.mark.parametrize(
    ("name", "api_base", "takes"),
    [
        ("openai/qwen3", "http://127.0.0.1:8080/v1", True),
        ("deepseek/deepseek-reasoner", "", True),
        ("openai/gpt-5", "", False),
        ("anthropic/claude-sonnet-4-5", "", False),
        ("anthropic/claude-sonnet-4-5", "http://127.0.0.1:8080", False),
        ("gemini/gemini-3-pro", "", False),
    ],
)
def test_only_apis_of_plain_reasoning_get_past_reasoning(name: str, api_base: str, takes: bool) -> None:
    choice = ModelChoice(name=name, origin="test", destination="a server", api_base=api_base)
    assert LiteLLMModel(choice, ModelSettings()).takes_reasoning is takes


async def test_a_server_that_wants_reasoning_in_past_turns_gets_a_space(server: OpenAIServer, make: MakeModel) -> None:
    words = "The reasoning_content in the thinking mode must be passed back to the API."
    server.script([Step(reasoning="Both.", tool_calls=TWO), Step(status=400, message=words), Step(text="Done.")])
    model = make(retries=0)
    running = await step_of(model)
    past = [ASKED[1], {"role": "assistant", "content": "Earlier."}]
    await reply_of(model, [ASKED[0], *past, *running[1:]])
    messages = server.chats()[2]["messages"]
    assert [m.get("reasoning_content") for m in messages if m["role"] == "assistant"] == [" ", "Both."]


async def test_a_template_for_one_call_gets_one_at_a_time(server: OpenAIServer, make: MakeModel) -> None:
    words = "Jinja Exception: This model only supports single tool-calls at once!"
    server.script([Step(text="Reading.", tool_calls=TWO), Step(status=500, message=words), Step(text="Done.")])
    model = make(retries=0)
    await reply_of(model, await step_of(model, "Reading."))
    messages = server.chats()[2]["messages"][2:]
    assert [(m["role"], m["content"]) for m in messages] == [
        ("assistant", "Reading."),
        ("tool", "text"),
        ("assistant", ""),
        ("tool", "text"),
    ]
    assert [[call["id"] for call in m["tool_calls"]] for m in messages[::2]] == [
        [m["tool_call_id"]] for m in messages[1::2]
    ]


async def test_forms_that_do_not_help_are_tried_once(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=400, message=GROQ) for _ in range(50)])
    model = make()
    for most in (10, 1):
        before = len(server.requests)
        with pytest.raises(ModelError, match="reasoning_content"):
            await reply_of(model, ASKED)
        assert 1 <= len(server.requests) - before <= most
    assert "tools" in server.chats()[-1], "nothing is left out for good"


KEPT = {"cache_control": {"type": "ephemeral"}}
PAST = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}]
RULES = {"role": "system", "content": "rules, persona, plan"}


def blocks(*texts: str, marked: int) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, **(KEPT if at < marked else {})} for at, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("past", "system", "marked"),
    [
        ([], blocks("rules", ", persona", ", plan", marked=2), [1]),
        (PAST, blocks("rules", ", persona", ", plan", marked=2), [2, 3]),
        (PAST * 2, blocks("rules, persona", ", plan", marked=1), [2, 4, 5]),
        (PAST * 9, blocks("rules, persona", ", plan", marked=1), [16, 18, 19]),
    ],
)
async def test_the_ends_of_what_stays_are_marked_for_anthropic(
    server: OpenAIServer, make: MakeModel, past: list[dict[str, Any]], system: list[dict[str, Any]], marked: list[int]
) -> None:
    messages = [RULES, *past, {"role": "user", "content": "now"}]
    await reply_of(make("openai/claude-proxy"), messages, (5, 14))
    sent = server.chats()[0]["messages"]
    assert sent[0] == {"role": "system", "content": system}
    assert [at for at, message in enumerate(sent) if message.get("cache_control")] == marked
    await reply_of(make("openai/other"), messages, (5, 14))
    assert server.chats()[1]["messages"] == messages


async def test_the_past_of_a_turn_is_marked_in_it_and_in_the_next() -> None:
    """The cache finds a beginning where a mark is, or up to 20 blocks before one."""

    def ends(messages: list[dict[str, Any]]) -> list[int]:
        sent = formed(messages, source="", marks=[4], forms=set())
        return [at for at, message in enumerate(sent) if "cache_control" in message]

    turns = [[{"role": "user", "content": f"{n}"}, {"role": "assistant", "content": f"{n}"}] for n in range(4)]
    requests = [[RULES, *(m for turn in turns[:n] for m in turn), turns[n][0]] for n in range(4)]
    for one, following in pairwise(requests[1:]):
        assert len(one) - 2 in ends(one) and len(one) - 2 in ends(following)


async def test_anthropic_takes_the_marks(server: OpenAIServer) -> None:
    answer = anthropic(({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Done."}]))
    server.script([answer])
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    running = [
        {"role": "user", "content": "now"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "text"},
    ]
    await reply_of(native(server, "anthropic/claude-sonnet-4-5"), [RULES, *PAST, *running], (5, 14))
    body = server.requests[0].body
    assert [block.get("cache_control") for block in body["system"]] == [KEPT["cache_control"]] * 2 + [None]
    marked = [message["role"] for message in body["messages"] if "cache_control" in str(message)]
    assert marked == ["assistant", "user"]
    assert body["messages"][-1]["content"][0] | KEPT == body["messages"][-1]["content"][0]


@pytest.mark.parametrize(("name", "kind"), [("claude-sonnet-4-5", "enabled"), ("claude-opus-4-7", "adaptive")])
async def test_claude_thinks_in_every_turn(server: OpenAIServer, name: str, kind: str) -> None:
    """LiteLLM would switch thinking off for good once a past turn has calls, which go without their blocks."""
    server.script([anthropic(({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Done."}]))])
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    past = [
        {"role": "user", "content": "earlier"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "text"},
        {"role": "assistant", "content": "Yes."},
    ]
    await reply_of(native(server, f"anthropic/{name}"), [RULES, *past, {"role": "user", "content": "now"}])
    assert server.requests[0].body["thinking"]["type"] == kind
