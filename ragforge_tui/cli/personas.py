"""Command `personas`: list, show, add, create, remove and restore personas, without a graph or a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ragforge_tui.cli.common import JsonFlag, not_empty, settings
from ragforge_tui.cli.output import print_json, print_text, table
from ragforge_tui.cli.start import complain
from ragforge_tui.personas import Persona, PersonaLibrary, user_name
from ragforge_tui.personas.drafts import brief_of, template
from ragforge_tui.personas.user_personas import UserPersonas
from ragforge_tui.shared.persona_records import PersonaInfo

personas_app = typer.Typer(help="The personas of the agent.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME|NUMBER", callback=not_empty)]


def _library(ctx: typer.Context) -> PersonaLibrary:
    loaded = settings(ctx)
    return PersonaLibrary(Path(loaded.paths.data) / "personas", Path(loaded.workspace))


def _user(ctx: typer.Context) -> str:
    """Return the name that replaces the placeholder in descriptions; a persona's text is printed verbatim."""
    return user_name(settings(ctx).settings.user.name)


@personas_app.command("list")
def list_(ctx: typer.Context, json: JsonFlag = False) -> None:
    """List all personas; one of your own hides the project's and the shipped one of the same name."""
    user = _user(ctx)
    infos = [persona.info(user) for persona in _library(ctx).found()]
    if json:
        print_json([_entry(info) for info in infos])
        return
    rows = [(str(number), info.glyph, info.name, _origin(info), _line(info)) for number, info in enumerate(infos, 1)]
    table(rows, ("#", "", "NAME", "ORIGIN", "DESCRIPTION"))


def _origin(info: PersonaInfo) -> str:
    return f"{info.origin}, hides {', '.join(info.shadows)}" if info.shadows else info.origin


def _line(info: PersonaInfo) -> str:
    return f"cannot be used: {info.problem}" if info.problem else info.description


def _entry(info: PersonaInfo) -> dict[str, Any]:
    """Return a persona's JSON object, without the permission of a project's persona, which only the chat handles."""
    entry: dict[str, Any] = msgspec.to_builtins(info)
    del entry["allowed"]
    entry.update(entry.pop("others"))
    return entry


@personas_app.command()
def show(ctx: typer.Context, name: NameArgument, json: JsonFlag = False) -> None:
    """Print a persona verbatim; its problems go to standard error."""
    persona = _library(ctx).pick(name)
    if json:
        print_json({**_entry(persona.info(_user(ctx))), "text": persona.text})
        return
    print_text(persona.text.rstrip("\n"))
    _complain_of(persona)


@personas_app.command()
def add(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .luciform file, copied byte for byte.")],
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite your persona of the same name.")] = False,
    json: JsonFlag = False,
) -> None:
    """Add a file as a persona of your own."""
    library = _library(ctx)
    persona = UserPersonas(library).add(file, replace=replace)
    _done(ctx, "Added", library.load(persona.name), json)
    _complain_of(persona)


@personas_app.command()
def create(
    ctx: typer.Context,
    line: Annotated[str, typer.Argument(metavar="LINE", help="Name | colour | language | description")],
    json: JsonFlag = False,
) -> None:
    """Create a persona of your own from one line; the chat can edit it or let a model improve it."""
    brief = brief_of(line)
    library = _library(ctx)
    saved = UserPersonas(library).save(template(brief, _user(ctx)), brief.name)
    _done(ctx, "Created", library.load(saved.name), json)


@personas_app.command()
def remove(ctx: typer.Context, name: NameArgument, json: JsonFlag = False) -> None:
    """Remove a persona of your own; `restore` undoes it."""
    library = _library(ctx)
    _done(ctx, "Removed", UserPersonas(library).delete(library.pick(name).name), json)


@personas_app.command()
def restore(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Persona; by default the one removed last.")] = "",
    json: JsonFlag = False,
) -> None:
    """Restore a removed persona."""
    _done(ctx, "Restored", UserPersonas(_library(ctx)).restore(name), json)


def _done(ctx: typer.Context, what: str, persona: Persona, json: bool) -> None:
    info = persona.info(_user(ctx))
    if json:
        print_json(_entry(info))
        return
    hides = "" if what == "Removed" or not info.shadows else f"; it hides the {' and the '.join(info.shadows)} one"
    print_text(f"{what} {info.name}{hides}.")


def _complain_of(persona: Persona) -> None:
    for diagnostic in persona.diagnostics:
        if diagnostic.severity == "warning":
            complain(f"{persona.name}:{diagnostic}")
    if persona.unlisted:
        complain(f"{persona.name}: and {persona.unlisted} more.")
