"""Python functions as tools: the schema comes from the signature, the descriptions from the docstring.

Used by `ConversationAgent(tools=[…])`, so that a program adds a tool without a subclass of `Tool`. A function that
cannot be a tool is rejected when the agent is created, not when the model calls it.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args, get_type_hints, overload

import msgspec

from ragforge_tui.shared.tool_calls import CHANGING, ToolInfo
from ragforge_tui.tools.arguments import schema_of
from ragforge_tui.tools.base import ApprovalNeed, Plan, Tool, ToolArguments, ToolOutcome, failed

FunctionAccess = Literal["read", "write", "command"]
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

DONE = "Done."
"""Result of a function that returns None: a model takes an empty result for a failure."""
_OPTIONS = "__ragforge_tool__"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns|Yields|Raises|Examples?|Notes?):\s*$")
_ARGUMENT_SECTIONS = ("Args", "Arguments", "Parameters")
_DESCRIBED = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)")
_IMMUTABLE = (str, int, float, bool, type(None))


class _Options(msgspec.Struct, frozen=True):
    name: str = ""
    access: FunctionAccess = "read"


@overload
def tool(function: AnyFunction, /) -> AnyFunction: ...


@overload
def tool(*, name: str = "", access: FunctionAccess = "read") -> Callable[[AnyFunction], AnyFunction]: ...


def tool(
    function: AnyFunction | None = None, /, *, name: str = "", access: FunctionAccess = "read"
) -> AnyFunction | Callable[[AnyFunction], AnyFunction]:
    """Declare what a function does as a tool; the function itself stays as it is.

    A function passed to an agent needs no decorator: it is your own code, so it runs without asking. Declare the access
    of one that changes something: its calls then need approval, wait for each other and are refused in plan mode.

    Args:
        name: Name for the model; empty for the function's own.
        access: ``read`` runs without asking; ``write`` and ``command`` ask first, except that a conversation in the
            mode ``edits`` runs a ``write`` without asking.

    Examples:
        ```python
        from ragforge_tui import tool

        @tool(access="write")
        def close_ticket(number: int, comment: str = "") -> str:
            \"\"\"Close a ticket.

            Args:
                number: Number of the ticket.
                comment: Shown to whoever opened it.
            \"\"\"
            return f"Ticket {number} is closed."
        ```
    """

    def declare(function: AnyFunction) -> AnyFunction:
        setattr(function, _OPTIONS, _Options(name, access))
        return function

    return declare if function is None else declare(function)


class FunctionTool(Tool):
    """Base class of the tools made of functions.

    Attributes:
        function: The function, sync or async; a sync one runs in a thread.
        parameters: Names of its parameters.
    """

    function: ClassVar[Callable[..., Any]]
    parameters: ClassVar[tuple[str, ...]]

    async def prepare(self, arguments: Any) -> Plan:
        """See `Tool.prepare`."""
        need = None
        if self.access in CHANGING:
            values = {name: getattr(arguments, name) for name in self.parameters}
            need = ApprovalNeed(
                kind="command" if self.access == "command" else "write",
                question=f"Run {self.name} of the program?",
                detail=_text(values),
                session_scope=f"every call of {self.name}",
                session_key=f"function:{self.name}",
            )
        return Plan(run=lambda: self.run(arguments), approval=need)

    async def run(self, arguments: Any) -> ToolOutcome:
        """Call the function; what it raises is reported to the model."""
        values = {name: getattr(arguments, name) for name in self.parameters}
        function = type(self).function
        try:
            if _is_async(function):
                result = await function(**values)
            else:
                result = await asyncio.to_thread(function, **values)
                if inspect.isawaitable(result):
                    result = await result
            return result if isinstance(result, ToolOutcome) else ToolOutcome(text=_text(result))
        except Exception as error:
            return failed(f"{self.name} failed: {type(error).__name__}: {error}")


def tool_of(given: Callable[..., Any] | type[Tool]) -> type[Tool]:
    """Return a subclass of `Tool` as it is, or the tool made of a function.

    Raises:
        TypeError: The function cannot be a tool; the message states why.
    """
    if isinstance(given, type):
        if issubclass(given, Tool):
            return given
        raise TypeError(f"{given.__name__} is a class: pass a function, a method or a subclass of Tool.")
    if not callable(given):
        raise TypeError(f"A tool must be a function or a subclass of Tool, not {type(given).__name__}.")
    options = getattr(given, _OPTIONS, _Options())
    name = options.name or getattr(given, "__name__", type(given).__name__)
    if not _NAME.fullmatch(name):
        raise TypeError(f"{name!r} cannot be a tool's name: give one with @tool(name=…), of letters, digits, _ and -.")
    description, described = _documentation(given)
    fields = [_field(name, parameter, _hints(name, given), described) for parameter in _parameters(name, given)]
    struct = msgspec.defstruct(f"{name}_arguments", fields, bases=(ToolArguments,), kw_only=True)
    arguments = cast(type[ToolArguments], struct)
    try:
        schema_of(arguments)
    except (TypeError, RecursionError) as error:
        raise TypeError(f"The arguments of {name} have no JSON schema: {error}") from error
    made = {
        "__doc__": f"The function {name} as a tool.",
        "info": ToolInfo(
            name=name,
            help=description.split("\n", 1)[0].rstrip("."),
            access=options.access,
            main_argument=_main_argument(fields),
            result="prose",
        ),
        "description": description or name.replace("_", " "),
        "arguments": arguments,
        "function": staticmethod(given),
        "parameters": tuple(field[0] for field in fields),
    }
    return type(name, (FunctionTool,), made)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(
                f"{name} cannot be a tool: a model passes arguments by name, which {parameter} does not take."
            )
    return parameters


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    source = function if hasattr(function, "__annotations__") else type(function).__call__
    try:
        return get_type_hints(source, include_extras=True)
    except NameError as error:
        raise TypeError(f"{name} cannot be a tool: the types of its parameters cannot be read ({error}).") from error


def _field(
    name: str, parameter: inspect.Parameter, hints: dict[str, Any], described: dict[str, str]
) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return a parameter as a field of a struct: its type with its description, and its default."""
    if parameter.name not in hints:
        raise TypeError(f"{name} cannot be a tool: its parameter {parameter.name} has no type.")
    kind = _with_description(hints[parameter.name], described.get(parameter.name, ""))
    default = parameter.default
    if default is parameter.empty:
        return parameter.name, kind
    if isinstance(default, _IMMUTABLE):
        return parameter.name, kind, default
    return parameter.name, kind, msgspec.field(default_factory=lambda: default)


