"""Private names of other packages that the program holds: all of them, where, and why there is no public one.

An upgrade may move any of them. Then a test here fails and says what no longer works and where, for those of LiteLLM
one in `tests/llm`, where it is loaded anyway. A new one needs a row, and a reason that no public name does the same.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "ragforge_tui"
PUBLIC = frozenset({"_replace", "_exit"})
"""Names with an underscore that are documented: of named tuples, and of `os`."""


SUSPECT = re.compile(
    r"(?<!\bself)(?<!\bcls)\._[A-Za-z]"  # an attribute or a module
    r"|^\s*from (?!ragforge_tui)\S+ import (?:\([^)]*|[^\n(]*)\b_[A-Za-z]",
    re.M,
)
"""Texts that may hold one; the others need no reading as a tree."""
OF_LITELLM = ("litellm", "openai")
"""Packages that take seconds to import."""


class Held(NamedTuple):
    """A private name, or one that its package documents nowhere.

    Attributes:
        name: Module and name; one after ``()`` is an attribute of an instance, one after ``~`` is looked for in
            the module's text: a parameter, or what the program replaces.
        file: A file that holds it, relative to the package.
        why: What it is for, and what no longer works without it.
    """

    package: str
    name: str
    file: str
    why: str


HELD = (
    Held(
        "textual",
        "textual._xterm_parser:XTermParser",
        "tui/chat_driver.py",
        "keys are parsed in a loop that notices a closed terminal",
    ),
    Held("textual", "textual.driver:Driver()._debug", "tui/chat_driver.py", "the parser gets the driver's flag"),
    Held(
        "textual",
        "textual.drivers.linux_driver:LinuxDriver().attrs_before",
        "tui/chat_driver.py",
        "the terminal gets back the state from before the quiet start",
    ),
    Held(
        "textual",
        "textual.drivers.linux_driver:LinuxDriver().exit_event",
        "tui/chat_driver.py",
        "the copied loop that reads keys ends",
    ),
    Held(
        "textual",
        "textual.driver:Driver()._app",
        "tui/served_driver.py",
        "a chat in a browser has the focus from the start",
    ),
    Held(
        "textual",
        "textual.drivers.web_driver:WebDriver()._input_reader",
        "tui/served_driver.py",
        "a paste in a browser sends nothing",
    ),
    Held("textual", "textual.drivers._byte_stream:ByteStream", "tui/served_driver.py", "the same"),
    Held("textual", "textual.drivers._input_reader:InputReader", "tui/served_driver.py", "the same"),
    Held("textual", "textual.app:App()._driver", "tui/terminal.py", "notifications and copies are written"),
    Held("textual", "textual.app:App._display", "tui/app.py", "only the cells that differ are sent"),
    Held("textual", "textual._compositor:LayoutUpdate().strips", "tui/shown_cells.py", "the same, of a whole screen"),
    Held("textual", "textual._compositor:LayoutUpdate().region", "tui/shown_cells.py", "the same, of a whole screen"),
    Held("textual", "textual._compositor:ChopsUpdate().chops", "tui/shown_cells.py", "the same, of parts of it"),
    Held("textual", "textual._compositor:ChopsUpdate().spans", "tui/shown_cells.py", "the same, of parts of it"),
    Held("textual", "textual._compositor:ChopsUpdate().chop_ends", "tui/shown_cells.py", "the same, of parts of it"),
    Held("textual", "textual.app:App()._clipboard", "tui/app.py", "what was copied for tmux can be pasted"),
    Held("textual", "textual.dom:DOMNode()._bindings", "tui/command_registry.py", "a changed keymap removes old keys"),
    Held("textual", "textual.widget:Widget._scroll_update", "tui/transcript/block_view.py", "the scrollbar follows"),
    Held(
        "textual",
        "textual._ansi_sequences:ANSI_SEQUENCES_KEYS",
        "tui/alt_keys.py",
        "Alt with a letter or Enter is known at once in terminals without the Kitty protocol",
    ),
    Held(
        "pygments",
        "pygments.lexer:RegexLexerMeta()._tokens",
        "tui/drawing/code.py",
        "code is coloured while it streams",
    ),
    Held(
        "mcp",
        "mcp.client.stdio:TextReceiveStream",
        "tools/mcp/connection.py",
        "an answer of many megabytes is read in time linear to its length",
    ),
    Held(
        "litellm",
        "litellm.llms.custom_httpx.http_handler:AsyncHTTPHandler.create_async_transport",
        "llm/litellm_loader.py",
        "a server on this machine is reached whatever proxies the environment names",
    ),
    Held(
        "litellm",
        "litellm.utils:last_assistant_with_tool_calls_has_no_thinking_blocks",
        "llm/litellm_loader.py",
        "Claude goes on thinking after a past turn without thoughts",
    ),
    Held(
        "litellm",
        "litellm.responses.main:~_responses_try_dispatch_mcp_gateway",
        "llm/litellm_loader.py",
        "requests with tools to OpenAI's newer address do not look for MCP servers",
    ),
    Held("litellm", "litellm.main:~_skip_mcp_handler", "llm/client.py", "other requests with tools do not either"),
    Held(
        "litellm",
        "litellm:CustomStreamWrapper().received_finish_reason",
        "llm/client.py",
        "an answer that a dead server cut off is not taken for a whole one",
    ),
    Held(
        "litellm",
        "litellm:CustomStreamWrapper().intermittent_finish_reason",
        "llm/client.py",
        "the same, for Gemini",
    ),
    Held(
        "litellm",
        "litellm.litellm_core_utils.thread_pool_executor:executor",
        "llm/litellm_loader.py",
        "the process that engines are forked from starts no thread",
    ),
    Held(
        "litellm",
        "litellm._service_logger:ServiceLogging",
        "llm/litellm_loader.py",
        "the first request imports nothing",
    ),
    Held(
        "anyio", "anyio._backends._asyncio:backend_class", "llm/litellm_loader.py", "the first request imports nothing"
    ),
    Held(
        "openai",
        "openai.resources.chat.completions.completions:async_maybe_transform",
        "llm/litellm_loader.py",
        "long requests are not compared with their types, which takes 0.2 s at 150 turns",
    ),
    Held(
        "httpx",
        "httpx:AsyncClient._build_redirect_request",
        "llm/litellm_loader.py",
        "a redirect to another host does not get the conversation",
    ),
    Held(
        "python",
        "threading:_register_atexit",
        "conversation/sync.py",
        "a program that forgets `close` ends all the same",
    ),
    Held(
        "python",
        "sys:_getframe",
        "engine/warm/imports.py",
        "the engine host knows which variables the imports have read",
    ),
    Held("arcadedb", "arcadedb._native.server:NativeServer", "graph/embedded/engine.py", "the embedded graph starts"),
)


def place_of(held: Held) -> str:
    """Return the first place where the name is missing; empty if it exists."""
    module_name, _, names = held.name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError:
        return module_name
    if names.startswith("~"):
        return "" if names[1:] in inspect.getsource(found) else names[1:]
    owner, instance, attribute = names.partition("().")
    for name in (owner if instance else names).split("."):
        if not hasattr(found, name):
            return f"{module_name}.{name}"
        found = getattr(found, name)
    sources = [inspect.getsource(one) for one in found.__mro__ if one not in (type, object)] if instance else []
    set_there = re.compile(rf"(self|cls)\.{re.escape(attribute)}\b")
    return "" if not instance or any(map(set_there.search, sources)) else f"{owner}().{attribute}"


def assert_held(held: Held) -> None:
    """Fail with what no longer works if a name is missing."""
    missing = place_of(held)
    release = "" if held.package == "python" else f" {version(held.package)}"
    assert not missing, (
        f"{held.package}{release} has no {missing} any more. {held.file} needs it so that {held.why}: "
        "look for a public name first, then for the new private one."
    )


@pytest.mark.parametrize("held", [held for held in HELD if held.package not in OF_LITELLM], ids=lambda held: held.name)
def test_a_private_name_is_where_it_was(held: Held) -> None:
    assert_held(held)


def test_a_listed_name_is_held_by_its_file() -> None:
    unused = [
        held.name
        for held in HELD
        if not re.search(rf"\b{re.escape(last_name(held))}\b", (PACKAGE / held.file).read_text("utf-8"))
    ]
    assert not unused, f"These names are no longer held, so their rows can go: {', '.join(unused)}."


def test_no_private_name_is_held_that_is_not_listed() -> None:
    listed = {last_name(held) for held in HELD} | {held.name.partition(":")[0] for held in HELD}
    held = {f"{path.relative_to(PACKAGE)}: {name}" for path, name in private_names() if name not in listed}
    assert not held, f"Private names of other packages without a row in this file: {', '.join(sorted(held))}."


def last_name(held: Held) -> str:
    """Return what the file holds: a module's name where that is the private part, else the name itself."""
    module, _, name = held.name.partition(":")
    last = re.split(r"[.~]|\(\)", name)[-1]
    return module if "._" in module and held.file == "llm/litellm_loader.py" else last


def private_names() -> Iterator[tuple[Path, str]]:
    """Yield the private names and modules of others that the package's files use, as far as their syntax shows it."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        if not SUSPECT.search(text):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        own = {*own_names(nodes), *PUBLIC}
        for node in nodes:
            match node:
                case ast.Attribute(value=value, attr=name) if is_private(name) and name not in own:
                    if not (isinstance(value, ast.Name) and value.id in ("self", "cls")):
                        yield path, name
                case ast.ImportFrom(module=str(module), names=names) if not module.startswith("ragforge_tui"):
                    if any(map(is_private, module.split("."))):
                        yield path, module
                    yield from ((path, one.name) for one in names if is_private(one.name))
                case ast.Constant(value=str(text)) if re.fullmatch(r"[a-z]\w*(\.\w+)*\._\w+(\.\w+)*", text):
                    yield path, text


def own_names(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that a file defines: functions, fields, and attributes that it sets."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
