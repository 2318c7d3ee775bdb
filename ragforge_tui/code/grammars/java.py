"""Scopes and names of Java."""

from __future__ import annotations

from typing import Final

from tree_sitter import Node

from ragforge_tui.code.parsed import UNKNOWN, Import
from ragforge_tui.code.walk import Grammar, Walk, call, extend, first_child, name, skip, type_name
from ragforge_tui.shared.code_records import ScopeKind

_KINDS: Final[dict[str, ScopeKind]] = {
    "class_declaration": "class",
    "record_declaration": "class",
    "interface_declaration": "interface",
    "annotation_type_declaration": "interface",
    "enum_declaration": "enum",
}
_UNWRAPPED: Final = frozenset({"Optional", "CompletableFuture", "Future", "Supplier", "Provider", "Class"})


def _package(walk: Walk, node: Node, scope: int) -> None:
    walk.package = walk.text(node.named_children[-1]) if node.named_children else ""


def _import(walk: Walk, node: Node, scope: int) -> None:
    path = walk.text(next((child for child in node.named_children if child.type.endswith("identifier")), None))
    if any(child.type == "asterisk" for child in node.named_children):
        walk.imports.append(Import(path, "*", "", walk.line(node), scope, exported=False))
    else:
        module, _, own = path.rpartition(".")
        walk.imports.append(Import(module, own, own, walk.line(node), scope, exported=False))


def _type(walk: Walk, node: Node, scope: int) -> None:
    body = node.child_by_field_name("body")
    own = walk.text(node.child_by_field_name("name"))
    inner = walk.define(node, own, _KINDS[node.type], scope, body=body)
    _type_parameters(walk, node, inner)
    for child in node.named_children:
        if child.type in ("superclass", "super_interfaces", "extends_interfaces"):
            bases = child.named_children
            extend(walk, bases[0].named_children if bases and bases[0].type == "type_list" else bases, inner)
        elif child.type == "modifiers":
            walk.push([child], inner)
    parameters = node.child_by_field_name("parameters")
    for item in parameters.named_children if parameters is not None else []:
        held = item.child_by_field_name("type")
        walk.bind(inner, walk.text(item.child_by_field_name("name")), walk.type_value(held, _UNWRAPPED) or UNKNOWN)
        walk.push([held], inner)
    walk.push([body], inner)


def _type_parameters(walk: Walk, node: Node, scope: int) -> None:
    parameters = node.child_by_field_name("type_parameters") or next(
        (child for child in node.named_children if child.type == "type_parameters"), None
    )
    for item in parameters.named_children if parameters is not None else []:
        walk.bind(scope, walk.text(first_child(item)))
        walk.push(item.named_children[1:], scope)


def _method(walk: Walk, node: Node, scope: int) -> None:
    body, returns = node.child_by_field_name("body"), node.child_by_field_name("type")
    inner = walk.define(node, walk.text(node.child_by_field_name("name")), "method", scope, body=body)
    made = walk.scopes[inner]
    made.declared = body is None
    made.returns = walk.type_value(returns, _UNWRAPPED)
    _type_parameters(walk, node, inner)
    parameters = node.child_by_field_name("parameters")
    for item in parameters.named_children if parameters is not None else []:
        _bind_parameter(walk, item, inner)
    others = [child for child in node.named_children if child.type in ("modifiers", "throws")]
    walk.push([*others, returns, parameters, body], inner)


def _bind_parameter(walk: Walk, node: Node, scope: int) -> None:
    declarator = next((child for child in node.named_children if child.type == "variable_declarator"), node)
    held = node.child_by_field_name("type")
    own = walk.text(declarator.child_by_field_name("name"))
    if own:
        walk.bind(scope, own, walk.type_value(held, _UNWRAPPED) or UNKNOWN)


def _parameter(walk: Walk, node: Node, scope: int) -> None:
    walk.push(
        (child for child in node.named_children if child.type not in ("identifier", "variable_declarator")), scope
    )


def _variables(walk: Walk, node: Node, scope: int) -> None:
    held = node.child_by_field_name("type")
    value = walk.type_value(held, _UNWRAPPED)
    modifiers = next((child for child in node.named_children if child.type == "modifiers"), None)
    constant = {"static", "final"} <= set(walk.text(modifiers).split())
    for declarator in node.children_by_field_name("declarator"):
        own, assigned = walk.text(declarator.child_by_field_name("name")), declarator.child_by_field_name("value")
        typed = value if value and value != "var()" else _value(walk, assigned)
        where = scope
        if (
            node.type in ("field_declaration", "constant_declaration")
            and (constant or node.type[0] == "c")
            and own.isupper()
        ):
            where = walk.define(node, own, "constant", scope)
            walk.scopes[where].returns = typed
        walk.bind(scope, own, typed or UNKNOWN)
        walk.push([assigned], where)
    walk.push([modifiers, held], scope)


