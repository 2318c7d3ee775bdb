"""Rules of the user about tool calls: which run without asking, which always ask, which are refused.

They come from the user's settings (`tools.rules`, and `tools.allow_commands`, whose patterns are rules for all
folders), from `ask --allow` and from answers to questions. A project's settings can hold none. Of the rules that
concern a call, deny counts before ask, and ask before allow.

Allow is strict: all of a command must be covered, and nothing in it may have more effect than its words
(`allowed_commands.py`, `programs.py`). Ask and deny are wide: they count if their words occur anywhere in a command.
They remind the agent of the user's wishes and are no barrier; the sandbox of `tools/shell` is one.
"""

from __future__ import annotations

import asyncio
import fnmatch
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ragforge_tui.conversation.approvals.allowed_commands import (
    Placed,
    judge,
    offer,
    placed_commands,
    problem_of,
    without_redirections,
)
from ragforge_tui.conversation.approvals.programs import recognise
from ragforge_tui.conversation.approvals.reading_commands import reads
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.events import Notice
from ragforge_tui.shared.files import STATE_BYTES, read_regular
from ragforge_tui.shared.rules import COMMANDS, PROGRAMS, WRITES, Rule, parse_rule
from ragforge_tui.shared.tool_calls import ToolAccess, described_tools
from ragforge_tui.tools.base import CallSubject, Ruling
from ragforge_tui.tools.registry import TOOLS
from ragforge_tui.tools.search.gitignore import Patterns
from ragforge_tui.tools.sensitive import Guard

SETTING = "tools.rules"
PATTERNS_SETTING = "tools.allow_commands"

_PARTS = re.compile(r"[;&|()`{}<>\n]+|\$\(")
_GIT_OPTIONS = re.compile(r"-[Cc]|--(git-dir|work-tree|exec-path|namespace)")


