"""`personas`: the characters an agent can have; list, show, add, remove, bring back. Needs neither graph nor model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ragforge_tui.cli.common import JsonFlag, complain, not_empty, settings
from ragforge_tui.cli.output import say, say_json, table
from ragforge_tui.persona_records import PersonaInfo
from ragforge_tui.personas import Persona, PersonaLibrary, user_name
from ragforge_tui.personas.drafts import brief_of, template
from ragforge_tui.personas.own import OwnPersonas

personas_app = typer.Typer(help="The characters the agent can have.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME|NUMBER", callback=not_empty)]


def _library(ctx: typer.Context) -> PersonaLibrary:
    loaded = settings(ctx)
    return PersonaLibrary(Path(loaded.paths.data) / "personas", Path(loaded.workspace))


def _user(ctx: typer.Context) -> str:
    """The name that stands for the placeholder in what is said of a persona; its text is printed as written."""
    return user_name(settings(ctx).settings.user.name)


@personas_app.command("list")
def list_(ctx: typer.Context, json: JsonFlag = False) -> None:
    """List all personas; an own one hides the folder's and the shipped one of the same name."""
    user = _user(ctx)
    found = [persona.info(user) for persona in _library(ctx).found()]
    if json:
        say_json([_entry(info) for info in found])
        return
    rows = [(str(number), info.glyph, info.name, _origin(info), _line(info)) for number, info in enumerate(found, 1)]
    table(rows, ("#", "", "NAME", "ORIGIN", "DESCRIPTION"))


def _origin(info: PersonaInfo) -> str:
    return f"{info.origin}, hides {', '.join(info.shadows)}" if info.shadows else info.origin


def _line(info: PersonaInfo) -> str:
    return f"cannot be used: {info.problem}" if info.problem else info.description


def _entry(info: PersonaInfo) -> dict[str, Any]:
    """A persona as scripts see it; whether a project's one was allowed is the chat's business."""
    entry: dict[str, Any] = msgspec.to_builtins(info)
    del entry["allowed"]
    return entry


@personas_app.command()
def show(ctx: typer.Context, name: NameArgument, json: JsonFlag = False) -> None:
    """Print a persona as it is written; what is wrong with it goes to standard error."""
    persona = _library(ctx).pick(name)
    if json:
        say_json({**_entry(persona.info(_user(ctx))), "text": persona.text})
        return
    say(persona.text.rstrip("\n"))
    _complain_of(persona)


@personas_app.command()
def add(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .luciform file; it is copied byte for byte.")],
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite your own one of the same name.")] = False,
    json: JsonFlag = False,
) -> None:
    """Take a file in as a persona of your own."""
    library = _library(ctx)
    persona = OwnPersonas(library).add(file, replace=replace)
    _done(ctx, "Added", library.load(persona.name), json)
    _complain_of(persona)


@personas_app.command()
def create(
    ctx: typer.Context,
    line: Annotated[str, typer.Argument(metavar="LINE", help="Name | colour | language | description")],
    json: JsonFlag = False,
) -> None:
    """Make a persona of your own from one line; edit it, or let a model improve it, in the chat."""
    brief = brief_of(line)
    library = _library(ctx)
    saved = OwnPersonas(library).save(template(brief, _user(ctx)), brief.name)
    _done(ctx, "Created", library.load(saved.name), json)


@personas_app.command()
def remove(ctx: typer.Context, name: NameArgument, json: JsonFlag = False) -> None:
    """Delete a persona of your own; `restore` brings it back."""
    library = _library(ctx)
    _done(ctx, "Removed", OwnPersonas(library).delete(library.pick(name).name), json)


@personas_app.command()
def restore(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Without it: the one removed last.")] = "",
    json: JsonFlag = False,
) -> None:
    """Bring back a persona that was removed."""
    _done(ctx, "Restored", OwnPersonas(_library(ctx)).restore(name), json)


def _done(ctx: typer.Context, what: str, persona: Persona, json: bool) -> None:
    info = persona.info(_user(ctx))
    if json:
        say_json(_entry(info))
        return
    hides = "" if what == "Removed" or not info.shadows else f"; it hides the {' and the '.join(info.shadows)} one"
    say(f"{what} {info.name}{hides}.")


def _complain_of(persona: Persona) -> None:
    for diagnostic in persona.diagnostics:
        if diagnostic.severity == "warning":
            complain(f"{persona.name}:{diagnostic}")
    if persona.unlisted:
        complain(f"{persona.name}: and {persona.unlisted} more.")
