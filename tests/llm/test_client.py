"""The client through LiteLLM itself, against the scripted server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.llm import (
    THIS_MACHINE,
    Finished,
    LiteLLMModel,
    ModelChoice,
    ModelPart,
    Progress,
    ReasoningPart,
    Retrying,
    TextPart,
    ToolRequest,
    check_provider,
    choose_model,
    make_model,
)
from ragforge_tui.llm.provider_errors import to_model_error
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ModelError
from tests.llm.conftest import MakeModel, collect, retries
from tests.support.key_shapes import GITHUB_KEY
from tests.support.model_script import Call, Step
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
TOOL = {
    "type": "function",
    "function": {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}


def text_of(parts: list[ModelPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


async def failure(model: object, **arguments: object) -> tuple[list[ModelPart], ModelError]:
    """The parts that came and the error that ended them."""
    parts: list[ModelPart] = []
    with pytest.raises(ModelError) as caught:
        async for part in model.stream([{"role": "user", "content": "x"}], tools=None, **arguments):  # type: ignore[attr-defined]
            parts.append(part)
    return parts, caught.value


async def test_text_comes_in_pieces_and_ends_with_usage(server: OpenAIServer, make: MakeModel) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    server.script([Step(text="Hello, this is a longer answer — with ünïcode.", usage=usage)])
    parts = await collect(make())
    assert text_of(parts) == "Hello, this is a longer answer — with ünïcode."
    assert len([p for p in parts if isinstance(p, TextPart)]) > 3
    last = parts[-1]
    assert isinstance(last, Finished) and last.reason == "stop"
    assert (last.usage.input_tokens, last.usage.output_tokens, last.usage.cached_tokens) == (100, 7, 60)
    assert last.usage.cost_usd is None
    assert server.chats()[0]["stream_options"] == {"include_usage": True}


async def test_comparing_a_request_with_its_types_would_change_nothing(server: OpenAIServer, make: MakeModel) -> None:
    from openai._utils import async_transform
    from openai.types.chat import completion_create_params

    call = {"id": "1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read a.py"},
        {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "It is small."},
        {"role": "tool", "tool_call_id": "1", "content": "x = 1"},
    ]
    server.script([Step(text="It sets x.")])
    async for _ in make(temperature=0.5).stream(messages, tools=[TOOL]):
        pass
    sent = server.chats()[0]
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "tool"]
    assert sent["tools"] == [TOOL]
    assert await async_transform(sent, completion_create_params.CompletionCreateParamsStreaming) == sent


async def test_a_known_model_has_a_price_and_a_window(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(text="ok", usage={"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010})])
    model = make("openai/gpt-4o-mini")
    last = (await collect(model))[-1]
    assert isinstance(last, Finished) and last.usage.cost_usd is not None and 0 < last.usage.cost_usd < 0.01
    assert model.context_window == 128_000
    assert make("openai/gpt-4o-mini", context_window=99).context_window == 99
    assert make("openai/never-heard-of").context_window == 32_768


async def test_thoughts_written_into_the_text_are_reasoning(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(text="<think>\nLet me think.\n</think>\n\nDone.", chunk=3)])
    parts = await collect(make())
    assert "".join(p.text for p in parts if isinstance(p, ReasoningPart)).strip() == "Let me think."
    assert text_of(parts) == "Done."


async def test_an_empty_end_without_a_reason_is_asked_again(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(unfinished=True), Step(text="Here.")])
    parts = await collect(make())
    assert [type(part) for part in parts[:1]] == [Retrying] and text_of(parts) == "Here."


@pytest.mark.parametrize(
    "step",
    [
        Step(text="Half of an answer", bare=True, cut=True),
        Step(text="Half of an answer", unfinished=True),
        Step(text="Half of an answer", tool_calls=[Call(name="read_file", arguments="{}")], bare=True, cut=True),
    ],
    ids=["connection closed", "whole transfer", "with a call"],
)
async def test_an_answer_without_a_finish_reason_is_not_whole(
    server: OpenAIServer, make: MakeModel, step: Step
) -> None:
    """A server that dies while it answers ends an unchunked transfer in order; LiteLLM then makes up a "stop"."""
    server.script([step])
    parts, error = await failure(make())
    assert text_of(parts) == "Half of an answer" and len(server.requests) == 1
    assert not any(isinstance(part, ToolRequest | Finished) for part in parts)
    assert error.info.kind == "unfinished" and "test server stopped in the middle" in str(error)


async def test_an_answer_with_a_reason_is_whole_however_the_connection_ends(
    server: OpenAIServer, make: MakeModel
) -> None:
    server.script([Step(text="Whole.", bare=True), Step(finish="stop")])
    assert text_of(await collect(make())) == "Whole."
    assert [type(part) for part in await collect(make())] == [Finished]


async def test_stop_with_tool_calls_is_a_call(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(tool_calls=[Call(name="read_file", arguments="{}")], finish="stop")])
    parts = await collect(make(), tools=[TOOL])
    assert [type(part) for part in parts if not isinstance(part, Progress)] == [ToolRequest, Finished]
    assert isinstance(parts[-1], Finished) and parts[-1].reason == "tool_calls"


async def test_reasoning_comes_apart_from_text(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(reasoning="Let me think about it.", text="Done.")])
    parts = await collect(make())
    assert "".join(p.text for p in parts if isinstance(p, ReasoningPart)) == "Let me think about it."
    assert text_of(parts) == "Done."


async def test_parallel_tool_calls_are_put_together(server: OpenAIServer, make: MakeModel) -> None:
    calls = [Call(name="read_file", arguments={"path": f"src/file_{i}.py"}) for i in range(3)]
    server.script([Step(text="Reading.", tool_calls=calls, chunk=3)])
    parts = await collect(make(), tools=[TOOL])
    requests = [p for p in parts if isinstance(p, ToolRequest)]
    assert [r.arguments for r in requests] == [f'{{"path": "src/file_{i}.py"}}' for i in range(3)]
    assert [r.id for r in requests] == [f"call_{i}_read_file" for i in range(3)]
    assert isinstance(parts[-1], Finished) and parts[-1].reason == "tool_calls"
    assert server.chats()[0]["tools"] == [TOOL]


async def test_malformed_arguments_and_missing_ids_are_passed_on(server: OpenAIServer, make: MakeModel) -> None:
    calls = [Call(name="read_file", arguments='{"path": "a.py', id=""), Call(name="grep_files", arguments="", id="")]
    server.script([Step(tool_calls=calls)])
    first, second = [p for p in await collect(make(), tools=[TOOL]) if isinstance(p, ToolRequest)]
    assert (first.name, first.arguments) == ("read_file", '{"path": "a.py')
    assert (second.name, second.arguments) == ("grep_files", "")
    assert first.id and second.id and first.id != second.id


async def test_bad_key(server: OpenAIServer, make: MakeModel) -> None:
    key = "my-own-unusual-key-123"
    server.script([Step(status=401, message=f"Incorrect API key provided: {key} or sk-abcdefghij0123456789abcd")])
    parts, error = await failure(make(key=key))
    assert error.info.kind == "bad_key" and not error.transient and parts == []
    assert "refused the API key" in str(error) and "The test server" in str(error)
    assert key not in str(error) and "0123456789" not in str(error)
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"


async def test_a_key_of_the_environment_goes_to_no_other_address(
    server: OpenAIServer, make: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment-0123456789")
    await collect(make())
    assert b"sk-of-the-environment" not in server.requests[0].raw
    assert "sk-of-the-environment" not in str(server.requests[0].headers)


async def test_unknown_model(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=404, message="The model `nope` does not exist", code="model_not_found")])
    _, error = await failure(make("openai/nope"))
    assert error.info.kind == "unknown_model"
    assert str(error) == (
        "The test server has no model openai/nope, or the key has no access to it. "
        "Choose another model with /model, then /retry."
    )


@pytest.mark.parametrize(
    ("name", "why"), [("foo", "its name does not include"), ("foo/bar", "there is no provider named foo")]
)
async def test_a_model_without_a_known_provider_is_told_in_our_words(name: str, why: str) -> None:
    choice = ModelChoice(name=name, origin="settings", destination=name)
    _, error = await failure(LiteLLMModel(choice, ModelSettings(name=name)))
    with pytest.raises(ModelError) as checked:
        await check_provider(choice)
    assert str(error) == str(checked.value) and error.info.kind == "unknown_model"
    assert why in str(error) and "LLM" not in str(error) and "http" not in str(error) and "/model" in str(error)


def test_a_missing_model_of_ollama_can_be_pulled() -> None:
    refused = Exception('{"error": "model \'nope\' not found"}')
    error = to_model_error(refused, model="ollama/nope", destination=THIS_MACHINE)
    assert error.info.kind == "unknown_model" and "`ollama pull nope`" in str(error)


async def test_a_name_without_provider_works_at_a_custom_address(server: OpenAIServer, make: MakeModel) -> None:
    for name in ("qwen3", "Qwen/Qwen3-4B"):
        assert text_of(await collect(make(name), "echo me")) == "echo me"
    assert [body["model"] for body in server.chats()] == ["qwen3", "Qwen/Qwen3-4B"]


async def test_rate_limit_honours_retry_after(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=429, headers={"Retry-After": "0.2"}), Step(text="at last")])
    parts = await collect(make())
    [retry] = retries(parts)
    assert parts[0] is retry and retry.wait_seconds == 0.2 and (retry.attempt, retry.attempts) == (1, 4)
    assert text_of(parts) == "at last"


async def test_rate_limit_shows_how_long_to_wait(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=429, headers={"Retry-After": "900"})])
    parts, error = await failure(make())
    assert parts == [] and error.info.kind == "rate_limit" and error.retry_after == 900
    assert "Wait 15 min" in str(error)


async def test_no_credit_is_not_retried(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=429, message="You exceeded your current quota", code="insufficient_quota")])
    parts, error = await failure(make())
    assert parts == [] and error.info.kind == "rate_limit" and "credit" in str(error)


async def test_server_error_then_success(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=500), Step(status=503), Step(text="fine")])
    parts = await collect(make())
    assert [retry.attempt for retry in retries(parts)] == [1, 2]
    assert text_of(parts) == "fine" and len(server.requests) == 3


async def test_retries_end(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=500, message="overloaded") for _ in range(9)])
    parts, error = await failure(make(retries=2))
    assert len(retries(parts)) == 2 and len(server.requests) == 3
    assert error.info.kind == "provider" and "500" in str(error)
    assert "“overloaded”. Retry" in str(error)  # What the server said does not run into what to do about it.


async def test_context_too_long(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=400, message="This model's maximum context length is 8192 tokens.")])
    _, error = await failure(make())
    assert error.info.kind == "context_too_long"


async def test_bad_request_shows_what_the_provider_reported(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=400, message="temperature must be 1")] * 20)
    _, error = await failure(make())
    assert error.info.kind == "bad_request" and "temperature must be 1" in str(error)
    assert "litellm" not in str(error).lower() and "OpenAIException" not in str(error)


async def test_cut_connection_keeps_what_came_and_is_not_asked_again(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(text="Half of an ans", cut=True)])
    parts, error = await failure(make())
    assert text_of(parts) == "Half of an ans" and retries(parts) == []
    assert error.info.kind == "no_network" and len(server.requests) == 1
    assert error.info.what.endswith(" broke during the answer.") and "No connection" not in str(error)


@pytest.mark.parametrize(
    ("destination", "who"),
    [("this machine", "the model's server on this machine (127.0.0.1:8080)"), ("api.example.com", "api.example.com")],
)
async def test_who_was_cut_off_is_reported(destination: str, who: str) -> None:
    choice = ModelChoice(name="openai/x", origin="", destination=destination, api_base="http://a:b@127.0.0.1:8080/v1")
    assert LiteLLMModel(choice, ModelSettings())._where() == who


async def test_connection_dropped_before_anything_is_retried(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(drop=True), Step(text="back")])
    parts = await collect(make())
    assert len(retries(parts)) == 1 and text_of(parts) == "back"


async def test_no_one_listens(server: OpenAIServer, make: MakeModel) -> None:
    model = make(retries=0)
    await server.stop()
    _, error = await failure(model)
    assert error.info.kind == "no_network" and "refused" in str(error)


async def test_stall_between_tokens(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(text="And then", stall=True)])
    parts, error = await failure(make(token_timeout=1.5))
    assert text_of(parts) == "And then" and error.info.kind == "stall" and "1.5 s" in str(error)


async def test_an_answer_that_does_not_begin_is_asked_for_once_more(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(stall=True), Step(text="awake")])
    parts = await collect(make(first_token_timeout=1.5))
    [retry] = retries(parts)
    assert (retry.attempt, retry.attempts) == (1, 1)
    assert "did not start to answer within 1.5 s" in retry.reason and text_of(parts) == "awake"
    server.script([Step(stall=True) for _ in range(5)])
    _, error = await failure(make(first_token_timeout=1.5))
    assert error.info.kind == "stall" and len(server.requests) == 4


def local(server: OpenAIServer, **settings: object) -> LiteLLMModel:
    choice = ModelChoice(name="openai/x", origin="", destination=THIS_MACHINE, api_base=server.base_url)
    return LiteLLMModel(choice, ModelSettings(**settings), backoff=0.01)  # type: ignore[arg-type]


async def test_a_server_on_this_machine_may_load_its_model_first(server: OpenAIServer) -> None:
    """Neither the wait for the first token nor that after an empty first chunk counts as a stall."""
    server.script([Step(text="loaded", gate="model")])
    asking = asyncio.create_task(collect(local(server, token_timeout=0.4)))
    await until(lambda: server.requests)
    done, _ = await asyncio.wait({asking}, timeout=0.9)
    assert not done
    server.release("model")
    assert text_of(await asking) == "loaded" and len(server.requests) == 1


async def test_a_limit_that_was_set_holds_on_this_machine_without_a_second_request(server: OpenAIServer) -> None:
    server.script([Step(stall=True)])
    _, error = await failure(local(server, first_token_timeout=0.3))
    assert len(server.requests) == 1 and "model.first_token_timeout" in str(error)
    assert str(error).startswith(f"The model's server on this machine (127.0.0.1:{server.port}) did not start")


def test_how_long_a_first_token_may_take() -> None:
    def limit(destination: str, **settings: Any) -> float | None:
        choice = ModelChoice(name="openai/x", origin="", destination=destination)
        return LiteLLMModel(choice, ModelSettings(**settings))._first_token_timeout()

    assert limit(THIS_MACHINE) is None and limit("api.example.com") == 600
    assert limit("api.example.com", token_timeout=1800) == 1800  # Set for a slow provider before there were two.
    assert limit("api.example.com", token_timeout=60) == 600
    assert limit(THIS_MACHINE, first_token_timeout=30) == limit("x", first_token_timeout=30) == 30


async def test_changed_settings_hold_from_the_next_request_on(server: OpenAIServer) -> None:
    now = ModelSettings(retries=0)
    choice = ModelChoice(name="openai/x", origin="", destination=THIS_MACHINE, api_base=server.base_url)
    model = LiteLLMModel(choice, now, live=lambda: now)
    assert text_of(await collect(model)) == "hello"
    now = ModelSettings(retries=0, first_token_timeout=0.3)
    server.script([Step(stall=True)])
    _, error = await failure(model)
    assert "within 0.3 s" in str(error)


async def test_cancelling_closes_the_connection(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(text="word " * 500, delay=0.05)])
    started = asyncio.Event()

    async def read() -> None:
        async for part in make().stream([{"role": "user", "content": "x"}], tools=None):
            if isinstance(part, TextPart):
                started.set()

    task = asyncio.create_task(read())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(server.client_left.wait(), 10)


async def test_closing_the_stream_closes_the_connection(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(text="word " * 500, delay=0.05)])
    stream = make().stream([{"role": "user", "content": "x"}], tools=None)
    assert isinstance(await anext(stream), TextPart)
    await stream.aclose()
    await asyncio.wait_for(server.client_left.wait(), 10)


async def test_the_wait_of_a_retry_can_be_cancelled(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=429, headers={"Retry-After": "100"})])
    stream = make().stream([{"role": "user", "content": "x"}], tools=None)
    assert retries([await anext(stream)])[0].wait_seconds == 100
    task = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(server.requests) == 1


async def test_complete_is_whole_and_without_tools(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(status=500), Step(text="A title")])
    text, usage = await make().complete([{"role": "user", "content": "title?"}], max_tokens=20)
    assert text == "A title" and usage.output_tokens > 0
    body = server.chats()[-1]
    assert "tools" not in body and 20 in (body.get("max_tokens"), body.get("max_completion_tokens"))


async def test_a_final_answer_without_tools_after_tool_calls(server: OpenAIServer, make: MakeModel) -> None:
    call = {"id": "a1b2c3d4e", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "read"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a1b2c3d4e", "content": "text of the file"},
    ]
    server.script([Step(text="It says text.")])
    assert text_of([part async for part in make().stream(messages, tools=None)]) == "It says text."
    assert server.chats()[0]["messages"] == messages


async def test_runs_of_one_role_leave_joined(server: OpenAIServer, make: MakeModel) -> None:
    messages = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
    async for _ in make().stream(messages, tools=None):
        pass
    await make().complete(messages)
    assert [body["messages"] for body in server.chats()] == [[{"role": "user", "content": "one\n\ntwo"}]] * 2


async def test_a_long_rule_is_not_taken_for_a_loop(server: OpenAIServer, make: MakeModel) -> None:
    server.script([Step(text="-" * 300, chunk=1)])
    assert text_of(await collect(make())) == "-" * 300


async def test_the_settings_alone_lead_there(server: OpenAIServer) -> None:
    settings = ModelSettings(name="openai/anything", api_base=server.base_url)
    choice = await choose_model(settings, {})
    assert choice.destination == "this machine" and not choice.offline
    parts = [p async for p in make_model(choice, settings).stream([{"role": "user", "content": "ping"}], tools=None)]
    assert text_of(parts) == "ping"


QUIET = """
import asyncio, sys
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.llm import ModelChoice, LiteLLMModel, preload