class Rules:
    """The user's rules in one workspace.

    Args:
        guard: Judges the words of commands.
        rules: The rules in the settings.
        patterns: Patterns of commands that the settings allow in all folders.
        config_file: The user's settings file. If empty, new rules are not saved and end with the engine.
    """

    def __init__(
        self,
        guard: Guard,
        rules: Iterable[str] = (),
        patterns: Iterable[str] = (),
        config_file: str = "",
    ) -> None:
        self.guard = guard
        self._file = config_file
        self._bad: list[str] = []
        self.saved = list(self._valid(rules, SETTING, ""))
        self.patterns = list(self._valid(patterns, PATTERNS_SETTING, "allow "))
        self.session: list[Rule] = []

    def _valid(self, texts: Iterable[str], source: str, before: str) -> Iterator[Rule]:
        for text in texts:
            try:
                yield valid_rule(before + text)
            except ValueError as error:
                self._bad.append(f"{source}: {text!r} has no effect, because {error}.")

    def problems(self) -> list[str]:
        """Return a sentence for each invalid rule, which has no effect."""
        return self._bad

    def here(self) -> list[Rule]:
        """Return the rules that apply in this workspace."""
        rules = [*self.session, *self.saved, *self.patterns]
        return [rule for rule in rules if not rule.folder or os.path.realpath(_home(rule.folder)) == self.guard.root]

    def judge(self, call: CallSubject, *, careful: bool = False) -> Ruling:
        """Return what the rules say about a call; blocks, as it looks at files.

        Args:
            careful: Only a rule that names the file exactly allows the call: it may hold secrets or run by itself.
        """
        rules = self.here()
        for effect in ("deny", "ask"):
            for rule in rules:
                if rule.effect == effect and self._concerns(rule, call):
                    return Ruling(effect, str(rule))
        allowed = [rule for rule in rules if rule.effect == "allow"]
        if call.command:
            return self._judge_command(allowed, call.command)
        covered = any(self._allows(rule, call, careful) for rule in allowed)
        return Ruling("allow" if covered else "")

    def _judge_command(self, allowed: list[Rule], command: str) -> Ruling:
        if any(rule.about == COMMANDS for rule in allowed):
            return Ruling("allow")
        patterns = [rule.pattern for rule in allowed if rule.tool in ("", COMMANDS)]
        kinds = {rule.about for rule in allowed if rule.about in PROGRAMS}
        missed: list[str] = []
        by_kind: list[str] = []

        def is_known(placed: Placed) -> bool:
            found = recognise(placed, self.guard)
            if found is not None and found.kind in kinds:
                by_kind.append(found.kind)
                missed.extend([f"the rule about {PROGRAMS[found.kind]} does not cover {found.why}"] * bool(found.why))
                return not found.why
            return reads(placed, self.guard)

        judged = judge(patterns, without_redirections(command), self.guard, is_known)
        why = judged.why or (missed[0] if missed else "")
        return Ruling("allow" if judged.covered else "", why, by_kind=judged.covered and bool(by_kind))

    def _allows(self, rule: Rule, call: CallSubject, careful: bool) -> bool:
        if rule.about in _names_of(call) or (rule.about == WRITES and call.access == "write"):
            return not careful
        if not self._is_of(rule, call) or not call.subjects:
            return False
        if careful and any(sign in rule.pattern for sign in "*?["):
            return False
        # A path that leaves the workspace is for the tools to refuse.
        paths = self._relative(call)
        return not any(one.startswith("../") for one in paths) and all(
            _fits(rule.pattern, one, call.access) for one in paths
        )

    def _concerns(self, rule: Rule, call: CallSubject) -> bool:
        """Return whether a call is one that a rule asks about or refuses."""
        if rule.about in _names_of(call) or (rule.about == WRITES and call.access == "write"):
            return True
        if call.command:
            return rule.tool in ("", COMMANDS) and self._names(rule.pattern, call.command)
        return self._is_of(rule, call) and any(_fits(rule.pattern, one, call.access) for one in self._relative(call))

    @staticmethod
    def _is_of(rule: Rule, call: CallSubject) -> bool:
        return rule.tool in _names_of(call) or (rule.tool == WRITES and call.access == "write")

    def _relative(self, call: CallSubject) -> list[str]:
        """Return the subjects of a call; paths of files from the workspace on, with symlinks resolved."""
        if call.access not in ("read", "write"):
            return list(call.subjects)
        return [os.path.relpath(os.path.realpath(Path(self.guard.root, one)), self.guard.root) for one in call.subjects]

    def _names(self, pattern: str, command: str) -> bool:
        """Return whether what a pattern is about occurs in a command, in whatever form."""
        parts = [words for part in _PARTS.split(command) if (words := part.replace("'", " ").replace('"', " ").split())]
        parts += [placed.words for placed in placed_commands(command, self.guard, quoted=True)]
        if pattern in PROGRAMS:
            found = (recognise(Placed("", words, frozenset({self.guard.root})), self.guard) for words in parts)
            return any(one is not None and one.kind == pattern for one in found)
        words = shlex.split(pattern)
        open_ended = words[-1] == "*"
        wanted = words[:-1] if open_ended else words
        for part in parts:
            for at in range(len(part)):
                given = [part[at].rpartition("/")[2], *_without_git_options(part[at + 1 :], part[at])]
                if given[: len(wanted)] == wanted and (open_ended or len(given) == len(wanted)):
                    return True
        return False

    def offer(self, command: str) -> list[str]:
        """Return what to offer for permanent permission after this command, which together allows it.

        A chain gets one for each of its commands that is not allowed; it gets none if one of them has none.
        """
        known = {rule.about for rule in self.here() if rule.effect == "allow"}

        def name_of(placed: Placed) -> str | None:
            found = recognise(placed, self.guard)
            if found is not None and not found.why:
                return found.kind
            return "" if reads(placed, self.guard) else None

        return [one for one in offer(without_redirections(command), self.guard, name_of) if one not in known]

    def allow_in_session(self, abouts: Iterable[str]) -> None:
        """Allow something until the engine ends."""
        self.session += [rule for one in abouts if (rule := Rule("allow", one)) not in self.session]

    async def allow(self, abouts: Sequence[str]) -> Notice:
        """Allow something in this workspace from now on; return a notice that says so, or why it is not saved."""
        rules = [Rule("allow", one, self.guard.root) for one in abouts]
        names = [PROGRAMS.get(one, f"`{one}`") for one in abouts]
        what = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        before = list(self.saved)
        self.saved += [rule for rule in rules if rule not in self.saved]
        text = f"Allowed here without asking: {what}"
        if not self._file:
            return Notice(text=f"{text}, until the chat ends.")
        try:
            await self._store(before)
        except ConfigError as error:
            return Notice(text=f"{text}, but only in this chat: {error}", level="warning")
        return Notice(text=f"{text}. /rules shows and changes it.")

    async def replace(self, old: Rule | None, new: Rule | None) -> None:
        """Put a rule in the place of another one, or add or remove one, and save that.

        Raises:
            ConfigError: It cannot be saved; nothing has changed.
        """
        lists = [self.session, self.saved, self.patterns]
        home = next((rules for rules in lists if old in rules), self.saved)
        before = [list(rules) for rules in lists]
        at = home.index(old) if old is not None and old in home else len(home)
        home[at : at + 1] = [new] if new is not None and new not in home[:at] + home[at + 1 :] else []
        if home is self.patterns and new is not None:
            # A pattern is an allow rule for all folders; what else becomes of it is a rule.
            home.remove(new)
            self.saved.append(new)
        try:
            await self._store(before[1], before[2])
        except ConfigError:
            for rules, earlier in zip(lists, before, strict=True):
                rules[:] = earlier
            raise

    async def _store(self, saved: list[Rule], patterns: list[Rule] | None = None) -> None:
        if not self._file:
            return
        if saved != self.saved:
            await asyncio.to_thread(_save, Path(self._file), SETTING, list(map(str, saved)), list(map(str, self.saved)))
        if patterns is not None and patterns != self.patterns:
            texts = [[rule.about for rule in rules] for rules in (patterns, self.patterns)]
            await asyncio.to_thread(_save, Path(self._file), PATTERNS_SETTING, *texts)


