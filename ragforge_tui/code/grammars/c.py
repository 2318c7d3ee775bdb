"""Scopes and names of C and C++.

A prototype of a header is a scope too, since headers hold most of the documentation; the resolver continues from it
to the definition. Namespaces are part of qualified names and are no scopes.
"""

from __future__ import annotations

from typing import Final

from tree_sitter import Node

from ragforge_tui.code.parsed import UNKNOWN, Import
from ragforge_tui.code.walk import Grammar, Walk, call, extend, first_child, name, plain_name, skip, type_name
from ragforge_tui.shared.code_records import ScopeKind

_KINDS: Final[dict[str, ScopeKind]] = {
    "class_specifier": "class",
    "struct_specifier": "struct",
    "union_specifier": "struct",
    "enum_specifier": "enum",
}
_UNWRAPPED: Final = frozenset({"unique_ptr", "shared_ptr", "weak_ptr", "optional"})
_DECLARATORS: Final = frozenset(
    {"pointer_declarator", "reference_declarator", "array_declarator", "parenthesized_declarator", "init_declarator"}
)
_BASES: Final = frozenset({"type_identifier", "qualified_identifier", "template_type"})


def _outer(node: Node) -> Node:
    around = node.parent
    while around is not None and around.type in ("template_declaration", "declaration", "type_definition"):
        if around.type == "declaration" and around.child_by_field_name("declarator") is not None:
            break
        node, around = around, around.parent
    return node


def _namespace(walk: Walk, node: Node, scope: int) -> None:
    walk.package = " ".join(dict.fromkeys([*walk.package.split(), *_names(walk, node.child_by_field_name("name"))]))
    walk.push([node.child_by_field_name("body")], scope)


def _names(walk: Walk, node: Node | None) -> list[str]:
    return [part for part in plain_name(walk.text(node)).split(".") if part]


def _namespaces(walk: Walk, node: Node) -> str:
    found: list[str] = []
    around = node.parent
    while around is not None:
        if around.type == "namespace_definition":
            found = _names(walk, around.child_by_field_name("name")) + found
        elif around.type in _KINDS:
            return ""
        around = around.parent
    return ".".join(found)


def _include(walk: Walk, node: Node, scope: int) -> None:
    path = node.child_by_field_name("path")
    if path is not None and path.type in ("string_literal", "system_lib_string"):
        walk.imports.append(Import(walk.text(path).strip('"<>'), "*", "", walk.line(node), 0))


def _innermost(node: Node | None) -> Node | None:
    """Return the declarator without pointers, references and brackets around it."""
    while node is not None and node.type in _DECLARATORS:
        node = node.child_by_field_name("declarator") or first_child(node)
    return node


def _function(walk: Walk, node: Node, scope: int) -> None:
    declarator = _innermost(node.child_by_field_name("declarator"))
    body = node.child_by_field_name("body")
    if declarator is None or declarator.type != "function_declarator":
        walk.push_children(node, scope)
        return
    _define_function(walk, node, declarator, body, scope)


def _define_function(walk: Walk, node: Node, declarator: Node, body: Node | None, scope: int) -> None:
    written = _innermost(declarator.child_by_field_name("declarator"))
    *around, own = _names(walk, written) or [""]
    if not own:
        walk.push_children(node, scope)
        return
    known = walk.package.split()
    owner = ".".join(part for part in around if part not in known)
    in_type = walk.enclosing_class(scope) is not None
    kind: ScopeKind = "method" if owner or in_type else "function"
    qualifier = ".".join(part for part in (_namespaces(walk, node), ".".join(around)) if part)
    inner = walk.define(node, own, kind, scope, outer=_outer(node), body=body, owner=owner, qualifier=qualifier)
    made = walk.scopes[inner]
    made.declared = body is None
    held = node.child_by_field_name("type")
    made.returns = walk.type_value(held, _UNWRAPPED)
    _type_parameters(walk, node, inner)
    parameters = declarator.child_by_field_name("parameters")
    for item in parameters.named_children if parameters is not None else []:
        _bind(walk, item, inner)
    initial = next((child for child in node.named_children if child.type == "field_initializer_list"), None)
    walk.push([held, parameters, initial, body], inner)