def _value(walk: Walk, node: Node | None) -> str:
    """Return the path of an expression's value, `?` for anything but names, members, calls and casts."""
    while node is not None and node.type == "parenthesized_expression":
        node = first_child(node)
    if node is None:
        return UNKNOWN
    if node.type in ("cast_expression", "object_creation_expression"):
        return walk.type_value(node.child_by_field_name("type")) or UNKNOWN
    if node.type in ("method_invocation", "identifier", "field_access"):
        path = walk.path(node)[0]
        return UNKNOWN if UNKNOWN in path.split(".") or path.startswith(UNKNOWN) else path
    return UNKNOWN


def _loop(walk: Walk, node: Node, scope: int) -> None:
    held = node.child_by_field_name("type")
    value = walk.type_value(held, _UNWRAPPED)
    walk.bind(scope, walk.text(node.child_by_field_name("name")), value if value not in ("", "var()") else UNKNOWN)
    walk.push([held, node.child_by_field_name("value"), node.child_by_field_name("body")], scope)


def _resource(walk: Walk, node: Node, scope: int) -> None:
    held, assigned = node.child_by_field_name("type"), node.child_by_field_name("value")
    value = walk.type_value(held, _UNWRAPPED)
    own = walk.text(node.child_by_field_name("name"))
    if own:
        walk.bind(scope, own, value if value not in ("", "var()") else _value(walk, assigned))
    walk.push([held, assigned], scope)


def _catch(walk: Walk, node: Node, scope: int) -> None:
    walk.bind(scope, walk.text(node.child_by_field_name("name")))
    walk.push((child for child in node.named_children if child.type == "catch_type"), scope)


def _lambda(walk: Walk, node: Node, scope: int) -> None:
    parameters = node.child_by_field_name("parameters")
    for item in [parameters] if parameters is not None and parameters.type == "identifier" else []:
        walk.bind(scope, walk.text(item))
    for item in parameters.named_children if parameters is not None else []:
        if item.type == "identifier":
            walk.bind(scope, walk.text(item))
        else:
            _bind_parameter(walk, item, scope)
    walk.push([node.child_by_field_name("body")], scope)


def _invocation(walk: Walk, node: Node, scope: int) -> None:
    holder = node.child_by_field_name("object")
    own = walk.text(node.child_by_field_name("name"))
    path, rest = walk.path(holder) if holder is not None else ("", None)
    walk.mention(scope, "calls", f"{path}.{own}".lstrip("."), walk.line(node.child_by_field_name("name") or node))
    walk.push([rest, node.child_by_field_name("arguments")], scope)


def _reference(walk: Walk, node: Node, scope: int) -> None:
    children = node.named_children
    if len(children) == 2:
        path, rest = walk.path(children[0])
        walk.mention(scope, "uses", f"{path}.{walk.text(children[1])}", walk.line(node))
        walk.push([rest], scope)
    else:
        walk.push_children(node, scope)


def _annotation(walk: Walk, node: Node, scope: int) -> None:
    walk.mention(scope, "uses", walk.path(node.child_by_field_name("name"))[0], walk.line(node))
    walk.push([node.child_by_field_name("arguments")], scope)


GRAMMAR = Grammar(
    handlers={
        "package_declaration": _package,
        "import_declaration": _import,
        **dict.fromkeys(_KINDS, _type),
        "method_declaration": _method,
        "constructor_declaration": _method,
        "compact_constructor_declaration": _method,
        "field_declaration": _variables,
        "constant_declaration": _variables,
        "local_variable_declaration": _variables,
        "formal_parameter": _parameter,
        "spread_parameter": _parameter,
        "enhanced_for_statement": _loop,
        "resource": _resource,
        "catch_formal_parameter": _catch,
        "lambda_expression": _lambda,
        "method_invocation": _invocation,
        "object_creation_expression": call,
        "method_reference": _reference,
        "marker_annotation": _annotation,
        "annotation": _annotation,
        "identifier": name,
        "field_access": name,
        "type_identifier": type_name,
        "scoped_type_identifier": type_name,
        "generic_type": type_name,
        "type_parameters": skip,
        "line_comment": skip,
        "block_comment": skip,
        "enum_constant": lambda walk, node, scope: walk.push(
            [node.child_by_field_name("arguments"), node.child_by_field_name("body")], scope
        ),
    },
    names=frozenset(
        {
            "identifier",
            "this",
            "super",
            "type_identifier",
            "scoped_type_identifier",
            "generic_type",
            "scoped_identifier",
        }
    ),
    members={"field_access": ("object", "field")},
    calls={"object_creation_expression": "type"},
    method_calls={"method_invocation": ("object", "name")},
    through=frozenset({"parenthesized_expression"}),
    comments=frozenset({"line_comment", "block_comment"}),
)
