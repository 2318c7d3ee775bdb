"""Scopes and names of Python."""

from __future__ import annotations

import ast
import inspect
import re

from tree_sitter import Node

from ragforge_tui.code.parsed import CLASS, SELF, UNKNOWN, Import
from ragforge_tui.code.walk import Grammar, Walk, call, first_child, name, skip
from ragforge_tui.shared.code_records import ScopeKind

_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")
_TYPE_NAME = re.compile(r"_?[A-Z]\w*[a-z]\w*")
_NAMES = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_LITERAL = re.compile(r"\bLiteral\[[^\]]*\]")
# Types whose value is one of the type in brackets.
_WRAPPERS = re.compile(r"^(?:typing\.)?(?:Optional|Annotated|Final|ClassVar|Required|NotRequired|Awaitable)\[(.*)\]$")
_TYPE_MAKERS = frozenset({"NewType", "namedtuple", "NamedTuple", "TypedDict"})
# Expressions with the value of one of their operands.
_CHOICES = frozenset({"await", "parenthesized_expression", "conditional_expression", "boolean_operator"})
_TUPLES = frozenset({"pattern_list", "tuple_pattern", "list_pattern", "tuple", "list", "list_splat_pattern"})


def _function(walk: Walk, node: Node, scope: int) -> None:
    _define_function(walk, node, scope, node, [])


def _class(walk: Walk, node: Node, scope: int) -> None:
    _define_class(walk, node, scope, node)


def _decorated(walk: Walk, node: Node, scope: int) -> None:
    decorators = [child for child in node.named_children if child.type == "decorator"]
    definition = node.child_by_field_name("definition")
    if definition is None:
        walk.push_children(node, scope)
        return
    if definition.type == "class_definition":
        inner = _define_class(walk, definition, scope, node)
    else:
        inner = _define_function(walk, definition, scope, node, [walk.text(item)[1:].strip() for item in decorators])
    walk.push(decorators, inner)


def _define_function(walk: Walk, node: Node, scope: int, outer: Node, decorators: list[str]) -> int:
    function_name, body = walk.text(node.child_by_field_name("name")), node.child_by_field_name("body")
    in_class = walk.scopes[scope].kind == "class"
    kind: ScopeKind = "method" if in_class else "function"
    inner = walk.define(node, function_name, kind, scope, outer=outer, body=body, doc=_docstring(walk, body))
    returns, parameters = node.child_by_field_name("return_type"), node.child_by_field_name("parameters")
    made = walk.scopes[inner]
    made.returns = _value_of_type(walk.text(returns))
    if in_class and any(item.rpartition(".")[2] in ("property", "cached_property") for item in decorators):
        walk.bind(scope, function_name, made.returns or UNKNOWN)
    receiver = SELF if in_class and "staticmethod" not in decorators else ""
    if "classmethod" in decorators or function_name in ("__new__", "__init_subclass__", "__class_getitem__"):
        receiver = CLASS if receiver else ""
    for parameter in parameters.named_children if parameters is not None else []:
        _bind_parameter(walk, parameter, inner, receiver)
        receiver = ""
    walk.push([parameters, returns, body], inner)
    return inner


def _bind_parameter(walk: Walk, node: Node, scope: int, receiver: str) -> None:
    annotation = node.child_by_field_name("type")
    target = node.child_by_field_name("name") or (first_child(node) if node.type != "identifier" else node)
    starred = target is not None and target.type in ("list_splat_pattern", "dictionary_splat_pattern")
    if target is not None and starred:
        target = first_child(target)
    if target is not None and target.type == "identifier":
        value = receiver or (_value_of_type(walk.text(annotation)) if not starred else "")
        walk.bind(scope, walk.text(target), value or UNKNOWN)


def _define_class(walk: Walk, node: Node, scope: int, outer: Node) -> int:
    body, bases = node.child_by_field_name("body"), node.child_by_field_name("superclasses")
    class_name = walk.text(node.child_by_field_name("name"))
    inner = walk.define(node, class_name, "class", scope, outer=outer, body=body, doc=_docstring(walk, body))
    others: list[Node] = []
    for base in bases.named_children if bases is not None else []:
        written = base.child_by_field_name("value") if base.type == "subscript" else base
        if base.type in ("keyword_argument", "comment", "list_splat"):
            others.append(base)
            continue
        path, rest = walk.path(written)
        if path != UNKNOWN:
            walk.scopes[inner].bases.append(path)
            walk.mention(inner, "inherits", path, walk.line(base))
        others += [rest] if rest is not None else []
        if base.type == "subscript":
            others += base.named_children[1:]
    walk.push([*others, body], inner)
    return inner


