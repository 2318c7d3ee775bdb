"""Requests about the code of the workspace: scopes, their text and references, and the turns about them."""

from __future__ import annotations

from ragforge_tui.shared.code_records import Scope, ScopeTalk
from ragforge_tui.shared.code_views import ScopeView, TouchedScope
from ragforge_tui.shared.wire import Request


class SearchCode(Request[list[Scope]]):
    """Scopes by name and meaning, best first, without their texts; for an empty query, those of the file `path`.

    `path` limits the search to a folder or a file. Fails with kind ``code_off`` if code is not indexed.
    """

    query: str
    path: str = ""
    kind: str = ""
    limit: int = 50


class FindScopes(Request[list[Scope]]):
    """Scopes of a name, a qualified name, ``file:name`` or ``file:line``, without their texts."""

    name: str


class FetchScope(Request[ScopeView]):
    """All about a scope. Fails with kind ``not_found`` if it does not exist."""

    uuid: str


class ListTouchedCode(Request[list[TouchedScope]]):
    """Scopes that turns of a conversation touched or named, without their texts, newest turn first."""

    conversation_id: str
    limit: int = 200


class ListScopeTalks(Request[list[ScopeTalk]]):
    """Turns about a scope, newest first; private and deleted conversations are left out."""

    uuid: str
    limit: int = 50


class IndexCode(Request[str]):
    """Wait until the code of the workspace is indexed; returns what the user should know about the index."""
