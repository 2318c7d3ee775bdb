"""The /rules screen: rules are seen, added, changed and removed by key."""

from __future__ import annotations

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests.rules import ChangeRule
from ragforge_tui.shared.rules import Rule
from ragforge_tui.tui.settings.rules_screen import RulesScreen
from tests.tui.conftest import Chat, ChatRunner


def screen_text(chat: Chat) -> str:
    return "\n".join(strip.text for strip in chat.app.screen._compositor.render_strips())


async def opened(chat: Chat, *rules: Rule) -> None:
    await chat.ready()
    chat.engine.work.rules = list(rules)
    await chat.type("/rules")
    await chat.until(lambda: isinstance(chat.app.screen, RulesScreen) and "enter change" in screen_text(chat))


async def test_rules_are_added_changed_and_removed(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await opened(chat, Rule("allow", "@tests", "/w"), Rule("deny", "git push *"), Rule("ask", "ls", "/other"))
        shown = screen_text(chat)
        assert shown.index("In this folder") < shown.index("In every folder") < shown.index("In other folders")
        assert "running tests" in shown and "/other" in shown
        await chat.press("right")
        await chat.until(lambda: Rule("ask", "@tests", "/w") in chat.engine.work.rules)
        await chat.until(lambda: "Saved: ask @tests in /w" in screen_text(chat))
        await chat.press("w")
        await chat.until(lambda: Rule("ask", "@tests") in chat.engine.work.rules)
        await chat.press("a", *"git commit *", "enter")
        await chat.until(lambda: Rule("allow", "git commit *", "/w") in chat.engine.work.rules)
        await chat.until(lambda: "Saved: allow git commit * in /w" in screen_text(chat))
        await chat.press("enter", "backspace", *"-m", "enter")
        await chat.until(lambda: Rule("allow", "git commit -m", "/w") in chat.engine.work.rules)
        await chat.until(lambda: "Saved: allow git commit -m" in screen_text(chat))
        await chat.press("d")
        await chat.until(lambda: "Removed: allow git commit -m in /w" in screen_text(chat))
        assert len(chat.engine.work.rules) == 3
        await chat.press("escape")
        await chat.until(lambda: not isinstance(chat.app.screen, RulesScreen))


async def test_what_is_no_rule_stays_in_the_line(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await opened(chat)
        assert "No rules: writes and commands ask." in screen_text(chat)
        await chat.press("a", *"@nothing", "enter")
        await chat.until(lambda: "the kinds of programs are @tests" in screen_text(chat))
        chat.engine.failures[ChangeRule] = RagforgeError("This rule would have no effect.", kind="rule")
        await chat.press(*["backspace"] * 8, *"*", "enter")
        await chat.until(lambda: "This rule would have no effect." in screen_text(chat))
        assert "allow *" in screen_text(chat) and not chat.engine.work.rules
        await chat.press("escape")
        await chat.until(lambda: "enter change" in screen_text(chat))
