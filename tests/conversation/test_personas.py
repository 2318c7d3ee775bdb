"""A persona reaches the model byte for byte, speaks when it was set, and is kept with what it said."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Loaded, ModelSettings, Paths
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.events import ConversationChanged, Event, MessageStarted, ModelChanged, Notice, TrustRequested
from ragforge_tui.shared.persona_records import PersonaBrief
from ragforge_tui.shared.requests.personas import (
    DeletePersona,
    DraftPersona,
    ImprovePersona,
    RestorePersona,
    SavePersona,
)
from tests.conftest import EMBEDDED
from tests.support.model_script import Script
from tests.support.openai_server import OpenAIServer
from tests.support.unreachable_graph import Away


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: no dialect can change who answers."""
    return EMBEDDED


FILES = Path(__file__).parents[1] / "personas" / "files"
STRANGE = (
    "<luciform id=odd⛧>\r\n  <\ufe0fsoul>∆ Ω ✶ & < 👩\u200d🚀 {USER_NAME}, {USER_NAME}</soul>\r\n\t<!-- c -->  \n\n"
)


@pytest.fixture
def shelf(loaded: Loaded) -> Iterator[Path]:
    """The folder of own personas, empty before and after."""
    folder = Path(loaded.paths.data) / "personas"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def project_file(loaded: Loaded, name: str, text: str) -> Path:
    folder = Path(loaded.workspace) / ".ragforge" / "personas"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.luciform"
    path.write_bytes(text.encode())
    return path


def system(server: Script, request: int = -1) -> str:
    (text,) = [m["content"] for m in server.chats()[request]["messages"] if m["role"] == "system"]
    return str(text)


def offered(server: Script, request: int = -1) -> set[str]:
    return {tool["function"]["name"] for tool in server.chats()[request]["tools"]}


def filled(text: str) -> str:
    return text.replace("{USER_NAME}", "Ada")


async def spoken(agent: ConversationAgent) -> list[dict[str, Any]]:
    graph = (await agent.store()).graph
    return await graph.query_readonly(
        "MATCH (m:Message)-[:SPOKEN_AS]->(p:Persona) "
        "RETURN m.turn_index AS turn, m.persona AS persona, p.name AS name, p.text AS text, p.digest AS digest, "
        "p.uuid AS uuid ORDER BY turn"
    )


async def test_the_exact_bytes_on_a_turn_a_switch_a_resume_and_an_edit(
    loaded: Loaded, server: Script, shelf: Path
) -> None:
    texts = {name: (FILES / f"{name}_dynamic.luciform").read_bytes().decode() for name in ("Algareth", "ShadeOS")}
    for name, text in {**texts, "Odd": STRANGE}.items():
        (shelf / f"{name}.luciform").write_bytes(text.encode("utf-16" if name == "Odd" else "utf-8-sig"))
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation(persona="odd")
        await conversation.send_message("one")
        assert filled(STRANGE) in system(server)
        await conversation.set_persona(agent.services.personas.pick("Algareth").name)
        await conversation.send_message("two")
        assert filled(texts["Algareth"]) in system(server)
        assert "👩" not in system(server)
    async with ConversationAgent(loaded) as again:
        resumed = await again.load_conversation(conversation.record.uuid)
        assert resumed.record.persona == "Algareth"
        await resumed.send_message("three")
        assert filled(texts["Algareth"]) in system(server)
        (shelf / "Algareth.luciform").write_bytes(STRANGE.encode())
        await resumed.send_message("four")
        assert filled(STRANGE) in system(server)
        rows = await spoken(again)
        assert [(row["turn"], row["persona"], row["text"]) for row in rows] == [
            (1, "Odd", STRANGE),
            (2, "Algareth", texts["Algareth"]),
            (3, "Algareth", texts["Algareth"]),
            (4, "Algareth", STRANGE),
        ]
        assert rows[1]["uuid"] == rows[2]["uuid"]
        assert rows[0]["uuid"] == rows[3]["uuid"], "one node for one text"
        history = await resumed.get_history()
        assert [turn.messages[1].persona_glyph for turn in history] == ["⛧"] * 4
    raw = server.requests[-1].raw.decode()
    assert "{USER_NAME}" not in raw


