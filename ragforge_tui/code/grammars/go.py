"""Scopes and names of Go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tree_sitter import Node

from ragforge_tui.code.parsed import UNKNOWN, Import
from ragforge_tui.code.walk import Grammar, Walk, call, extend, first_child, last_row, name, skip, type_name
from ragforge_tui.shared.code_records import ScopeKind

_VERSION: Final = re.compile(r"/v\d+$")
_KINDS: Final[dict[str, ScopeKind]] = {"struct_type": "struct", "interface_type": "interface"}
_VALUES: Final = frozenset({"identifier", "selector_expression"})


def _package(walk: Walk, node: Node, scope: int) -> None:
    walk.package = walk.text(first_child(node))


def _import(walk: Walk, node: Node, scope: int) -> None:
    module = walk.text(node.child_by_field_name("path")).strip('"`')
    written = walk.text(node.child_by_field_name("name"))
    if written == ".":
        walk.imports.append(Import(module, "*", "", walk.line(node), scope, exported=False))
        return
    last = _VERSION.sub("", module).rpartition("/")[2].removeprefix("go-").partition(".")[0].replace("-", "_")
    alias = written or last
    walk.imports.append(Import(module, "", alias if alias != "_" else "", walk.line(node), scope, exported=False))


def _function(walk: Walk, node: Node, scope: int) -> None:
    own, body = walk.text(node.child_by_field_name("name")), node.child_by_field_name("body")
    receiver = first_child(node.child_by_field_name("receiver"))
    owner = ""
    if receiver is not None:
        owner = walk.type_value(receiver.child_by_field_name("type")).removesuffix("()")
    kind: ScopeKind = "method" if owner else "function"
    inner = walk.define(node, own, kind, scope, body=body, owner=owner, qualifier=owner)
    if receiver is not None and (variable := receiver.child_by_field_name("name")) is not None:
        walk.bind(inner, walk.text(variable), f"{owner}()")
    _typed(walk, node, inner)
    walk.push([receiver], inner)
    walk.push([node.child_by_field_name("parameters"), node.child_by_field_name("result"), body], inner)


def _typed(walk: Walk, node: Node, scope: int) -> None:
    """Bind the parameters and type parameters of a function, and record what it returns."""
    result = node.child_by_field_name("result")
    first = result
    if result is not None and result.type == "parameter_list":
        item = first_child(result)
        first = item.child_by_field_name("type") if item is not None else None
    walk.scopes[scope].returns = _value_of_type(walk, first)
    for field in ("parameters", "type_parameters"):
        parameters = node.child_by_field_name(field)
        for item in parameters.named_children if parameters is not None else []:
            value = _value_of_type(walk, item.child_by_field_name("type")) if field == "parameters" else ""
            for variable in item.children_by_field_name("name"):
                walk.bind(scope, walk.text(variable), value or UNKNOWN)


def _value_of_type(walk: Walk, node: Node | None) -> str:
    while node is not None and node.type in ("pointer_type", "parenthesized_type"):
        node = first_child(node)
    if node is None or node.type not in ("type_identifier", "qualified_type", "generic_type"):
        return ""
    return walk.type_value(node)


def _type(walk: Walk, node: Node, scope: int) -> None:
    own, held = walk.text(node.child_by_field_name("name")), node.child_by_field_name("type")
    outer = _statement(node)
    kind = _KINDS.get(held.type if held is not None else "", "type")
    body = first_child(held) if kind == "struct" else None
    inner = walk.define(outer, own, kind, scope, outer=outer, body=body)
    _typed(walk, node, inner)
    if kind == "interface" and held is not None:
        for item in held.named_children:
            if item.type == "method_elem":
                _declared(walk, item, inner)
            elif item.type == "type_elem":
                extend(walk, (child for child in item.named_children if child.type.endswith("type_identifier")), inner)
        return
    walk.push([held], inner)


def _declared(walk: Walk, node: Node, scope: int) -> None:
    inner = walk.define(node, walk.text(node.child_by_field_name("name")), "method", scope)
    walk.scopes[inner].declared = True
    _typed(walk, node, inner)
    walk.push([node.child_by_field_name("parameters"), node.child_by_field_name("result")], inner)


def _statement(node: Node) -> Node:
    """Return the declaration around a specification if it contains only this one, else the specification."""
    around = node.parent
    return around if around is not None and around.named_child_count == 1 and around.type.endswith("tion") else node


def _field(walk: Walk, node: Node, scope: int) -> None:
    held, names = node.child_by_field_name("type"), node.children_by_field_name("name")
    value = _value_of_type(walk, held)
    if not names and held is not None:
        # An embedded type hands its methods on, and is a field with its own name.
        embedded = first_child(held) if held.type == "pointer_type" else held
        extend(walk, [embedded or held], scope)
        walk.bind(scope, value.removesuffix("()").rpartition(".")[2], value or UNKNOWN)
        return
    for item in names:
        walk.bind(scope, walk.text(item), value or UNKNOWN)
    walk.push([held], scope)


def _constant(walk: Walk, node: Node, scope: int) -> None:
    names = node.children_by_field_name("name")
    value, held = node.child_by_field_name("value"), node.child_by_field_name("type")
    typed = _value_of_type(walk, held)
    where = scope
    for item in names:
        own = walk.text(item)
        if scope == 0 and own != "_" and (node.type == "const_spec" or last_row(node) > node.start_point.row or typed):
            where = walk.define(node, own, "constant", scope, outer=_statement(node))
            walk.scopes[where].returns = typed or _value(walk, first_child(value))
        walk.bind(scope, own, typed or _value(walk, first_child(value)))
    walk.push([held, value], where)


def _value(walk: Walk, node: Node | None) -> str:
    """Return the path of an expression's value, `?` for anything but names, members, calls and literals."""
    while node is not None and node.type in ("unary_expression", "parenthesized_expression"):
        node = node.child_by_field_name("operand") or first_child(node)
    if node is None:
        return UNKNOWN
    if node.type in ("composite_literal", "type_assertion_expression", "type_conversion_expression"):
        return _value_of_type(walk, node.child_by_field_name("type")) or UNKNOWN
    if node.type == "call_expression":
        function = node.child_by_field_name("function")
        if walk.text(function) == "new":
            return _value_of_type(walk, first_child(node.child_by_field_name("arguments"))) or UNKNOWN
        path = walk.path(function)[0] + "()"
    elif node.type in _VALUES:
        path = walk.path(node)[0]
    else:
        return UNKNOWN
    return UNKNOWN if UNKNOWN in path.split(".") or path.startswith(UNKNOWN) else path


