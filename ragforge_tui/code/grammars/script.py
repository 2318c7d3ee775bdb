"""Scopes and names of JavaScript and TypeScript, with JSX."""

from __future__ import annotations

import re
from typing import Final

from tree_sitter import Node

from ragforge_tui.code.parsed import UNKNOWN, Import
from ragforge_tui.code.walk import Grammar, Walk, call, extend, first_child, name, skip, type_name
from ragforge_tui.shared.code_records import ScopeKind

_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")
_FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "function", "generator_function"})
_CLASSES: Final = frozenset({"class", "class_declaration", "abstract_class_declaration"})
_BOUND: Final = frozenset({"identifier", "shorthand_property_identifier_pattern"})
_UNWRAPPED: Final = frozenset({"Promise", "Readonly", "Partial", "Required", "NonNullable", "Awaited", "PromiseLike"})
_VALUES: Final = frozenset({"identifier", "member_expression", "this"})


def _export(walk: Walk, node: Node, scope: int) -> None:
    declaration, source = node.child_by_field_name("declaration"), node.child_by_field_name("source")
    value = node.child_by_field_name("value")
    module, line = _string(walk, source), walk.line(node)
    default = any(child.type == "default" for child in node.children)
    for child in node.named_children:
        if child.type == "export_clause":
            for item in child.named_children:
                taken = walk.text(item.child_by_field_name("name"))
                alias = walk.text(item.child_by_field_name("alias")) or taken
                if module or alias != taken:
                    walk.imports.append(Import(module, taken, alias, line, scope))
        elif child.type == "namespace_export":
            walk.imports.append(Import(module, "", walk.text(first_child(child)), line, scope))
    if module and not any(child.type in ("export_clause", "namespace_export") for child in node.named_children):
        walk.imports.append(Import(module, "*", "", line, scope))
    if default and (declaration or value) is not None:
        exported = declaration or value
        assert exported is not None
        if exported.type == "identifier":
            walk.imports.append(Import("", walk.text(exported), "default", line, scope))
        elif exported.type in _CLASSES or exported.type in _FUNCTIONS or "function" in exported.type:
            own = walk.text(exported.child_by_field_name("name"))
            if own:
                walk.imports.append(Import("", own, "default", line, scope))
            _define_value(walk, exported, own or "default", scope, node)
            return
    if declaration is not None and declaration.type in ("lexical_declaration", "variable_declaration"):
        _variables(walk, declaration, scope, node)
    elif declaration is not None and declaration.type in _DEFINED:
        _DEFINED[declaration.type](walk, declaration, scope, node)
    else:
        walk.push([declaration, value], scope)


def _string(walk: Walk, node: Node | None) -> str:
    return walk.text(node).strip("\"'`")


def _import(walk: Walk, node: Node, scope: int) -> None:
    module, line = _string(walk, node.child_by_field_name("source")), walk.line(node)
    clause = next((child for child in node.named_children if child.type == "import_clause"), None)
    taken = len(walk.imports)
    for child in clause.named_children if clause is not None else []:
        if child.type == "identifier":
            walk.imports.append(Import(module, "default", walk.text(child), line, scope, exported=False))
        elif child.type == "namespace_import":
            walk.imports.append(Import(module, "", walk.text(first_child(child)), line, scope, exported=False))
        elif child.type == "named_imports":
            for item in child.named_children:
                own = walk.text(item.child_by_field_name("name"))
                alias = walk.text(item.child_by_field_name("alias")) or own
                walk.imports.append(Import(module, own, alias, line, scope, exported=False))
    if module and len(walk.imports) == taken:
        walk.imports.append(Import(module, "", "", line, scope, exported=False))


def _function(walk: Walk, node: Node, scope: int, outer: Node | None = None) -> None:
    own = walk.text(node.child_by_field_name("name"))
    _define_function(walk, node, own, "function", scope, outer or node)


def _define_function(
    walk: Walk,
    node: Node,
    own: str,
    kind: ScopeKind,
    scope: int,
    outer: Node,
    *,
    owner: str = "",
    head: Node | None = None,
) -> int:
    body = node.child_by_field_name("body")
    inner = walk.define(head or node, own, kind, scope, outer=outer, body=body, owner=owner, qualifier=owner)
    made = walk.scopes[inner]
    made.declared = body is None
    returns = node.child_by_field_name("return_type")
    made.returns = walk.type_value(returns, _UNWRAPPED)
    _type_parameters(walk, node, inner)
    _bind_parameters(walk, node, inner)
    walk.push([node.child_by_field_name("parameters"), returns, body], inner)
    return inner


