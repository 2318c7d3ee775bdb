"""What the commands about personas do: list, choose, make, edit, delete, bring back.

A part of `ChatActions`. Pickers, wizard and editor are imported when first wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.persona_records import PersonaBrief, PersonaDraft, PersonaInfo, PersonaList, PersonaView
from ragforge_tui.protocol import (
    CheckPersona,
    DeletePersona,
    DraftPersona,
    ImprovePersona,
    ListPersonas,
    RestorePersona,
    SavePersona,
    SetPersona,
    ShowPersona,
)
from ragforge_tui.text import plain_text

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp
    from ragforge_tui.tui.persona_picker import Picked
    from ragforge_tui.tui.persona_review import Reviewed

ONE_LINE = ("name", "color", "language", "purpose")
"""The order of `Name | colour | language | description`."""
UNREAD = "\ufffd stands where bytes of the file could not be read; saving writes that sign in their place."


class PersonaActions:
    """The commands about personas of one chat screen."""

    _app: ChatApp
    _asked: tuple[str, str] = ("", "")
    """The project's persona the person was asked about when they chose it, and who spoke before."""
    _left: tuple[str, str] = ("", "")
    """The deleted persona that spoke, and who speaks in its place."""

    # -- knowing them

    async def learn_personas(self) -> None:
        """Ask which there are, for the header and the session list."""
        self._learn(await self._app.controller.ask(ListPersonas()))

    def _learn(self, found: PersonaList) -> None:
        state = self._app.controller.state
        state.looks = {info.name: (info.glyph, info.color) for info in found.personas}
        names = {info.name.casefold(): info.name for info in found.personas}
        wanted = state.persona or found.default
        state.persona = names.get(wanted.casefold(), found.default)
        if wanted.casefold() not in names:
            self._say(f"There is no persona named {_line(wanted)}; {_line(state.persona)} speaks.")
        self._app.refresh_chrome()

    async def _all(self) -> PersonaList:
        found = await self._app.controller.ask(ListPersonas())
        self._learn(found)
        return found

    async def _show(self, name: str) -> PersonaView:
        return await self._app.controller.ask(ShowPersona(name=name))

    @property
    def _speaking(self) -> str:
        state = self._app.controller.state
        return (state.conversation.persona if state.conversation else "") or state.persona

    # -- choosing

    async def personas(self) -> None:
        """Show all of them, with what they are."""
        from ragforge_tui.tui.persona_picker import PersonaPicker

        self._app.push_screen(PersonaPicker(self._all, self._show, current=self._speaking), self._picked)

    def _picked(self, picked: Picked | None) -> None:
        if picked is None:
            return
        do = {"use": self.set_persona, "edit": self.edit_persona, "delete": self.delete_persona}[picked.action]
        self._app.controller.spawn(do(picked.name), group="persona", exclusive=True)

    async def set_persona(self, wanted: str) -> None:
        """Let another one speak from the next message on; without a name, pick."""
        if not wanted:
            await self.personas()
            return
        state = self._app.controller.state
        info = await self._app.controller.ask(SetPersona(name=wanted, conversation_id=state.conversation_id))
        # One that hides another gives way to that one when it is refused: its name stays.
        asked = info.origin == "project" and not info.allowed
        self._asked = (info.name, self._speaking) if asked and not info.shadows else ("", "")
        state.looks[info.name] = (info.glyph, info.color)
        state.persona = info.name
        if state.conversation is not None:
            state.conversation.persona = info.name
        self._app.refresh_chrome()
        once = ", once you let it" if asked else ""
        self._say(f"{_signed(info)} speaks from the next message on{once}.{_hides(info)}")
        if info.greeting:
            self._say(_line(info.greeting))

    async def persona_refused(self, name: str) -> None:
        """The person did not let the project's persona speak they had chosen: who spoke before goes on."""
        refused, before = self._asked
        if before and refused == name == self._speaking and before != name:
            await self.set_persona(before)

    # -- making

    async def create_persona(self, line: str) -> None:
        """Ask what it should be, or take it from one line, and show the draft."""
        if line:
            parts = [part.strip() for part in line.split("|", len(ONE_LINE) - 1)]
            await self._draft(PersonaBrief(**dict(zip(ONE_LINE, parts, strict=False))))
            return
        self._ask_brief(None)

    def _ask_brief(self, said: PersonaBrief | None) -> None:
        from ragforge_tui.tui.persona_wizard import PersonaWizard

        def told(brief: PersonaBrief | None) -> None:
            if brief is not None:
                self._app.controller.spawn(self._draft(brief), group="persona", exclusive=True)

        self._app.push_screen(PersonaWizard(said), told)

    async def _draft(self, brief: PersonaBrief) -> None:
        try:
            draft = await self._app.controller.ask(DraftPersona(brief=brief))
        except RagforgeError as error:
            if error.info.kind in ("taken", "bad_name"):
                self._ask_brief(brief)  # What was said is not lost for a name.
            raise
        self._review(draft, instead_of="")

    def _review(self, draft: PersonaDraft, *, instead_of: str, note: str = "") -> None:
        from ragforge_tui.tui.persona_review import PersonaReview

        name = draft.info.name

        async def improve(text: str) -> PersonaDraft:
            return await self._app.controller.ask(ImprovePersona(text=text, name=name))

        def done(reviewed: Reviewed | None) -> None:
            if reviewed is None:
                self._say("Nothing was saved.")
            elif reviewed.action == "edit":
                self._app.controller.spawn(self._edit(reviewed.text, name, instead_of), group="persona", exclusive=True)
            else:
                use = reviewed.action == "use"
                keep = self._save(reviewed.text, name, instead_of, use=use)
                self._app.controller.spawn(keep, group="persona", exclusive=True)

        self._app.push_screen(PersonaReview(draft, improve, note=note), done)

    async def _save(self, text: str, name: str, instead_of: str, *, use: bool) -> None:
        try:
            info = await self._app.controller.ask(SavePersona(text=text, name=name, instead_of=instead_of))
        except RagforgeError as error:
            draft = await self._app.controller.ask(CheckPersona(text=text, name=name))
            self._review(draft, instead_of=instead_of, note=error.info.sentence())
            return
        await self.learn_personas()
        if use:
            await self.set_persona(info.name)
        else:
            self._say(f"Saved: {_signed(info)}.{_hides(info)} /set-persona {_line(info.name)} lets it speak.")

    # -- changing

    async def edit_persona(self, name: str) -> None:
        """Open one in the editor; another's gets an own copy that hides it."""
        view = await self._show(name or self._speaking)
        await self._edit(view.text, view.info.name, view.info.name, before=view.text)

    async def _edit(self, text: str, name: str, instead_of: str, *, before: str | None = None) -> None:
        from ragforge_tui.tui.editor import edited

        after = await edited(self._app, text, "persona.luciform")
        if after == before:
            self._say("Nothing was changed.")
            return
        draft = await self._app.controller.ask(CheckPersona(text=after, name=name))
        note = UNREAD if "\ufffd" in (before or "") and "\ufffd" in after else ""
        if draft.info.problem:
            note = f"It cannot be used: {draft.info.problem}"
        self._review(draft, instead_of=instead_of, note=note)

    async def delete_persona(self, name: str) -> None:
        """Put one of the person's own aside."""
        if not name:
            raise NotFoundError("Which persona?", todo="/delete-persona NAME, or ctrl+d in /personas.")
        spoke = self._speaking
        info = await self._app.controller.ask(DeletePersona(name=name))
        self._say(f"Deleted: {_signed(info)}. /undo-delete-persona brings it back.")
        state = self._app.controller.state
        if _same(info.name, state.persona):
            state.persona = ""
        found = await self._all()
        self._left = ("", "")
        if _same(info.name, spoke):
            # The one it hid has its name and so goes on in its place.
            hidden = next((other.name for other in found.personas if _same(info.name, other.name)), "")
            await self.set_persona(hidden or found.default)
            self._left = (info.name, self._speaking)

    async def undo_delete_persona(self) -> None:
        """Bring back the one deleted last; it speaks again when it did and nobody else was chosen since."""
        info = await self._app.controller.ask(RestorePersona())
        self._say(f"{_signed(info)} is back.")
        await self.learn_personas()
        left, in_place = self._left
        self._left = ("", "")
        if left == info.name and in_place == self._speaking:
            await self.set_persona(info.name)

    def _say(self, text: str) -> None:
        self._app.controller.notice(text, "info")


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())


def _signed(info: PersonaInfo) -> str:
    return f"{_line(info.glyph) or '✶'} {_line(info.name)}"


def _hides(info: PersonaInfo) -> str:
    if not info.shadows:
        return ""
    whose = {"own": "yours", "project": "the project's", "shipped": "the shipped one"}
    return f" It hides {' and '.join(whose[origin] for origin in info.shadows)} of the same name."