async def main():
    await preload()
    loaded = set(sys.modules)
    model = LiteLLMModel(
        ModelChoice(name="openai/x", origin="", destination="here", api_base=sys.argv[1]),
        ModelSettings(retries=0), backoff=0.01)
    for attempt in range(5):
        try:
            async for part in model.stream([{"role": "user", "content": "x"}], tools=None):
                pass
        except ModelError:
            pass
        # The first message takes no longer than any other; errors may load more.
        if attempt == 0:
            assert not (late := set(sys.modules) - loaded), late
    stream = model.stream([{"role": "user", "content": "x"}], tools=None)
    await anext(stream)
    await stream.aclose()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_nothing_is_printed_or_loaded_late_and_no_dotenv_is_read(server: OpenAIServer, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LITELLM_LOG=DEBUG\nOPENAI_API_BASE=http://127.0.0.1:9/\n")
    steps = [Step(text="ok"), Step(status=401), Step(status=500), Step(text="part", cut=True), Step(drop=True)]
    server.script([*steps, Step(text="long " * 100, delay=0.05)])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        QUIET,
        server.base_url,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (out, err, process.returncode) == (b"", b"", 0)
    assert len(server.requests) == 6


def test_importing_the_room_imports_no_library() -> None:
    code = (
        "import sys, ragforge_tui.llm; "
        "sys.exit(', '.join(m for m in ('litellm', 'openai', 'httpx', 'tiktoken') if m in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_unmasked_stored_secrets_are_masked_when_sent(server: OpenAIServer, make: MakeModel) -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "read_file", "arguments": f'{{"path": "{GITHUB_KEY}"}}'},
    }
    messages = [
        {"role": "system", "content": f"persona {GITHUB_KEY}"},
        {"role": "user", "content": f"mine is {GITHUB_KEY}"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": f"KEY={GITHUB_KEY}"},
    ]
    server.script([Step(text="ok")])
    async for _ in make().stream(messages, tools=[TOOL]):
        pass
    system, *rest = server.chats()[0]["messages"]
    assert system["content"] == f"persona {GITHUB_KEY}"  # byte for byte
    assert GITHUB_KEY not in str(rest)
    assert [message["role"] for message in rest] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("name", ["openai/scripted", "deepseek/deepseek-chat"])
async def test_a_redirect_to_another_host_is_not_followed(name: str, server: OpenAIServer, make: MakeModel) -> None:
    async with OpenAIServer(turns_only=False) as other:
        server.script([Step(status=307, headers={"location": f"{other.base_url}/chat/completions"})] * 3)
        parts, error = await failure(make(name, key="sk-none"))
        assert (parts, other.requests, len(server.requests)) == ([], [], 1)
        assert f"redirects to http://127.0.0.1:{other.port}, another host" in error.info.what


async def test_a_redirect_within_the_host_is_followed(server: OpenAIServer, make: MakeModel) -> None:
    moved = Step(status=307, headers={"location": f"{server.base_url}/chat/completions"})
    server.script([moved, Step(text="Here.")])
    assert text_of(await collect(make())) == "Here."