def _type_parameters(walk: Walk, node: Node, scope: int) -> None:
    parameters = node.child_by_field_name("type_parameters")
    for item in parameters.named_children if parameters is not None else []:
        walk.bind(scope, walk.text(item.child_by_field_name("name")))


def _bind_parameters(walk: Walk, node: Node, scope: int) -> None:
    single, parameters = node.child_by_field_name("parameter"), node.child_by_field_name("parameters")
    if single is not None:
        walk.bind(scope, walk.text(single))
    for item in parameters.named_children if parameters is not None else []:
        pattern = item.child_by_field_name("pattern") or item.child_by_field_name("left") or item
        if pattern.type == "identifier":
            value = walk.type_value(item.child_by_field_name("type"), _UNWRAPPED) or UNKNOWN
            walk.bind(scope, walk.text(pattern), value)
            owner = walk.enclosing_class(scope)
            if owner is not None and any(
                child.type in ("accessibility_modifier", "readonly") for child in item.children
            ):
                walk.bind(owner, walk.text(pattern), value)
        else:
            walk.bind_all(scope, pattern, _BOUND)


def _parameter(walk: Walk, node: Node, scope: int) -> None:
    walk.push([node.child_by_field_name("type"), node.child_by_field_name("value")], scope)


def _parameters(walk: Walk, node: Node, scope: int) -> None:
    walk.push((item for item in node.named_children if item.type.endswith("parameter")), scope)


def _class(walk: Walk, node: Node, scope: int, outer: Node | None = None) -> None:
    _define_class(walk, node, walk.text(node.child_by_field_name("name")) or "class", scope, outer or node)


def _define_class(walk: Walk, node: Node, own: str, scope: int, outer: Node, head: Node | None = None) -> int:
    body = node.child_by_field_name("body")
    inner = walk.define(head or node, own, "class", scope, outer=outer, body=body)
    _type_parameters(walk, node, inner)
    for child in node.named_children:
        if child.type == "class_heritage":
            clauses = [item for item in child.named_children if item.type in ("extends_clause", "implements_clause")]
            # JavaScript has the extended class without a clause.
            bases = [item for clause in clauses or [child] for item in clause.named_children]
            extend(walk, (item for item in bases if item.type != "type_arguments"), inner)
            walk.push((item for item in bases if item.type in ("type_arguments", "call_expression")), inner)
        elif child.type == "decorator":
            walk.push([child], inner)
    walk.push([body], inner)
    return inner


def _interface(walk: Walk, node: Node, scope: int, outer: Node | None = None) -> None:
    body = node.child_by_field_name("body")
    own = walk.text(node.child_by_field_name("name"))
    inner = walk.define(node, own, "interface", scope, outer=outer or node, body=body)
    _type_parameters(walk, node, inner)
    for child in node.named_children:
        if child.type in ("extends_type_clause", "extends_clause"):
            extend(walk, child.named_children, inner)
    walk.push([body], inner)


def _enum(walk: Walk, node: Node, scope: int, outer: Node | None = None) -> None:
    body = node.child_by_field_name("body")
    inner = walk.define(
        node, walk.text(node.child_by_field_name("name")), "enum", scope, outer=outer or node, body=body
    )
    walk.push([body], inner)


def _type_alias(walk: Walk, node: Node, scope: int, outer: Node | None = None) -> None:
    inner = walk.define(node, walk.text(node.child_by_field_name("name")), "type", scope, outer=outer or node)
    _type_parameters(walk, node, inner)
    walk.push([node.child_by_field_name("value")], inner)


def _namespace(walk: Walk, node: Node, scope: int, outer: Node | None = None) -> None:
    body = node.child_by_field_name("body")
    own = _string(walk, node.child_by_field_name("name"))
    inner = walk.define(node, own, "module", scope, outer=outer or node, body=body)
    walk.push([body], inner)


def _method(walk: Walk, node: Node, scope: int) -> None:
    own = walk.text(node.child_by_field_name("name")).strip("\"'")
    kind: ScopeKind = "method" if walk.scopes[scope].kind in ("class", "interface", "constant") else "function"
    inner = _define_function(walk, node, own, kind, scope, node)
    if any(child.type == "get" for child in node.children):
        walk.bind(scope, own, walk.scopes[inner].returns or UNKNOWN)