def _short(walk: Walk, node: Node, scope: int) -> None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    values: Iterable[Node] = right.named_children if right is not None and node.type != "range_clause" else []
    targets = left.named_children if left is not None else []
    known = list(values)
    for index, target in enumerate(targets):
        if target.type == "identifier":
            # Of several results only the first one's type is known.
            value = known[index] if len(known) == len(targets) else known[0] if known and not index else None
            if node.type != "assignment_statement":
                walk.bind(scope, walk.text(target), _value(walk, value))
        else:
            walk.push([target], scope)
    walk.push([right], scope)


def _function_literal(walk: Walk, node: Node, scope: int) -> None:
    returns = walk.scopes[scope].returns
    _typed(walk, node, scope)
    walk.scopes[scope].returns = returns
    walk.push([node.child_by_field_name(field) for field in ("parameters", "result", "body")], scope)


def _keyed(walk: Walk, node: Node, scope: int) -> None:
    walk.push([node.child_by_field_name("value")], scope)


def _parameter(walk: Walk, node: Node, scope: int) -> None:
    walk.push([node.child_by_field_name("type")], scope)


GRAMMAR = Grammar(
    handlers={
        "package_clause": _package,
        "import_spec": _import,
        "function_declaration": _function,
        "method_declaration": _function,
        "type_spec": _type,
        "type_alias": _type,
        "field_declaration": _field,
        "const_spec": _constant,
        "var_spec": _constant,
        "short_var_declaration": _short,
        "range_clause": _short,
        "func_literal": _function_literal,
        "keyed_element": _keyed,
        "parameter_declaration": _parameter,
        "variadic_parameter_declaration": _parameter,
        "type_parameter_list": skip,
        "call_expression": call,
        "identifier": name,
        "selector_expression": name,
        "type_identifier": type_name,
        "qualified_type": type_name,
        "generic_type": type_name,
        "comment": skip,
        "label_name": skip,
    },
    names=frozenset({"identifier", "type_identifier", "qualified_type", "generic_type", "package_identifier"}),
    members={"selector_expression": ("operand", "field")},
    calls={"call_expression": "function"},
    through=frozenset({"parenthesized_expression", "type_instantiation_expression", "unary_expression"}),
)
