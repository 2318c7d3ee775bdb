"""Commands about personas: list, choose, create, edit, delete, restore.

Picker, form and editor are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.persona_records import ONE_LINE, PersonaBrief, PersonaDraft, PersonaInfo, PersonaView
from ragforge_tui.shared.requests import personas as requests
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.personas.persona_preview import signature

if TYPE_CHECKING:
    from ragforge_tui.tui.personas.persona_editor import Reviewed
    from ragforge_tui.tui.personas.persona_picker import Picked

COMMANDS = Commands("Personas")

UNREAD = "\ufffd marks bytes of the file that could not be read; saving replaces them with that character."

# -- choosing


@COMMANDS.add(
    "personas",
    "Show the personas and choose one",
    ("persona",),
    arguments="[NAME]",
    key="f2",
    completes="personas",
    opens=True,
)
async def show_personas(host: Host, name: str) -> None:
    """Switch to a persona; without a name, show all of them with their descriptions."""
    if name:
        await set_persona(host, name)
        return
    from ragforge_tui.tui.personas.persona_picker import PersonaPicker

    async def show(name: str) -> PersonaView:
        return await host.session.ask(requests.ShowPersona(name=name))

    def picked(picked: Picked) -> None:
        do = {"use": set_persona, "edit": edit_persona, "delete": delete_persona}[picked.action]
        host.session.spawn(do(host, picked.name), group="persona", exclusive=True)

    current = host.session.state.speaker
    host.open_screen(PersonaPicker(host.session.load_personas, show, current=current), picked)


@COMMANDS.add("set-persona", "Switch to another persona", arguments="NAME|NUMBER", completes="personas")
async def set_persona(host: Host, wanted: str) -> None:
    """Let another persona speak from the next message on; without a name, show all."""
    if not wanted:
        await show_personas(host, "")
        return
    state = host.session.state
    info = await host.session.ask(requests.SetPersona(name=wanted, conversation_id=state.conversation_id))
    # A persona that hides another gives way to that one when it is refused: its name stays.
    asked = info.origin == "project" and not info.allowed
    state.refusable_persona = (info.name, state.speaker) if asked and not info.shadows else ("", "")
    state.persona_styles[info.name] = (info.glyph, info.color)
    state.persona = info.name
    if state.conversation is not None:
        state.conversation.persona = info.name
    host.session.changed()
    once = ", once you allow it" if asked else ""
    host.session.notice(f"{signature(info)} speaks from the next message on{once}.{_hides(info)}")
    if info.greeting:
        host.session.notice(one_line(info.greeting))


async def restore_persona(host: Host, refused: str) -> None:
    """Switch back to the previous persona, since the user does not trust the project's persona they chose."""
    name, before = host.session.state.refusable_persona
    if before and name == refused == host.session.state.speaker and before != refused:
        await set_persona(host, before)


# -- creating


@COMMANDS.add(
    "create-persona", "Create a persona: Name | colour | language | description, or in a form", arguments="[LINE]"
)
async def create_persona(host: Host, line: str) -> None:
    """Show a draft of a new persona, described by one line or in a form."""
    if line:
        parts = [part.strip() for part in line.split("|", len(ONE_LINE) - 1)]
        await _draft(host, PersonaBrief.of(dict(zip(ONE_LINE, parts, strict=False))))
        return
    _ask_brief(host, host.session.state.unfinished_persona, kept=True)


def _ask_brief(host: Host, previous: PersonaBrief | None, *, kept: bool = False) -> None:
    """Show the form; what is typed and not used is kept for the next time."""
    from ragforge_tui.tui.personas.persona_editor import PersonaForm

    form, state = PersonaForm(previous, kept=kept), host.session.state

    def finished(brief: PersonaBrief | None) -> None:
        state.unfinished_persona = None
        if brief is not None:
            host.session.spawn(_draft(host, brief), group="persona", exclusive=True)
        elif any(form.answers().values()):
            state.unfinished_persona = PersonaBrief.of(form.answers())
            host.session.notice("What you typed is kept until the chat ends: /create-persona shows it again.")

    host.app.push_screen(form, finished)


async def _draft(host: Host, brief: PersonaBrief) -> None:
    try:
        draft = await host.session.ask(requests.DraftPersona(brief=brief))
    except RagforgeError as error:
        if error.info.kind in ("taken", "bad_name"):
            _ask_brief(host, brief)  # The other answers are not lost for a bad name.
        raise
    _review(host, draft, instead_of="")