def _field(walk: Walk, node: Node, scope: int) -> None:
    own = walk.text(node.child_by_field_name("name") or node.child_by_field_name("property"))
    value, annotation = node.child_by_field_name("value"), node.child_by_field_name("type")
    if value is not None and value.type in _FUNCTIONS:
        _define_function(walk, value, own, "method", scope, node, head=node)
        return
    walk.bind(scope, own, walk.type_value(annotation, _UNWRAPPED) or _value(walk, value))
    walk.push([annotation, value], scope)


def _variables(walk: Walk, node: Node, scope: int, outer: Node | None = None) -> None:
    declarators = [child for child in node.named_children if child.type == "variable_declarator"]
    for declarator in reversed(declarators):
        _variable(walk, declarator, scope, (outer or node) if len(declarators) == 1 else declarator)


def _variable(walk: Walk, node: Node, scope: int, outer: Node) -> None:
    target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    annotation = node.child_by_field_name("type")
    required = _required(walk, value)
    if target is None:
        return
    if target.type != "identifier":
        if required:
            _take(walk, target, required, scope)
        else:
            walk.bind_all(scope, target, _BOUND)
        walk.push([annotation, value], scope)
        return
    own = walk.text(target)
    if required:
        walk.imports.append(Import(required, "", own, walk.line(node), scope))
    elif value is not None and (value.type in _FUNCTIONS or value.type in _CLASSES):
        _define_value(walk, value, own, scope, outer, node)
    elif scope == 0 and (_CONSTANT.fullmatch(own) or (value is not None and _has_functions(value))):
        inner = walk.define(node, own, "constant", scope, outer=outer)
        walk.scopes[inner].returns = walk.type_value(annotation, _UNWRAPPED) or _value(walk, value)
        walk.push([annotation, value], inner)
    else:
        walk.bind(scope, own, walk.type_value(annotation, _UNWRAPPED) or _value(walk, value))
        walk.push([annotation, value], scope)


def _define_value(
    walk: Walk, value: Node, own: str, scope: int, outer: Node, head: Node | None = None, *, owner: str = ""
) -> None:
    if value.type in _CLASSES:
        _define_class(walk, value, own, scope, outer, head)
    else:
        _define_function(walk, value, own, "method" if owner else "function", scope, outer, owner=owner, head=head)


def _has_functions(value: Node) -> bool:
    if value.type != "object":
        return False
    return any(
        child.type == "method_definition"
        or (
            child.type == "pair"
            and (held := child.child_by_field_name("value")) is not None
            and held.type in _FUNCTIONS
        )
        for child in value.named_children
    )


def _pair(walk: Walk, node: Node, scope: int) -> None:
    value = node.child_by_field_name("value")
    if value is not None and value.type in _FUNCTIONS and walk.scopes[scope].kind == "constant":
        _define_function(walk, value, _string(walk, node.child_by_field_name("key")), "method", scope, node, head=node)
    else:
        walk.push([value], scope)


def _required(walk: Walk, value: Node | None) -> str:
    if value is None or value.type != "call_expression":
        return ""
    if walk.text(value.child_by_field_name("function")) != "require":
        return ""
    argument = first_child(value.child_by_field_name("arguments"))
    return _string(walk, argument) if argument is not None and argument.type == "string" else ""


def _take(walk: Walk, pattern: Node, module: str, scope: int) -> None:
    for item in pattern.named_children:
        own = walk.text(item.child_by_field_name("key") or item)
        alias = walk.text(item.child_by_field_name("value")) or own
        walk.imports.append(Import(module, own, alias, walk.line(item), scope))


def _value(walk: Walk, node: Node | None) -> str:
    """Return the path of an expression's value, `?` for anything but names, members and calls."""
    while node is not None and node.type in ("await_expression", "parenthesized_expression", "non_null_expression"):
        node = first_child(node)
    if node is None:
        return UNKNOWN
    if node.type in ("as_expression", "satisfies_expression") and len(node.named_children) == 2:
        return walk.type_value(node.named_children[1], _UNWRAPPED) or UNKNOWN
    if node.type in ("call_expression", "new_expression"):
        path, _ = walk.path(node.child_by_field_name("function") or node.child_by_field_name("constructor"))
        path += "()"
    elif node.type in _VALUES:
        path, _ = walk.path(node)
    else:
        return UNKNOWN
    return UNKNOWN if UNKNOWN in path.split(".") or path.startswith(UNKNOWN) else path


