"""Which persona speaks: found for each turn, asked about when it came with the folder, changed on request.

A project's persona is instructions from a repository, so it is used only after the person allowed exactly its text,
as with AGENTS.md. Until then, and where it was refused, the next one of that name speaks, else the default. Used by
the agent and its conversations.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from ragforge_tui.conversation.workspace_instructions import TrustBook, WorkspaceInstructions
from ragforge_tui.errors import RagforgeError
from ragforge_tui.events import Event, Notice, TrustRequested
from ragforge_tui.persona_records import PersonaInfo, PersonaList, PersonaOrigin, PersonaRemark, PersonaView
from ragforge_tui.personas import Persona, PersonaLibrary, usable
from ragforge_tui.tools.narrowed import READING

log = logging.getLogger(__name__)

LAST_RESORT = "Assistant"
_TRUSTED: tuple[PersonaOrigin, ...] = ("own", "shipped")


class Personas:
    """The personas of one workspace, and the person's answers about the project's.

    Args:
        book: File of the answers given.
        default: Name of the one that speaks in a new conversation.
        user: Gives the person's name.
        tools: Gives the names of the tools there are.
        interactive: Whether somebody answers; otherwise what is not allowed yet stays unused.
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
        """The persona of that name, the default one for none.

        Raises:
            NotFoundError: There is none.
            RagforgeError: It cannot be used.
        """
        return usable(self.library.load(name or self._default))

    def pick(self, wanted: str) -> Persona:
        """The persona of that name, or of that number in the list.

        Raises:
            NotFoundError: There is none.
        """
        return usable(self.library.pick(wanted or self._default))

    async def for_turn(self, name: str) -> Persona:
        """The one that answers now; asks about a project's one, and falls back where a name means nothing any more."""
        try:
            persona = await asyncio.to_thread(self.find, name)
            if persona.origin != "project" or await self._allowed(persona):
                return persona
            why = f"The project's persona {persona.name} was not allowed"
        except RagforgeError as error:
            why = error.info.what.rstrip(".")
        persona = self._stand_in(name)
        self._say_once(f"{why}; {persona.name} speaks.", "warning")
        return persona

    def _stand_in(self, name: str) -> Persona:
        for other in (name, self._default, LAST_RESORT):
            try:
                return usable(self.library.load(other, _TRUSTED))
            except RagforgeError as error:
                log.info("not used: %s", error)
        return self.library.load(LAST_RESORT, ("shipped",))

    # --- what is shown -----------------------------------------------------------------------------------------------

    def list(self) -> PersonaList:
        """All one can choose."""
        try:
            default = self.find().name
        except RagforgeError as error:
            log.info("the default persona is not used: %s", error)
            default = LAST_RESORT
        return PersonaList(personas=[self.info(persona) for persona in self.library.found()], default=default)

    def view(self, wanted: str) -> PersonaView:
        """One of them with its text.

        Raises:
            NotFoundError: There is none.
        """
        persona = self.library.pick(wanted)
        return PersonaView(info=self.info(persona), text=persona.text)

    def info(self, persona: Persona) -> PersonaInfo:
        """A persona as it is listed here."""
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
        """The person wants a project's persona: ask, unless exactly this text is allowed already."""
        if persona.origin == "project" and self._interactive and not self._book.answer(self._question(persona)):
            self._put(persona, self._question(persona))

    def answer(self, root: str, allowed: bool) -> None:
        """Take the person's answer and remember it."""
        question, asked = self._asked.pop(root, (None, None))
        if question is None or asked is None:
            return
        self._book.remember(question, allowed)
        if not asked.done():
            asked.set_result(allowed)

    def close(self) -> None:
        """Nobody is there to answer any more."""
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
        return await asyncio.shield(self._put(persona, question))

    def _put(self, persona: Persona, question: WorkspaceInstructions) -> asyncio.Future[bool]:
        """Show the question; asked twice is asked once, about the text as it is now."""
        before, asked = self._asked.get(question.root, (None, None))
        if before is not None and asked is not None and before.digest == question.digest:
            return asked
        fresh: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if asked is not None and not asked.done():
            asked.set_result(False)
        self._asked[question.root] = (question, fresh)
        files = [name for name, _ in question.files]
        self._emit(TrustRequested(root=question.root, files=files, text=persona.text, persona=persona.name))
        return fresh

    def _question(self, persona: Persona) -> WorkspaceInstructions:
        path = Path(persona.path)
        name = path.relative_to(self._workspace).as_posix() if path.is_relative_to(self._workspace) else path.name
        digest = hashlib.sha256(f"persona {persona.digest}".encode()).hexdigest()
        return WorkspaceInstructions(root=f"{self._workspace}#{name}", files=[(name, persona.text)], digest=digest)

    def _say_once(self, text: str, level: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self._emit(Notice(text=text, level="warning" if level == "warning" else "info"))