def _review(host: Host, draft: PersonaDraft, *, instead_of: str, note: str = "") -> None:
    from ragforge_tui.tui.personas.persona_editor import PersonaReview

    name = draft.info.name

    async def improve(text: str) -> PersonaDraft:
        return await host.session.ask(requests.ImprovePersona(text=text, name=name))

    def done(reviewed: Reviewed | None) -> None:
        if reviewed is None:
            host.session.notice("Nothing was saved.")
        elif reviewed.action == "edit":
            edit = _edit(host, reviewed.text, name, instead_of)
            host.session.spawn(edit, group="persona", exclusive=True)
        else:
            save = _save(host, reviewed.text, name, instead_of, use=reviewed.action == "use")
            host.session.spawn(save, group="persona", exclusive=True)

    host.app.push_screen(PersonaReview(draft, improve, note=note), done)


async def _save(host: Host, text: str, name: str, instead_of: str, *, use: bool) -> None:
    session = host.session
    try:
        info = await session.ask(requests.SavePersona(text=text, name=name, instead_of=instead_of))
    except RagforgeError as error:
        draft = await session.ask(requests.CheckPersona(text=text, name=name))
        _review(host, draft, instead_of=instead_of, note=error.info.sentence())
        return
    await session.load_personas()
    if use:
        await set_persona(host, info.name)
    else:
        session.notice(f"Saved: {signature(info)}.{_hides(info)} /set-persona {one_line(info.name)} switches to it.")


# -- changing


@COMMANDS.add("edit-persona", "Edit a persona in $EDITOR", arguments="[NAME]", completes="personas")
async def edit_persona(host: Host, name: str) -> None:
    """Open a persona in the editor; saving one that is not the user's creates a copy that hides it."""
    view = await host.session.ask(requests.ShowPersona(name=name or host.session.state.speaker))
    await _edit(host, view.text, view.info.name, view.info.name, before=view.text)


async def _edit(host: Host, text: str, name: str, instead_of: str, *, before: str | None = None) -> None:
    from ragforge_tui.tui.dialogs.external_editor import edited

    after = await edited(host.app, text, "persona.luciform")
    if after == before:
        host.session.notice("Nothing was changed.")
        return
    draft = await host.session.ask(requests.CheckPersona(text=after, name=name))
    note = UNREAD if "\ufffd" in (before or "") and "\ufffd" in after else ""
    if draft.info.problem:
        note = f"It cannot be used: {draft.info.problem}"
    _review(host, draft, instead_of=instead_of, note=note)


@COMMANDS.add("delete-persona", "Delete one of your personas", arguments="NAME", completes="personas", removes=True)
async def delete_persona(host: Host, name: str) -> None:
    """Delete one of the user's personas; it can be restored."""
    if not name:
        raise NotFoundError("Which persona?", todo="/delete-persona NAME, or Alt+D in /personas.")
    session, state = host.session, host.session.state
    speaker = state.speaker
    info = await session.ask(requests.DeletePersona(name=name))
    session.notice(f"Deleted: {signature(info)}. /undo-delete-persona restores it.")
    if _same(info.name, state.persona):
        state.persona = ""
    found = await session.load_personas()
    state.deleted_persona = ("", "")
    if _same(info.name, speaker):
        # The one it hid has the same name and so replaces it.
        hidden = next((other.name for other in found.personas if _same(info.name, other.name)), "")
        await set_persona(host, hidden or found.default)
        state.deleted_persona = (info.name, state.speaker)


@COMMANDS.add("undo-delete-persona", "Restore the persona deleted last")
async def undo_delete_persona(host: Host, _: str) -> None:
    """Restore the persona deleted last; it speaks again if it did before and the user chose no other since."""
    session, state = host.session, host.session.state
    info = await session.ask(requests.RestorePersona())
    session.notice(f"Restored: {signature(info)}.")
    await session.load_personas()
    deleted, replacement = state.deleted_persona
    state.deleted_persona = ("", "")
    if deleted == info.name and replacement == state.speaker:
        await set_persona(host, info.name)


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _hides(info: PersonaInfo) -> str:
    if not info.shadows:
        return ""
    whose = {"own": "yours", "project": "the project's", "shipped": "the shipped one"}
    return f" It hides {' and '.join(whose[origin] for origin in info.shadows)} of the same name."
