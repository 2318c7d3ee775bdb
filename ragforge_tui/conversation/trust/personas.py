"""Selection of the persona for each turn, with the user's permission for those of a project.

A project's persona is instructions from a repository, so it is used only after the user allowed exactly its text, as
with AGENTS.md. Until then, and if it was refused, another persona of that name is used, else the default. Used by the
agent and its conversations.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from ragforge_tui.conversation.trust.instructions import TrustBook, WorkspaceInstructions
from ragforge_tui.personas import Persona, PersonaLibrary, usable
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import Event, Notice, TrustRequested
from ragforge_tui.shared.persona_records import PersonaInfo, PersonaList, PersonaOrigin, PersonaRemark, PersonaView
from ragforge_tui.tools.registry import READING

log = logging.getLogger(__name__)

LAST_RESORT = "Assistant"
_TRUSTED: tuple[PersonaOrigin, ...] = ("own", "shipped")


class Personas:
    """The personas of one workspace, and the user's answers about those of the project.

    Args:
        book: File of the answers.
        default: Name of the persona of a new conversation.
        user: Returns the user's name.
        tools: Returns the names of all tools.
        interactive: Whether a user can answer; otherwise personas that are not allowed yet stay unused.
    """

    def __init__(
        self,
        library: PersonaLibrary,
        workspace: Path,
        book: Path,
        emit: Callable[[Event], None],
        *,
        default: str,
        user: Callable[[], str],
        tools: Callable[[], Collection[str]],
        interactive: bool,
    ) -> None:
        self.library = library
        self._workspace = workspace
        self._book = TrustBook(book)
        self._emit = emit
        self._default = default
        self._user = user
        self._tools = tools
        self._interactive = interactive
        self._asked: dict[str, tuple[WorkspaceInstructions, asyncio.Future[bool]]] = {}
        self._noticed: set[str] = set()

    # --- choosing ----------------------------------------------------------------------------------------------------

    def find(self, name: str = "") -> Persona:
        """Return a persona by name, by default the default one.

        Raises:
            NotFoundError: There is no such persona.
            RagforgeError: It cannot be used.
        """
        return usable(self.library.load(name or self._default))

    def pick(self, ref: str) -> Persona:
        """Return a persona by its name or its number in the list.

        Raises:
            NotFoundError: There is no such persona.
        """
        return usable(self.library.pick(ref or self._default))

    async def for_turn(self, name: str) -> Persona:
        """Return the persona for a turn; ask about a project's persona, and fall back if it is unknown or refused."""
        try:
            persona = await asyncio.to_thread(self.find, name)
            if persona.origin != "project" or await self._allowed(persona):
                return persona
            reason = f"The project's persona {persona.name} was not allowed"
        except RagforgeError as error:
            reason = error.info.what.rstrip(".")
        persona = self._fallback(name)
        self._notify_once(f"{reason}. {persona.name} answers instead.", "warning")
        return persona

    def _fallback(self, name: str) -> Persona:
        for candidate in (name, self._default, LAST_RESORT):
            try:
                return usable(self.library.load(candidate, _TRUSTED))
            except RagforgeError as error:
                log.info("not used: %s", error)
        return self.library.load(LAST_RESORT, ("shipped",))

    # --- listing -----------------------------------------------------------------------------------------------------

    def list(self) -> PersonaList:
        """Return all personas that can be chosen."""
        try:
            default = self.find().name
        except RagforgeError as error:
            log.info("the default persona is not used: %s", error)
            default = LAST_RESORT
        return PersonaList(personas=[self.info(persona) for persona in self.library.found()], default=default)

    def view(self, ref: str) -> PersonaView:
        """Return a persona with its text, by name or number.

        Raises:
            NotFoundError: There is no such persona.
        """
        persona = self.library.pick(ref)
        return PersonaView(info=self.info(persona), text=persona.text)

    def info(self, persona: Persona) -> PersonaInfo:
        """Return a persona's entry in the list of this workspace."""
        info = persona.info(self._user())
        allowed = self._book.answer(self._question(persona)) if persona.origin == "project" else None
        unknown = [tool for tool in info.tools or [] if tool != READING and tool not in self._tools()]
        remarks = [
            *info.remarks,
            *(PersonaRemark(line=1, column=1, message=f"there is no tool {tool}") for tool in unknown),
        ]
        return msgspec.structs.replace(info, allowed=allowed, remarks=remarks)

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask_again(self, persona: Persona) -> None:
        """Ask about a project's persona that the user chose, unless exactly this text is already allowed."""
        if persona.origin == "project" and self._interactive and not self._book.answer(self._question(persona)):
            self._ask(persona, self._question(persona))

    def answer(self, root: str, allowed: bool) -> None:
        """Apply and store the user's answer."""
        question, asked = self._asked.pop(root, (None, None))
        if question is None or asked is None:
            return
        self._book.remember(question, allowed)
        if not asked.done():
            asked.set_result(allowed)

    def close(self) -> None:
        """Stop asking, because the user is gone."""
        self._interactive = False
        for _, asked in self._asked.values():
            if not asked.done():
                asked.set_result(False)
        self._asked.clear()

    async def _allowed(self, persona: Persona) -> bool:
        question = self._question(persona)
        answer = None if question.root in self._asked else self._book.answer(question)
        if answer is not None or not self._interactive:
            return bool(answer)
        return await asyncio.shield(self._ask(persona, question))

    def _ask(self, persona: Persona, question: WorkspaceInstructions) -> asyncio.Future[bool]:
        """Show the question; a pending question is reused for the same text and replaced for a changed one."""
        previous, asked = self._asked.get(question.root, (None, None))
        if previous is not None and asked is not None and previous.digest == question.digest:
            return asked
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if asked is not None and not asked.done():
            asked.set_result(False)
        self._asked[question.root] = (question, answer)
        files = [name for name, _ in question.files]
        self._emit(TrustRequested(root=question.root, files=files, text=persona.text, persona=persona.name))
        return answer

    def _question(self, persona: Persona) -> WorkspaceInstructions:
        path = Path(persona.path)
        name = path.relative_to(self._workspace).as_posix() if path.is_relative_to(self._workspace) else path.name
        digest = hashlib.sha256(f"persona {persona.digest}".encode()).hexdigest()
        return WorkspaceInstructions(root=f"{self._workspace}#{name}", files=[(name, persona.text)], digest=digest)

    def _notify_once(self, text: str, level: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self._emit(Notice(text=text, level="warning" if level == "warning" else "info"))