def _assignment(walk: Walk, node: Node, scope: int) -> None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    target = walk.text(left) if left is not None and left.type == "member_expression" else ""
    holder, _, own = target.rpartition(".")
    if right is not None and target:
        function = right.type in _FUNCTIONS
        if holder.endswith(".prototype") and function:
            _define_value(walk, right, own, 0, node, node, owner=holder.removesuffix(".prototype"))
            return
        if scope == 0 and (holder in ("exports", "module.exports") or target == "module.exports"):
            exported = own if holder else "default"
            exported = "default" if target == "module.exports" else exported
            if function or right.type in _CLASSES:
                given = walk.text(right.child_by_field_name("name"))
                if given and given != exported:
                    walk.imports.append(Import("", given, exported, walk.line(node), scope))
                _define_value(walk, right, given or exported, scope, node, node)
                return
            _exported_object(walk, right, exported, scope)
        elif holder == "this" and (owner := walk.enclosing_class(scope)) is not None:
            path = _value(walk, right)
            first, dot, others = path.partition(".")
            local = walk.scopes[scope].types.get(first)
            walk.bind(owner, own, path if local is None else UNKNOWN if local == UNKNOWN else local + dot + others)
    walk.push([left, right], scope)


def _exported_object(walk: Walk, value: Node, exported: str, scope: int) -> None:
    if value.type == "identifier":
        walk.imports.append(Import("", walk.text(value), exported, walk.line(value), scope))
    for item in value.named_children if value.type == "object" else []:
        held = item.child_by_field_name("value")
        if held is not None and held.type == "identifier":
            own = walk.text(item.child_by_field_name("key"))
            walk.imports.append(Import("", walk.text(held), own, walk.line(item), scope))


def _arrow(walk: Walk, node: Node, scope: int) -> None:
    _bind_parameters(walk, node, scope)
    parameters = node.child_by_field_name("parameters")
    walk.push([parameters, node.child_by_field_name("return_type"), node.child_by_field_name("body")], scope)


def _for_in(walk: Walk, node: Node, scope: int) -> None:
    left = node.child_by_field_name("left")
    walk.bind_all(scope, left, _BOUND)
    walk.push_children(node, scope, but=[left])


def _catch(walk: Walk, node: Node, scope: int) -> None:
    walk.bind_all(scope, node.child_by_field_name("parameter"), _BOUND)
    walk.push([node.child_by_field_name("body")], scope)


def _element(walk: Walk, node: Node, scope: int) -> None:
    tag = node.child_by_field_name("name")
    path, _ = walk.path(tag)
    if tag is not None and (path[:1].isupper() or "." in path):
        walk.mention(scope, "calls", path, walk.line(node))
    walk.push_children(node, scope, but=[tag])


_DEFINED = {
    "function_declaration": _function,
    "generator_function_declaration": _function,
    "function_signature": _function,
    "class_declaration": _class,
    "abstract_class_declaration": _class,
    "interface_declaration": _interface,
    "enum_declaration": _enum,
    "type_alias_declaration": _type_alias,
    "internal_module": _namespace,
    "module": _namespace,
}

GRAMMAR = Grammar(
    handlers={
        **_DEFINED,
        "export_statement": _export,
        "import_statement": _import,
        "class": _class,
        "method_definition": _method,
        "method_signature": _method,
        "abstract_method_signature": _method,
        "public_field_definition": _field,
        "field_definition": _field,
        "property_signature": _field,
        "lexical_declaration": _variables,
        "variable_declaration": _variables,
        "arrow_function": _arrow,
        "function_expression": _arrow,
        "generator_function": _arrow,
        "formal_parameters": _parameters,
        "required_parameter": _parameter,
        "optional_parameter": _parameter,
        "assignment_expression": _assignment,
        "for_in_statement": _for_in,
        "catch_clause": _catch,
        "pair": _pair,
        "call_expression": call,
        "new_expression": call,
        "identifier": name,
        "shorthand_property_identifier": name,
        "member_expression": name,
        "type_identifier": type_name,
        "nested_type_identifier": type_name,
        "generic_type": type_name,
        "jsx_opening_element": _element,
        "jsx_self_closing_element": _element,
        "jsx_closing_element": skip,
        "comment": skip,
        "string": skip,
        "property_identifier": skip,
        "statement_identifier": skip,
        "type_parameters": skip,
    },
    names=frozenset(
        {
            "identifier",
            "this",
            "super",
            "type_identifier",
            "nested_type_identifier",
            "property_identifier",
            "shorthand_property_identifier",
            "generic_type",
        }
    ),
    members={"member_expression": ("object", "property"), "nested_identifier": ("object", "property")},
    calls={"call_expression": "function", "new_expression": "constructor"},
    through=frozenset({"await_expression", "parenthesized_expression", "non_null_expression"}),
)
