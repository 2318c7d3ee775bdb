"""Scopes and names of Rust."""

from __future__ import annotations

from typing import Final

from tree_sitter import Node

from ragforge_tui.code.parsed import SELF, UNKNOWN, Import
from ragforge_tui.code.walk import Grammar, Walk, call, extend, first_child, name, plain_name, skip, type_name
from ragforge_tui.shared.code_records import ScopeKind

_UNWRAPPED: Final = frozenset({"Option", "Result", "Box", "Arc", "Rc", "Ref", "RefMut", "Cow", "Pin", "MutexGuard"})
_KINDS: Final[dict[str, ScopeKind]] = {
    "struct_item": "struct",
    "union_item": "struct",
    "enum_item": "enum",
    "trait_item": "trait",
    "type_item": "type",
    "const_item": "constant",
    "static_item": "constant",
    "macro_definition": "function",
    "mod_item": "module",
}
_BOUND: Final = frozenset({"identifier", "shorthand_field_identifier"})
# Methods whose result is what the object holds, so that its type says what the result is.
_SAME: Final = frozenset(
    {"unwrap", "expect", "unwrap_or_default", "clone", "as_ref", "as_mut", "borrow", "borrow_mut", "lock", "to_owned"}
)


def _outer(node: Node) -> Node:
    """Return the first attribute in front of an item, or the item."""
    first = node
    while first.prev_sibling is not None and first.prev_sibling.type == "attribute_item":
        first = first.prev_sibling
    return first


def _define(
    walk: Walk, node: Node, own: str, kind: ScopeKind, scope: int, body: Node | None, *, owner: str = ""
) -> int:
    inner = walk.define(
        node, own, kind, scope, body=body, owner=owner, qualifier=owner, doc=walk.comment_before(_outer(node))
    )
    first = _outer(node)
    walk.extend_upwards(inner, first)
    return inner


def _function(walk: Walk, node: Node, scope: int) -> None:
    body, returns = node.child_by_field_name("body"), node.child_by_field_name("return_type")
    owner = _implemented(walk, node)
    in_trait = walk.scopes[scope].kind == "trait"
    kind: ScopeKind = "method" if owner or in_trait else "function"
    inner = _define(walk, node, walk.text(node.child_by_field_name("name")), kind, scope, body, owner=owner)
    made = walk.scopes[inner]
    made.declared = body is None
    made.returns = walk.type_value(returns, _UNWRAPPED)
    _type_parameters(walk, node, inner)
    parameters = node.child_by_field_name("parameters")
    for item in parameters.named_children if parameters is not None else []:
        if item.type == "self_parameter":
            walk.bind(inner, "self", SELF)
        _bind(walk, item, inner)
    bounds = [child for child in node.named_children if child.type == "where_clause"]
    walk.push([parameters, returns, *bounds, body], inner)


def _implemented(walk: Walk, node: Node) -> str:
    around = node.parent.parent if node.parent is not None else None
    if around is None or around.type != "impl_item":
        return ""
    return plain_name(walk.text(around.child_by_field_name("type")))


def _type_parameters(walk: Walk, node: Node, scope: int) -> None:
    parameters = node.child_by_field_name("type_parameters")
    for item in parameters.named_children if parameters is not None else []:
        own = item.child_by_field_name("name")
        bounds = item.child_by_field_name("bounds")
        bound = first_child(bounds)
        if own is not None and item.type in ("type_parameter", "constrained_type_parameter"):
            value = walk.type_value(bound) if bound is not None else ""
            walk.bind(scope, walk.text(own), value or UNKNOWN)
        walk.push([bounds], scope)


def _bind(walk: Walk, item: Node, scope: int) -> None:
    pattern = item.child_by_field_name("pattern")
    while pattern is not None and pattern.type in ("mut_pattern", "ref_pattern"):
        pattern = pattern.named_children[-1] if pattern.named_children else None
    value = walk.type_value(item.child_by_field_name("type"), _UNWRAPPED)
    if pattern is not None and pattern.type == "identifier":
        held = item.child_by_field_name("value")
        walk.bind(scope, walk.text(pattern), value or _value(walk, held) or UNKNOWN)
    else:
        walk.bind_all(scope, pattern, _BOUND)


