"""MCP servers, skills and own commands on the screen."""

from __future__ import annotations

from ragforge_tui.shared.events import OwnPromptsFound, TrustRequested
from ragforge_tui.shared.prompts import OwnPrompt
from ragforge_tui.shared.requests.extensions import McpServerState, RestartMcpServer, StopMcpServer
from ragforge_tui.shared.requests.turns import SendMessage
from ragforge_tui.shared.requests.work import AnswerTrust
from ragforge_tui.tui.widgets.list_screen import Picker
from tests.support.fake_engine import FakeEngine
from tests.support.hostile import HOSTILE
from tests.tui.conftest import ChatRunner
from tests.tui.test_questions import screen_text, text

PROMPTS = [
    OwnPrompt(kind="command", name="review", description=f"Review {HOSTILE}", origin="own", text="Review $1."),
    OwnPrompt(kind="command", name="quit", description="not the program's", origin="project", text="Never sent."),
    OwnPrompt(kind="skill", name="translate", description="How we translate", origin="project"),
]


async def test_own_commands_and_skills(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.engine.emit(OwnPromptsFound(prompts=PROMPTS))
        await chat.until(lambda: chat.app.chat.registry.get("translate"))
        assert "Never" not in str(chat.app.chat.registry.get("quit"))
        await chat.type("/review a.py")
        await chat.until(lambda: chat.engine.asked(SendMessage))
        await chat.type("/skill translate hello")
        await chat.until(lambda: len(chat.engine.asked(SendMessage)) == 2)
        first, second = (one.text for one in chat.engine.asked(SendMessage))
        assert first == "Review a.py."
        assert "skill translate" in second and second.endswith("\n\nhello")
        await chat.type("/skills")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and "How we translate" in screen_text(chat))
        assert "\x1b" not in screen_text(chat)
        await chat.press("enter")
        await chat.until(lambda: chat.app.chat.prompt.text == "/review ")


async def test_mcp_servers(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.mcp_servers = [
        McpServerState(name="time", origin="own", where="uvx time", state="ready", tools=["now", "then"]),
        McpServerState(name="bad", origin="project", where="x", state="failed", error=f"no program {HOSTILE}"),
    ]
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("/mcp")
        await chat.until(lambda: "2 tools" in screen_text(chat) and "no program" in screen_text(chat))
        await chat.press("enter")
        await chat.until(lambda: "switch off" in screen_text(chat) and "then" in screen_text(chat))
        await chat.press("down", "enter")
        await chat.until(lambda: [one.name for one in chat.engine.asked(StopMcpServer)] == ["time"])
        await chat.type("/mcp bad")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and "what went wrong" in screen_text(chat))
        await chat.press("enter")
        await chat.until(lambda: [one.name for one in chat.engine.asked(RestartMcpServer)] == ["bad"])


async def test_consent_shows_what_is_asked(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        asked = "Start the MCP servers of .mcp.json?"
        chat.engine.emit(TrustRequested(root="/w#mcp", files=[".mcp.json"], text="{}", question=asked))
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        assert asked in text(chat, "#question-title")
        await chat.press("y")
        await chat.until(lambda: chat.engine.asked(AnswerTrust))
        assert chat.engine.asked(AnswerTrust)[0].allow