async def test_the_usera_is_between_marker_lines(loaded: Loaded, server: Script, shelf: Path) -> None:
    (shelf / "Odd.luciform").write_bytes(STRANGE.encode())
    async with ConversationAgent(loaded) as agent:
        await (await agent.create_conversation(persona="Odd")).send_message("one")
    said = system(server)
    before, begin, after = said.partition("<<<persona ")
    digest = after.partition("\n")[0]
    text, mark, facts = after.partition(f"\npersona {digest}>>>\n\n")
    assert text == f"{digest}\n{filled(STRANGE)}", "byte for byte"
    assert mark and facts.startswith("Environment when this session began:\n")
    assert begin and "your persona" in before
    assert "{USER_NAME}" not in said


async def test_language_is_asked_for(loaded: Loaded, server: Script, shelf: Path) -> None:
    (shelf / "Lyra.luciform").write_text("<x language='Deutsch'>hi</x>", encoding="utf-8")
    async with ConversationAgent(loaded) as agent:
        await (await agent.create_conversation(persona="Lyra")).send_message("one")
        assert "Its language: Deutsch; answer in it even if the user writes in another" in system(server)
        await (await agent.create_conversation(persona="Dev")).send_message("one")
        assert "Its language" not in system(server)


async def test_tools_are_narrowed_and_what_is_not_offered_is_refused(
    loaded: Loaded, server: Script, shelf: Path
) -> None:
    (shelf / "Narrow.luciform").write_text("<x tools='read_file no_such_tool'>hi</x>", encoding="utf-8")
    (shelf / "Silent.luciform").write_text("<x tools='none'>hi</x>", encoding="utf-8")
    write = {"name": "write_file", "arguments": {"path": "new.txt", "content": "x"}}
    server.script([{"tool_calls": [write]}, {"text": "I may not."}, {"text": "two"}, {"text": "three"}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        narrow = await agent.create_conversation(persona="Narrow")
        answer = await narrow.send_message("write")
        assert offered(server) == {"read_file", "update_todos", "ask_user", "remember"}
        assert answer.tool_calls[0].success is False
        assert "may not use write_file" in server.chats()[-1]["messages"][-1]["content"]
        assert not (Path(loaded.workspace) / "new.txt").exists()
        assert any("no_such_tool" in remark.message for remark in agent.services.personas.view("Narrow").info.remarks)
        await (await agent.create_conversation(persona="Silent")).send_message("hello")
        assert offered(server) == {"update_todos", "ask_user", "remember"}
        await (await agent.create_conversation(persona="Researcher")).send_message("hello")
        assert offered(server) >= {"read_file", "grep_files"}
        assert not offered(server) & {"write_file", "edit_file", "create_file", "run_command"}


async def asked(events: asyncio.Queue[Event]) -> TrustRequested:
    async with asyncio.timeout(60):
        while not isinstance(event := await events.get(), TrustRequested):
            pass
        return event


async def test_a_projects_persona_is_asked_about_once_for_each_text(
    loaded: Loaded, server: Script, shelf: Path
) -> None:
    path = project_file(loaded, "Guide", "<x>first {USER_NAME}</x>")
    async with ConversationAgent(loaded, interactive=True) as agent:
        with agent.subscribe() as events:
            conversation = await agent.create_conversation(persona="Guide")
            turn = asyncio.create_task(conversation.send_message("one"))
            question = await asked(events)
            assert (question.persona, question.files) == ("Guide", [".ragforge/personas/Guide.luciform"])
            assert question.text == "<x>first {USER_NAME}</x>"
            assert server.chats() == [], "nothing is sent before the answer"
            agent.services.personas.answer(question.root, True)
            await turn
            assert "<x>first Ada</x>" in system(server)
            await conversation.send_message("two")
            path.write_text("<x>second</x>")
            turn = asyncio.create_task(conversation.send_message("three"))
            question = await asked(events)
            agent.services.personas.answer(question.root, False)
            await turn
            assert "second" not in system(server)
            assert 'name="Assistant"' in system(server)
            assert agent.services.personas.view("Guide").info.allowed is False
            agent.services.personas.ask_again(agent.services.personas.pick("Guide"))
            agent.services.personas.answer((await asked(events)).root, True)
            await conversation.send_message("four")
            assert "<x>second</x>" in system(server)


async def test_no_one_there_to_answer_a_projects_persona_stays_unused(
    loaded: Loaded, server: Script, shelf: Path
) -> None:
    project_file(loaded, "Assistant", "<x>foreign</x>")
    async with ConversationAgent(loaded) as agent:
        with agent.subscribe() as events:
            conversation = await agent.create_conversation()
            await conversation.send_message("one")
            await conversation.send_message("two")
            notices = [event for event in drained(events) if isinstance(event, Notice)]
        assert [notice.text for notice in notices if "persona" in notice.text] == [
            "The project's persona Assistant was not allowed. Assistant answers instead."
        ]
    assert "foreign" not in system(server)
    assert 'name="Assistant"' in system(server)


def drained(events: asyncio.Queue[Event]) -> list[Event]:
    found = []
    while not events.empty():
        found.append(events.get_nowait())
    return found


async def test_a_persona_that_is_gone_is_reported_and_the_default_speaks(
    loaded: Loaded, server: Script, shelf: Path
) -> None:
    (shelf / "Vega.luciform").write_text("<x>vega</x>", encoding="utf-8")
    async with ConversationAgent(loaded) as agent:
        with agent.subscribe() as events:
            conversation = await agent.create_conversation(persona="Vega")
            (shelf / "Vega.luciform").unlink()
            await conversation.send_message("one")
            happened = drained(events)
    started = [event for event in happened if isinstance(event, MessageStarted)]
    assert [(event.persona, event.persona_glyph, event.persona_color) for event in started] == [
        ("Assistant", "◆", "cyan")
    ]
    assert any(isinstance(event, Notice) and "Vega" in event.text for event in happened)


async def test_a_switch_is_stored_and_given(loaded: Loaded, server: Script, shelf: Path) -> None:
    async with ConversationAgent(loaded) as agent:
        with agent.subscribe() as events:
            conversation = await agent.create_conversation()
            await conversation.set_persona(agent.services.personas.pick("4").name)
            changed = [event for event in drained(events) if isinstance(event, ConversationChanged)]
        assert changed[-1].conversation.persona == "Ragnarök"
        store = await agent.store()
        assert (await store.conversations.get(conversation.record.uuid)).persona == "Ragnarök"
        for wrong in ("2fast", "0", "99", "²"):
            with pytest.raises(NotFoundError):
                agent.services.personas.pick(wrong)
        with pytest.raises(NotFoundError):
            await agent.create_conversation(persona="Nobody")


async def test_without_a_graph_it_goes_to_the_journal(
    loaded: Loaded, server: Script, shelf: Path, tmp_path: Path
) -> None:
    away = Away(loaded, tmp_path)
    async with ConversationAgent(away.gone) as agent:
        conversation = await agent.create_conversation(persona="Ragnarök")
        await conversation.send_message("one")
        await conversation.set_persona("Dev")
        await conversation.send_message("two")
    await away.open()
    async with ConversationAgent(away.back) as back:
        resumed = await back.load_conversation(conversation.record.uuid)
        assert resumed.record.persona == "Dev"
        rows = await spoken(back)
        assert [(row["turn"], row["name"]) for row in rows] == [(1, "Ragnarök"), (2, "Dev")]
        assert rows[1]["text"] == back.services.personas.find("Dev").text


def with_model(loaded: Loaded, **changes: Any) -> Loaded:
    settings = msgspec.structs.replace(loaded.settings, model=ModelSettings(**changes))
    return msgspec.structs.replace(loaded, settings=settings)


@pytest.mark.http
async def test_a_preferred_model_counts_only_where_no_one_chose(
    loaded: Loaded, server: OpenAIServer, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "<x model='openai/preferred' temperature='0.3'>hi</x>"
    (shelf / "Vega.luciform").write_text(text, encoding="utf-8")
    async with ConversationAgent(loaded) as agent:  # its settings name openai/scripted
        with agent.subscribe() as events:
            await (await agent.create_conversation(persona="Vega")).send_message("one")
            notices = [event.text for event in drained(events) if isinstance(event, Notice)]
        assert server.chats()[-1]["model"] == "scripted"
        assert server.chats()[-1]["temperature"] == 0.3
        assert "Vega prefers the model openai/preferred; switch with /model openai/preferred." in notices
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
    async with ConversationAgent(with_model(loaded, temperature=0.9)) as agent:
        with agent.subscribe() as events:
            vega = await agent.create_conversation(persona="Vega")
            await vega.send_message("two")
            changed = [event for event in drained(events) if isinstance(event, ModelChanged)]
        assert server.chats()[-1]["model"] == "preferred"
        assert server.chats()[-1]["temperature"] == 0.9, "the settings' own temperature wins"
        assert changed[-1].origin == "preferred by the persona Vega"
        found = (await agent.set_model("openai/mine")).name
        await vega.send_message("three")
        assert (found, server.chats()[-1]["model"]) == ("openai/mine", "mine")


@pytest.mark.http
async def test_a_projects_model_and_temperature_are_only_proposed(
    loaded: Loaded, server: OpenAIServer, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_file(loaded, "Guide", "<x model='openai/elsewhere' temperature='0.3'>hi</x>")
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
    async with ConversationAgent(with_model(loaded), interactive=True) as agent:
        with agent.subscribe() as events:
            turn = asyncio.create_task((await agent.create_conversation(persona="Guide")).send_message("one"))
            agent.services.personas.answer((await asked(events)).root, True)
            await turn
            notices = [event.text for event in drained(events) if isinstance(event, Notice)]
    assert server.chats()[-1]["model"] != "elsewhere"
    assert "temperature" not in server.chats()[-1]
    assert any("/model openai/elsewhere" in text for text in notices)


async def test_a_draft_is_improved_by_the_model_without_tools(loaded: Loaded, server: Script, shelf: Path) -> None:
    better = "<luciform name='Vega'>better ✶</luciform>"
    server.script([{"when": "plain", "text": f"```\n{better}\n```"}, {"when": "plain", "text": "no"}])
    engine = InProcessEngine(loaded)
    try:
        draft = await engine.request(DraftPersona(brief=PersonaBrief(name="Vega", color="bleu")))
        assert draft.info.color == "blue"
        improve = ImprovePersona(text=draft.text, name="Vega")
        assert (await engine.request(improve)).text.strip() == better
        assert not any("tools" in request.body or "functions" in request.body for request in server.requests)
        with pytest.raises(RagforgeError, match="did not reply"):
            await engine.request(improve)
        saved = await engine.request(SavePersona(text=draft.text, name="Vega"))
        assert saved.origin == "own"
        with pytest.raises(RagforgeError, match="already"):
            await engine.request(DraftPersona(brief=PersonaBrief(name="vega")))
        await engine.request(DeletePersona(name="Vega"))
        assert (await engine.request(RestorePersona())).digest == saved.digest
    finally:
        await engine.close()
    offline = InProcessEngine(with_model(loaded, name="offline"))
    try:
        with pytest.raises(RagforgeError, match="No language model"):
            await offline.request(improve)
    finally:
        await offline.close()