def _docstring(walk: Walk, body: Node | None) -> str:
    first = first_child(body)
    while first is not None and first.type == "comment":
        first = first.next_named_sibling
    if first is not None and first.type == "expression_statement":
        first = first_child(first)
    if first is None or first.type not in ("string", "concatenated_string"):
        return ""
    try:
        value = ast.literal_eval(walk.text(first))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    return inspect.cleandoc(value) if isinstance(value, str) else ""


def _value_of_type(annotation: str) -> str:
    """Return the path of an instance of an annotated type, empty if it is none of one class."""
    text = annotation.strip().strip("\"'").strip()
    while (wrapped := _WRAPPERS.match(text)) is not None:
        text = wrapped[1].split(",")[0].strip().strip("\"'")
    choices = [part.strip() for part in text.split("|")] if "[" not in text else [text]
    choices = [part for part in choices if part and part != "None"]
    if len(choices) != 1:
        return ""
    match = _NAMES.match(choices[0])
    return match[0] + "()" if match is not None and match[0] not in ("None", "Any") else ""


def _type(walk: Walk, node: Node, scope: int) -> None:
    text = _LITERAL.sub("", walk.text(node))
    for match in _NAMES.finditer(text):
        walk.mention(scope, "uses", match[0], walk.line(node) + text.count("\n", 0, match.start()))


def _assignment(walk: Walk, node: Node, scope: int) -> None:
    left, right, annotation = (node.child_by_field_name(field) for field in ("left", "right", "type"))
    where = scope
    if left is not None and left.type == "identifier":
        target = walk.text(left)
        value = _value_of_type(walk.text(annotation)) or value_path(walk, right)
        parent_kind = walk.scopes[scope].kind
        if parent_kind == "module":
            statement = node.parent if node.parent is not None and node.parent.type == "expression_statement" else node
            if right is not None and _is_type_alias(walk, target, right, annotation):
                where = walk.define(node, target, "type", scope, outer=statement)
            elif _CONSTANT.fullmatch(target) and statement.parent is not None:
                where = walk.define(node, target, "constant", scope, outer=statement)
        walk.bind(scope, target, value)
        if where != scope:
            walk.scopes[where].returns = value if walk.scopes[where].kind == "constant" else ""
    else:
        rest = _bind_target(walk, left, scope, right)
        walk.push(rest, scope)
    walk.push([annotation, right], where)


def _is_type_alias(walk: Walk, target: str, right: Node, annotation: Node | None) -> bool:
    if annotation is not None:
        return walk.text(annotation).endswith("TypeAlias")
    if not _TYPE_NAME.fullmatch(target):
        return False
    if right.type == "call":
        return walk.text(right.child_by_field_name("function")).rpartition(".")[2] in _TYPE_MAKERS
    return right.type in ("subscript", "binary_operator")


def value_path(walk: Walk, node: Node | None) -> str:
    """Return the path of an expression's value, `?` for anything but names, members and calls."""
    while node is not None and node.type in _CHOICES:
        # Of `a or Store()` and `a if b else c`, the last or first operand is as good as the other.
        node = node.child_by_field_name("right") or first_child(node)
    if node is None:
        return UNKNOWN
    if node.type == "call":
        path, _ = walk.path(node.child_by_field_name("function"))
        path += "()"
    elif node.type in ("identifier", "attribute"):
        path, _ = walk.path(node)
    else:
        return UNKNOWN
    return UNKNOWN if path.startswith(UNKNOWN) or UNKNOWN in path.split(".") else path


def _bind_target(walk: Walk, node: Node | None, scope: int, value: Node | None = None) -> list[Node]:
    """Bind the variables in the target of an assignment or a loop; return the nodes that remain to be visited."""
    rest: list[Node] = []
    stack = [node] if node is not None else []
    while stack:
        target = stack.pop()
        if target.type == "identifier":
            if scope or value is None:
                walk.bind(scope, walk.text(target), value_path(walk, value))
        elif target.type in _TUPLES or target.type == "as_pattern_target":
            # The parts of a tuple are not the value of the whole.
            value = None if target.type != "as_pattern_target" else value
            stack.extend(target.named_children)
        elif target.type == "attribute":
            _bind_attribute(walk, target, scope, value)
            rest.append(target)
        else:
            rest.append(target)
    return rest