def _value(walk: Walk, node: Node | None) -> str:
    """Return the path of an expression's value, `?` for anything but names, members, calls and literals."""
    while node is not None:
        if node.type in ("try_expression", "await_expression", "reference_expression", "parenthesized_expression"):
            node = node.child_by_field_name("value") or first_child(node)
        elif node.type == "struct_expression":
            return plain_name(walk.text(node.child_by_field_name("name"))) + "()"
        elif node.type == "call_expression":
            function = node.child_by_field_name("function")
            same = function is not None and walk.text(function.child_by_field_name("field")) in _SAME
            if function is not None and same:
                node = function.child_by_field_name("value")
                continue
            path = walk.path(function)[0] + "()"
            return UNKNOWN if path.startswith(UNKNOWN) else path
        elif node.type in ("identifier", "field_expression", "scoped_identifier", "self"):
            path = walk.path(node)[0]
            return UNKNOWN if path.startswith(UNKNOWN) else path
        else:
            return UNKNOWN
    return UNKNOWN


def _let(walk: Walk, node: Node, scope: int) -> None:
    _bind(walk, node, scope)
    walk.push([node.child_by_field_name(field) for field in ("type", "value", "alternative")], scope)


def _loop(walk: Walk, node: Node, scope: int) -> None:
    walk.bind_all(scope, node.child_by_field_name("pattern"), _BOUND)
    walk.push([node.child_by_field_name("value"), node.child_by_field_name("body")], scope)


def _closure(walk: Walk, node: Node, scope: int) -> None:
    parameters = node.child_by_field_name("parameters")
    for item in parameters.named_children if parameters is not None else []:
        if item.type == "parameter":
            _bind(walk, item, scope)
            walk.push([item.child_by_field_name("type")], scope)
        else:
            walk.bind_all(scope, item, _BOUND)
    walk.push([node.child_by_field_name("body")], scope)


def _item(walk: Walk, node: Node, scope: int) -> None:
    kind = _KINDS[node.type]
    own, body = walk.text(node.child_by_field_name("name")), node.child_by_field_name("body")
    if kind == "module" and body is None:
        walk.imports.append(Import("self", own, own, walk.line(node), scope))
        return
    owner = _implemented(walk, node) if kind in ("constant", "type") else ""
    if kind == "constant" and scope and walk.scopes[scope].kind in ("function", "method"):
        walk.bind(scope, own)
        walk.push_children(node, scope, but=[node.child_by_field_name("name")])
        return
    inner = _define(walk, node, own, kind, scope, body, owner=owner)
    made = walk.scopes[inner]
    if kind == "constant" or (kind == "type" and not owner):
        made.returns = walk.type_value(node.child_by_field_name("type"), _UNWRAPPED)
    _type_parameters(walk, node, inner)
    bounds = node.child_by_field_name("bounds")
    if bounds is not None and kind == "trait":
        extend(walk, (item for item in bounds.named_children if item.type != "lifetime"), inner)
    if node.type != "macro_definition":
        walk.push_children(
            node, inner, but=[node.child_by_field_name(field) for field in ("name", "bounds", "type_parameters")]
        )


def _field(walk: Walk, node: Node, scope: int) -> None:
    held = node.child_by_field_name("type")
    walk.bind(scope, walk.text(node.child_by_field_name("name")), walk.type_value(held, _UNWRAPPED) or UNKNOWN)
    walk.push([held], scope)


def _implementation(walk: Walk, node: Node, scope: int) -> None:
    trait, body = node.child_by_field_name("trait"), node.child_by_field_name("body")
    held = node.child_by_field_name("type")
    if trait is not None:
        path, target = plain_name(walk.text(trait)), plain_name(walk.text(held))
        found = next((index for index, item in enumerate(walk.scopes) if index and item.name == target), None)
        if found is not None and walk.scopes[found].kind in ("struct", "enum", "type"):
            walk.scopes[found].bases.append(path)
            walk.mention(found, "inherits", path, walk.line(trait))
        else:
            walk.mention(scope, "uses", path, walk.line(trait))
    walk.push([body], scope)


def _use(walk: Walk, node: Node, scope: int) -> None:
    exported = any(child.type == "visibility_modifier" for child in node.named_children)
    stack: list[tuple[Node | None, str]] = [(node.child_by_field_name("argument"), "")]
    while stack:
        item, prefix = stack.pop()
        if item is None:
            continue
        if item.type == "use_list":
            stack.extend((child, prefix) for child in reversed(item.named_children))
        elif item.type == "scoped_use_list":
            path = plain_name(walk.text(item.child_by_field_name("path")))
            stack.append((item.child_by_field_name("list"), f"{prefix}.{path}".strip(".")))
        elif item.type == "use_wildcard":
            path = plain_name(walk.text(first_child(item)))
            walk.imports.append(
                Import(f"{prefix}.{path}".strip("."), "*", "", walk.line(item), scope, exported=exported)
            )
        else:
            alias = walk.text(item.child_by_field_name("alias")) if item.type == "use_as_clause" else ""
            written = item.child_by_field_name("path") if item.type == "use_as_clause" else item
            path = plain_name(walk.text(written))
            whole = f"{prefix}.{path}".strip(".") if path != "self" or not prefix else prefix
            module, _, own = whole.rpartition(".")
            walk.imports.append(
                Import(module or own, own if module else "", alias or own, walk.line(item), scope, exported=exported)
            )


