"""`personas`: the characters an agent can have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragforge_tui.cli.common import JsonFlag, settings
from ragforge_tui.cli.output import say, say_json, table
from ragforge_tui.personas import Persona, PersonaLibrary

personas_app = typer.Typer(help="The characters the agent can have.", no_args_is_help=True)


def _library(ctx: typer.Context) -> PersonaLibrary:
    return PersonaLibrary(Path(settings(ctx).paths.data) / "personas")


@personas_app.command("list")
def list_(ctx: typer.Context, json: JsonFlag = False) -> None:
    """List all personas; an own one hides a shipped one of the same name."""
    library = _library(ctx)
    found = [library.load(name) for name in library.names()]
    if json:
        say_json([_entry(persona) for persona in found])
    else:
        table([(persona.name, persona.origin, persona.path) for persona in found], ("NAME", "ORIGIN", "FILE"))


def _entry(persona: Persona) -> dict[str, str]:
    return {
        "name": persona.name,
        "origin": persona.origin,
        "description": persona.description,
        "path": persona.path,
    }


@personas_app.command()
def show(ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")], json: JsonFlag = False) -> None:
    """Print a persona as it is written."""
    persona = _library(ctx).load(name)
    if json:
        say_json(persona)
    else:
        say(persona.text.rstrip("\n"))