def _type_parameters(walk: Walk, node: Node, scope: int) -> None:
    around = node.parent
    while around is not None and around.type == "template_declaration":
        parameters = around.child_by_field_name("parameters")
        for item in parameters.named_children if parameters is not None else []:
            walk.bind(scope, walk.text(first_child(item)))
        around = around.parent


def _bind(walk: Walk, item: Node, scope: int) -> None:
    variable = _innermost(item.child_by_field_name("declarator"))
    if variable is not None and variable.type in ("identifier", "field_identifier"):
        walk.bind(scope, walk.text(variable), walk.type_value(item.child_by_field_name("type"), _UNWRAPPED) or UNKNOWN)


def _type(walk: Walk, node: Node, scope: int) -> None:
    own, body = walk.text(node.child_by_field_name("name")), node.child_by_field_name("body")
    around = node.parent
    alias = (
        around.child_by_field_name("declarator") if around is not None and around.type == "type_definition" else None
    )
    if body is None:
        walk.push([node.child_by_field_name("name")], scope)
        return
    if not own and alias is not None and alias.type == "type_identifier":
        own = walk.text(alias)
    if not own:
        walk.push([body], scope)
        return
    own = plain_name(own).rpartition(".")[2]
    inner = walk.define(
        node, own, _KINDS[node.type], scope, outer=_outer(node), body=body, qualifier=_namespaces(walk, node)
    )
    _type_parameters(walk, node, inner)
    for child in node.named_children:
        if child.type == "base_class_clause":
            extend(walk, (item for item in child.named_children if item.type in _BASES), inner)
    walk.push([body], inner)


def _type_definition(walk: Walk, node: Node, scope: int) -> None:
    held, alias = node.child_by_field_name("type"), _innermost(node.child_by_field_name("declarator"))
    defines = held is not None and held.type in _KINDS and held.child_by_field_name("body") is not None
    while alias is not None and alias.type == "function_declarator":
        alias = _innermost(alias.child_by_field_name("declarator"))
    if alias is not None and alias.type == "type_identifier":
        known = walk.text(held.child_by_field_name("name")) if held is not None else ""
        own = walk.text(alias)
        if not defines or (known and known != own):
            inner = walk.define(node, own, "type", scope, outer=node)
            walk.scopes[inner].returns = walk.type_value(held)
    walk.push([held], scope)


def _alias(walk: Walk, node: Node, scope: int) -> None:
    held = node.child_by_field_name("type")
    own = walk.text(node.child_by_field_name("name"))
    inner = walk.define(node, own, "type", scope, outer=_outer(node), qualifier=_namespaces(walk, node))
    walk.scopes[inner].returns = walk.type_value(held, _UNWRAPPED)
    walk.push([held], inner)


def _declaration(walk: Walk, node: Node, scope: int) -> None:
    held = node.child_by_field_name("type")
    value = walk.type_value(held, _UNWRAPPED)
    declarators = node.children_by_field_name("declarator")
    in_type = walk.scopes[scope].kind in ("class", "struct")
    for declarator in declarators:
        inner = _innermost(declarator)
        assigned = declarator.child_by_field_name("value")
        if inner is not None and inner.type == "function_declarator":
            pointer = _innermost(inner.child_by_field_name("declarator"))
            is_pointer = (inner.child_by_field_name("declarator") or inner).type == "parenthesized_declarator"
            if (in_type or scope == 0) and not is_pointer:
                _define_function(walk, node, inner, None, scope)
                return
            walk.bind(scope, walk.text(pointer))
            continue
        own = walk.text(inner)
        typed = value if value not in ("", "auto()") else _value(walk, assigned)
        if scope == 0 and _is_constant(walk, node, own):
            where = walk.define(node, own, "constant", scope, outer=node, qualifier=_namespaces(walk, node))
            walk.scopes[where].returns = typed
            walk.push([assigned], where)
        else:
            if inner is not None and inner.type in ("identifier", "field_identifier"):
                walk.bind(scope, own, typed or UNKNOWN)
            walk.push([assigned], scope)
    walk.push([held, node.child_by_field_name("default_value")], scope)