def _bind_attribute(walk: Walk, target: Node, scope: int, value: Node | None) -> None:
    holder = walk.text(target.child_by_field_name("object"))
    types = walk.scopes[scope].types
    owner = walk.enclosing_class(scope)
    if owner is None or types.get(holder) not in (SELF, CLASS):
        return
    path = value_path(walk, value)
    annotation = target.parent.child_by_field_name("type") if target.parent is not None else None
    first, dot, others = path.partition(".")
    called = first.endswith("()")
    local = types.get(first.removesuffix("()"))
    if annotation is not None and (annotated := _value_of_type(walk.text(annotation))):
        path = annotated
    elif local is not None:
        path = UNKNOWN if called or local == UNKNOWN else local + dot + others
    walk.bind(owner, walk.text(target.child_by_field_name("attribute")), path)


def _for(walk: Walk, node: Node, scope: int) -> None:
    left = node.child_by_field_name("left")
    walk.push_children(node, scope, but=[left])
    walk.push(_bind_target(walk, left, scope), scope)


def _as_pattern(walk: Walk, node: Node, scope: int) -> None:
    value, alias = first_child(node), node.child_by_field_name("alias")
    walk.push([value, *_bind_target(walk, alias, scope, value)], scope)


def _named_expression(walk: Walk, node: Node, scope: int) -> None:
    value = node.child_by_field_name("value")
    walk.bind(scope, walk.text(node.child_by_field_name("name")), value_path(walk, value))
    walk.push([value], scope)


def _lambda(walk: Walk, node: Node, scope: int) -> None:
    parameters = node.child_by_field_name("parameters")
    for parameter in parameters.named_children if parameters is not None else []:
        _bind_parameter(walk, parameter, scope, "")
    walk.push([parameters, node.child_by_field_name("body")], scope)


def _parameters(walk: Walk, node: Node, scope: int) -> None:
    for parameter in reversed(node.named_children):
        if parameter.type != "identifier":
            walk.push([parameter.child_by_field_name("type"), parameter.child_by_field_name("value")], scope)


def _keyword_argument(walk: Walk, node: Node, scope: int) -> None:
    walk.push([node.child_by_field_name("value")], scope)


def _type_alias(walk: Walk, node: Node, scope: int) -> None:
    left = walk.text(node.child_by_field_name("left"))
    match = _NAMES.match(left)
    if match is None:
        walk.push_children(node, scope)
        return
    inner = walk.define(node, match[0], "type", scope)
    walk.push([node.child_by_field_name("right")], inner)


def _import(walk: Walk, node: Node, scope: int) -> None:
    for item in node.children_by_field_name("name"):
        module = walk.text(item.child_by_field_name("name") or item)
        alias = walk.text(item.child_by_field_name("alias"))
        walk.imports.append(Import(module, "", alias or module.partition(".")[0], walk.line(item), scope))


def _import_from(walk: Walk, node: Node, scope: int) -> None:
    module = "".join(walk.text(node.child_by_field_name("module_name")).split())
    for item in node.children_by_field_name("name"):
        taken, alias = walk.text(item.child_by_field_name("name") or item), walk.text(item.child_by_field_name("alias"))
        walk.imports.append(Import(module, taken, alias or taken, walk.line(item), scope))
    if any(child.type == "wildcard_import" for child in node.named_children):
        walk.imports.append(Import(module, "*", "", walk.line(node), scope))


GRAMMAR = Grammar(
    handlers={
        "function_definition": _function,
        "class_definition": _class,
        "decorated_definition": _decorated,
        "call": call,
        "identifier": name,
        "attribute": name,
        "type": _type,
        "assignment": _assignment,
        "for_statement": _for,
        "for_in_clause": _for,
        "as_pattern": _as_pattern,
        "named_expression": _named_expression,
        "lambda": _lambda,
        "parameters": _parameters,
        "lambda_parameters": _parameters,
        "keyword_argument": _keyword_argument,
        "type_alias_statement": _type_alias,
        "import_statement": _import,
        "import_from_statement": _import_from,
        "future_import_statement": skip,
        "comment": skip,
        "string_content": skip,
        "integer": skip,
        "float": skip,
        "global_statement": skip,
        "nonlocal_statement": skip,
    },
    names=frozenset({"identifier"}),
    members={"attribute": ("object", "attribute")},
    calls={"call": "function"},
    through=frozenset({"await", "parenthesized_expression"}),
    docstring=_docstring,
)