def valid_rule(text: str) -> Rule:
    """Return a rule that can have an effect.

    Raises:
        ValueError: It cannot; the message says why, as a clause.
    """
    rule = parse_rule(text)
    tools = {tool.name for tool in (*described_tools(), *(kind.info for kind in TOOLS))}
    if rule.tool:
        if rule.tool not in tools and rule.tool != WRITES and "__" not in rule.tool:
            raise ValueError(f"there is no tool {rule.tool}")
        if rule.tool != COMMANDS or rule.pattern in PROGRAMS:
            return rule
    elif rule.about in tools or rule.about in (WRITES, *PROGRAMS) or re.fullmatch(r"[\w-]+__[\w-]+", rule.about):
        return rule
    if problem := problem_of(rule.pattern):
        raise ValueError(problem)
    return rule


def _save(file: Path, key: str, before: list[str], after: list[str]) -> None:
    """Write a list of rules; what another process added to the file meanwhile stays."""
    from ragforge_tui.settings.edit import remove_value, set_value
    from ragforge_tui.settings.parse import parse_yaml

    try:
        values = parse_yaml(file, read_regular(file, STATE_BYTES).decode())
    except FileNotFoundError:
        values = None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}.") from error
    section = values.get("tools") if isinstance(values, dict) else None
    found = section.get(key.partition(".")[2]) if isinstance(section, dict) else None
    stored = [str(one) for one in found] if isinstance(found, list) else []
    new = [*after, *(one for one in stored if one not in before and one not in after)]
    # An invalid rule is not among those that are known, and stays in the file.
    if new and new != stored:
        set_value(file, key, new)
    elif stored and not new:
        remove_value(file, key)


def _home(folder: str) -> str:
    return os.path.expanduser(folder)  # noqa: PTH111 - Path.expanduser may raise


def _fits(pattern: str, subject: str, access: ToolAccess) -> bool:
    if access in ("read", "write"):
        return Patterns([pattern if pattern.startswith("/") else pattern.removeprefix("./")], bytewise=False).covers(
            subject, is_folder=False
        )
    return fnmatch.fnmatchcase(subject, pattern)


def _without_git_options(words: list[str], program: str) -> list[str]:
    if program.rpartition("/")[2] != "git":
        return words
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if _GIT_OPTIONS.fullmatch(words[at]) else 1
    return words[at:]


def _names_of(call: CallSubject) -> tuple[str, ...]:
    """Return the names by which a rule may mean a tool: its own, and that of the one that does its work too."""
    return (call.tool, call.joined) if call.joined else (call.tool,)
