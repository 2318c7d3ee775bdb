"""All commands of `ragforge-chat`.

Without a command the chat opens. Options before a command also apply to it. This module imports no user interface,
model or driver; commands import them when they run.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ragforge_tui import __version__
from ragforge_tui.cli import ask, blame, code, doctor, past, serve, sessions, topics, transfer, usage
from ragforge_tui.cli.common import ConfigOption, GraphOption, ModelOption, PersonaOption, WorkspaceOption, shared
from ragforge_tui.cli.graph import graph_app
from ragforge_tui.cli.memory import memory_app
from ragforge_tui.cli.output import print_text
from ragforge_tui.cli.personas import personas_app
from ragforge_tui.cli.settings import config_app
from ragforge_tui.cli.start import VALUES, ChatFlags, Shared, failures, open_chat

_RESUME = ("--resume", "-r")


class ChatGroup(TyperGroup):
    """Root command: a first message in place of a command, `--resume` without a value, failures as one sentence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments after adding an empty value to a bare `--resume`, and naming the first message."""
        return super().parse_args(ctx, with_text(with_bare_resume(args, self.commands), self.commands))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; failures never reach the terminal as a traceback."""
        with failures(ctx.ensure_object(Shared)):
            return super().invoke(ctx)


def with_bare_resume(args: Sequence[str], commands: Container[str]) -> list[str]:
    """Return the arguments with an empty value for a bare `--resume`, which opens the picker.

    It is bare at the end or before another option. Options after a command's name are left unchanged.
    """
    completed: list[str] = []
    for index, arg in enumerate(args):
        if arg in commands:
            return [*completed, *args[index:]]
        if arg in _RESUME and (index + 1 == len(args) or args[index + 1].startswith("-")):
            completed.append("--resume=")
        else:
            completed.append(arg)
    return completed


def with_text(args: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return the arguments with the words that are no command as the value of ``--text``, the first message.

    A single word that resembles a command is left, so that a slip of the finger is said and not sent.
    """
    rest = list(args)
    words: list[str] = []
    completed: list[str] = []
    while rest:
        arg = rest.pop(0)
        if not words and (arg in commands or arg == "--"):
            return [*completed, arg, *rest]
        if not arg.startswith("-"):
            words.append(arg)
            continue
        completed.append(arg)
        if arg in VALUES and rest:
            completed.append(rest.pop(0))
    if len(words) == 1 and get_close_matches(words[0], commands):
        return list(args)
    return [*completed, f"--text={' '.join(words)}"] if words else completed


app = typer.Typer(
    cls=ChatGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="[TEXT | COMMAND [ARGS]...]",
)


def _print_version(requested: bool) -> None:
    if requested:
        print_text(f"ragforge-chat {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    resume: Annotated[
        str | None, typer.Option("--resume", "-r", metavar="[ID]", help="Resume by id or prefix; without one, choose.")
    ] = None,
    continue_last: Annotated[bool, typer.Option("--continue", "-c", help="Resume this folder's last one.")] = False,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Words instead of symbols, fewer updates: for screen readers and slow links."),
    ] = False,
    inline: Annotated[
        bool,
        typer.Option("--inline", help="Lines instead of a screen: for scrollback, logs and screen readers."),
    ] = False,
    text: Annotated[str, typer.Option("--text", hidden=True, help="First message.")] = "",
    persona: PersonaOption = None,
    model: ModelOption = None,
    graph: GraphOption = None,
    workspace: WorkspaceOption = None,
    config: ConfigOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Chat with an agent whose memory is a graph. Without a command the chat opens; TEXT is its first message."""
    given = shared(ctx)
    given.config, given.workspace, given.graph = config, workspace, graph
    given.model, given.persona, given.plain = model, persona, plain
    if ctx.invoked_subcommand is None:
        if resume is not None and continue_last:
            raise typer.BadParameter("--resume and --continue cannot be combined.")
        if resume == "" and text:
            raise typer.BadParameter("--resume needs an ID where a message follows.")
        flags = ChatFlags(shared=given, resume=resume, continue_last=continue_last, text=text, inline=inline)
        raise typer.Exit(open_chat(flags))
    if resume is not None or continue_last:
        raise typer.BadParameter(f"--resume and --continue cannot be combined with {ctx.invoked_subcommand}.")


app.command()(ask.ask)
app.command()(sessions.sessions)
app.command()(sessions.show)
app.command()(sessions.search)
app.command()(sessions.similar)
app.command()(topics.topics)
app.command()(code.code)
app.command()(past.insights)
app.command()(past.recall)
app.command()(past.standup)
app.command()(usage.usage)
app.command()(blame.blame)
app.command()(transfer.export)
app.command("import")(transfer.import_)
app.command()(serve.serve)
app.command()(sessions.archive)
app.command()(sessions.delete)
app.command()(sessions.restore)
app.add_typer(memory_app, name="memory")
app.add_typer(graph_app, name="graph")
app.add_typer(personas_app, name="personas")
app.add_typer(config_app, name="config")
app.command()(doctor.doctor)