def _with_description(hint: Any, described: str) -> Any:
    """Return a type whose schema has a description: the text in its `Annotated`, else that of the docstring."""
    kind, texts, metas = hint, [], []
    if hasattr(hint, "__metadata__"):
        kind, *extras = get_args(hint)
        texts = [extra for extra in extras if isinstance(extra, str)]
        metas = [extra for extra in extras if isinstance(extra, msgspec.Meta)]
    has_own = any(meta.description for meta in metas)
    description = " ".join(texts) or ("" if has_own else described)
    if description:
        metas.append(msgspec.Meta(description=description))
    for meta in metas:
        kind = Annotated[kind, meta]
    return kind


def _main_argument(fields: list[Any]) -> str:
    """Return the first parameter that is a text, which identifies a call wherever calls are listed."""
    return next((field[0] for field in fields if (get_args(field[1]) or (field[1],))[0] is str), "")


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the text of a Google-style docstring before its sections, and the descriptions of its arguments."""
    lines = (inspect.getdoc(function) or "").splitlines()
    text: list[str] = []
    described: dict[str, str] = {}
    section, last, indent = "", "", 0
    for line in lines:
        if (header := _SECTION.match(line)) is not None:
            section, last, indent = header[1], "", 0
        elif not section:
            text.append(line)
        elif section in _ARGUMENT_SECTIONS and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = indent or depth
            if depth <= indent and (entry := _DESCRIBED.match(line.strip())) is not None:
                last = entry[1]
                described[last] = entry[2]
            elif last:
                described[last] = f"{described[last]} {line.strip()}".strip()
    return "\n".join(text).strip(), described


def _text(value: Any) -> str:
    """Return a function's result for the model: a text as it is, anything else as JSON."""
    if value is None:
        return DONE
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