def _macro(walk: Walk, node: Node, scope: int) -> None:
    macro = node.child_by_field_name("macro")
    walk.mention(scope, "calls", walk.path(macro)[0], walk.line(node))
    tokens = node.named_children[-1] if node.named_children else None
    stack = [tokens] if tokens is not None and tokens.type == "token_tree" else []
    while stack:
        # The arguments of a macro are tokens: a name in front of a bracket is most likely a call.
        children = stack.pop().children
        for index, child in enumerate(children):
            if child.type == "token_tree":
                stack.append(child)
            elif child.type == "identifier":
                own = walk.text(child)
                following = children[index + 1] if index + 1 < len(children) else None
                called = following is not None and following.type == "token_tree" and walk.text(following)[:1] == "("
                alone = index == 0 or walk.text(children[index - 1]) not in (".", "::")
                if alone:
                    walk.mention(scope, "calls" if called else "uses", own, walk.line(child), weak=True)


def _structure(walk: Walk, node: Node, scope: int) -> None:
    own = node.child_by_field_name("name")
    walk.mention(scope, "calls", walk.path(own)[0], walk.line(node))
    walk.push([node.child_by_field_name("body")], scope)


def _initializer(walk: Walk, node: Node, scope: int) -> None:
    walk.push([node.child_by_field_name("value")], scope)


def _parameter(walk: Walk, node: Node, scope: int) -> None:
    walk.push([node.child_by_field_name("type")], scope)


def _arm(walk: Walk, node: Node, scope: int) -> None:
    pattern = node.child_by_field_name("pattern")
    stack = [pattern] if pattern is not None else []
    while stack:
        item = stack.pop()
        if item.type in ("tuple_struct_pattern", "struct_pattern"):
            path, _ = walk.path(item.child_by_field_name("type"))
            walk.mention(scope, "uses", path, walk.line(item), weak=True)
            stack.extend(item.named_children[1:])
        elif item.type in ("scoped_identifier",):
            walk.mention(scope, "uses", walk.path(item)[0], walk.line(item), weak=True)
        elif item.type in _BOUND:
            if not walk.text(item)[:1].isupper():
                walk.bind(scope, walk.text(item))
        else:
            stack.extend(item.named_children)
    walk.push([node.child_by_field_name("value")], scope)


GRAMMAR = Grammar(
    handlers={
        "function_item": _function,
        "function_signature_item": _function,
        **dict.fromkeys(_KINDS, _item),
        "impl_item": _implementation,
        "use_declaration": _use,
        "field_declaration": _field,
        "let_declaration": _let,
        "for_expression": _loop,
        "closure_expression": _closure,
        "parameter": _parameter,
        "match_arm": _arm,
        "call_expression": call,
        "macro_invocation": _macro,
        "struct_expression": _structure,
        "field_initializer": _initializer,
        "identifier": name,
        "scoped_identifier": name,
        "field_expression": name,
        "type_identifier": type_name,
        "scoped_type_identifier": type_name,
        "generic_type": type_name,
        "type_parameters": skip,
        "attribute_item": skip,
        "inner_attribute_item": skip,
        "line_comment": skip,
        "block_comment": skip,
        "lifetime": skip,
        "self_parameter": skip,
        "enum_variant": lambda walk, node, scope: walk.push([node.child_by_field_name("body")], scope),
    },
    names=frozenset(
        {
            "identifier",
            "self",
            "super",
            "crate",
            "type_identifier",
            "generic_type",
            "scoped_type_identifier",
            "metavariable",
        }
    ),
    members={"field_expression": ("value", "field"), "scoped_identifier": ("path", "name")},
    calls={"call_expression": "function"},
    through=frozenset({"try_expression", "await_expression", "parenthesized_expression", "generic_function"}),
    comments=frozenset({"line_comment", "block_comment"}),
)