def _is_constant(walk: Walk, node: Node, own: str) -> bool:
    words = {walk.text(child) for child in node.children if child.type in ("type_qualifier", "storage_class_specifier")}
    return bool(words & {"const", "constexpr"}) and own.isidentifier()


def _value(walk: Walk, node: Node | None) -> str:
    """Return the path of an expression's value, `?` for anything but names, members, calls and `new`."""
    if node is None:
        return UNKNOWN
    if node.type == "new_expression":
        return walk.type_value(node.child_by_field_name("type")) or UNKNOWN
    if node.type == "call_expression":
        function = node.child_by_field_name("function")
        if function is not None and plain_name(walk.text(function)).rpartition(".")[2] in (
            "make_unique",
            "make_shared",
        ):
            return walk.type_value(_first_argument(function)) or UNKNOWN
        path = walk.path(function)[0] + "()"
    elif node.type in ("identifier", "field_expression", "qualified_identifier"):
        path = walk.path(node)[0]
    else:
        return UNKNOWN
    return UNKNOWN if UNKNOWN in path.split(".") or path.startswith(UNKNOWN) else path


def _first_argument(function: Node) -> Node | None:
    node: Node | None = function
    while node is not None and node.type == "qualified_identifier":
        node = node.child_by_field_name("name")
    return first_child(node.child_by_field_name("arguments")) if node is not None else None


def _macro(walk: Walk, node: Node, scope: int) -> None:
    kind: ScopeKind = "function" if node.type == "preproc_function_def" else "constant"
    value = node.child_by_field_name("value")
    if value is not None:
        walk.define(node, walk.text(node.child_by_field_name("name")), kind, 0, outer=node)


def _parameter(walk: Walk, node: Node, scope: int) -> None:
    _bind(walk, node, scope)
    walk.push([node.child_by_field_name("type"), node.child_by_field_name("default_value")], scope)


def _initializer(walk: Walk, node: Node, scope: int) -> None:
    walk.push(node.named_children[1:], scope)


def _range_loop(walk: Walk, node: Node, scope: int) -> None:
    _bind(walk, node, scope)
    walk.push([node.child_by_field_name(field) for field in ("type", "right", "body")], scope)


GRAMMAR = Grammar(
    handlers={
        "preproc_include": _include,
        "preproc_def": _macro,
        "preproc_function_def": _macro,
        "namespace_definition": _namespace,
        **dict.fromkeys(_KINDS, _type),
        "function_definition": _function,
        "inline_method_definition": _function,
        "declaration": _declaration,
        "field_declaration": _declaration,
        "type_definition": _type_definition,
        "alias_declaration": _alias,
        "parameter_declaration": _parameter,
        "optional_parameter_declaration": _parameter,
        "field_initializer": _initializer,
        "for_range_loop": _range_loop,
        "call_expression": call,
        "new_expression": call,
        "identifier": name,
        "qualified_identifier": name,
        "field_expression": name,
        "type_identifier": type_name,
        "template_type": type_name,
        "using_declaration": skip,
        "template_parameter_list": skip,
        "enumerator": lambda walk, node, scope: walk.push([node.child_by_field_name("value")], scope),
        "comment": skip,
        "preproc_arg": skip,
        "string_literal": skip,
    },
    names=frozenset(
        {
            *("identifier", "this", "type_identifier", "template_type", "template_function", "namespace_identifier"),
            *("qualified_identifier", "field_identifier", "destructor_name", "operator_name"),
        }
    ),
    members={"field_expression": ("argument", "field")},
    calls={"call_expression": "function", "new_expression": "type"},
    through=frozenset({"parenthesized_expression", "pointer_expression"}),
)
