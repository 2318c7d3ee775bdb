"""Questions about the code of a workspace: by name, by place, by reference, and the conversations about it.

Source of the agent's code tools, of the code in a request's context, and of the screens.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import msgspec

from ragforge_tui.code import search
from ragforge_tui.code.brain import Brain
from ragforge_tui.code.current import current_code
from ragforge_tui.code.knowledge import CodeKnowledge
from ragforge_tui.code.mentions import names_in
from ragforge_tui.code.relevance import can_matter, relevant
from ragforge_tui.memory.retrieval.question import Questions, Vectors, patience
from ragforge_tui.memory.retrieval.recipes import CONTEXT
from ragforge_tui.shared.code_records import BrainHit, FoundCode, Reference, Scope, ScopeKind, UnresolvedName
from ragforge_tui.shared.code_views import ScopeCode, ScopeLink, ScopeView, TouchedScope
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import NOT_SEARCHED

log = logging.getLogger(__name__)

MOST_LINKS = 100
"""References of one scope that are listed."""
MOST_TALKS = 20
FILTERED = 5
"""Times the wanted number that is searched for where a path leaves some out."""
_PLACED = re.compile(r"^(?P<file>[^:./]*[./][^:]*):(?::)?(?P<name>[^:].*)$")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SEPARATORS = re.compile(r"::|->|#")


class CodeLookup:
    """Questions about the indexed code of one workspace.

    Args:
        index: Returns the index, which is made after this.
    """

    def __init__(self, questions: Questions, *, index: Callable[[], CodeKnowledge]) -> None:
        self._questions = questions
        self._store = questions.claimed_store
        self._begun: tuple[str, asyncio.Task[FoundCode]] | None = None
        self._brain = Brain(questions)
        self._index = index
        self._folder = Path(questions.workspace)
        self._workspace = questions.workspace

    @property
    def ready(self) -> bool:
        """Return whether the workspace has an index with something in it."""
        return self._index().ready

    @property
    def coming(self) -> bool:
        """Return whether the first index of the workspace is being made."""
        return self._index().coming

    async def pending(self) -> str:
        """See `CodeKnowledge.pending`."""
        return await self._index().pending()

    # --- searching ---------------------------------------------------------------------------------------------------

    async def search(
        self, query: str, *, also: Sequence[str] = (), path: str = "", kind: str = "", limit: int = 10
    ) -> list[Scope]:
        """Return scopes by name and meaning, best first.

        Args:
            also: Other wordings of the query.
        """
        below = path.strip().strip("/").removeprefix("./")
        kinds = [msgspec.convert(kind, ScopeKind)] if kind else []
        hits = await search.search(
            await self._store(),
            self._workspace,
            query,
            self._questions.vectors,
            also=also,
            kinds=kinds,
            limit=limit * FILTERED if below else limit,
        )
        scopes = [hit.scope for hit in hits if not below or f"{hit.scope.file}/".startswith(f"{below}/")]
        return scopes[:limit]

    async def for_context(self, message: str) -> FoundCode:
        """Return the scopes that matter for a message; a search too slow for a request is listed as missing."""
        begun, self._begun = self._begun, None
        return await (begun[1] if begun is not None and begun[0] == message else self._in_time(message))

    def begin(self, message: str) -> None:
        """Start the search for `for_context`, which is called with the same message once it is stored."""
        self._begun = message, asyncio.create_task(self._in_time(message))

    async def _in_time(self, message: str) -> FoundCode:
        if not self.ready or not await asyncio.to_thread(can_matter, message):
            return FoundCode()
        named = bool(await asyncio.to_thread(names_in, message))
        seconds = patience(message, names_code=named)
        # It matters where the message names code; of others it is only on record.
        missed = f"The files of this folder {NOT_SEARCHED}" if named else "No code was looked up"
        try:
            async with asyncio.timeout(seconds):
                return await self._for_context(message, seconds)
        except TimeoutError:
            missing = f"{missed}: that took longer than {seconds * 1000:.0f} ms."
        except RagforgeError as error:
            missing = f"{missed}: {str(error).rstrip('.')}."
        except Exception:
            # A turn without code is better than a failed turn.
            log.exception("no code in the context")
            missing = f"{missed}: the search failed."
        log.info(missing)
        return FoundCode(missing=missing)

    async def _for_context(self, message: str, seconds: float) -> FoundCode:
        missing = ""

        async def soon(texts: Sequence[str]) -> Vectors | None:
            """Return the vectors of a message and its words, if they and those of the code are there in time."""
            nonlocal missing
            if not self._questions.model.name:
                return None
            try:
                async with asyncio.timeout(seconds * LIMITS.vector_share):
                    made, _ = await asyncio.gather(self._questions.vectors(texts), vectors.load(self._workspace))
                return made
            except TimeoutError:
                missing = "Code was searched by words only: vectors came too late."
                return None

        store = await self._store()
        vectors = store.code.search.vectors
        hits = await search.search(store, self._workspace, message, soon, limit=CONTEXT.scopes.asked)
        return FoundCode(scopes=await asyncio.to_thread(relevant, message, hits), missing=missing)

    async def brain_search(self, query: str, *, also: Sequence[str] = (), limit: int = 10) -> list[BrainHit]:
        """Return hits in code, files, turns, summaries and topics, best first."""
        return await self._brain.search(query, also=also, limit=limit)

    # --- naming ------------------------------------------------------------------------------------------------------

    async def named(self, name: str) -> list[Scope]:
        """Return the scopes of a name, a qualified name, ``file:name``, ``file:line`` or a uuid."""
        store = await self._store()
        if _UUID.fullmatch(name.strip()):
            return await store.code.get([name.strip()])
        file, wanted = "", name.strip()
        if (placed := _PLACED.match(wanted)) is not None:
            file, wanted = placed["file"].removeprefix("./"), placed["name"].strip()
        if file and (lines := re.fullmatch(r"(\d+)(?:-\d+)?", wanted)) is not None:
            line = int(lines[1])
            return (await store.code.in_lines(self._workspace, file, line, line))[:1]
        wanted = _SEPARATORS.sub(".", wanted.removesuffix("()"))
        found = await store.code.by_name(self._workspace, wanted, file)
        if not found and not file:
            found = await self.in_file(name.strip())
            return [scope for scope in found if scope.kind == "module"] or found
        exact = [scope for scope in found if scope.qualified_name == wanted]
        return exact if exact and "." in wanted else found

    async def in_file(self, path: str) -> list[Scope]:
        """Return the scopes of a file in the order of their lines."""
        store = await self._store()
        found = await store.code.in_lines(self._workspace, path.removeprefix("./"), 0, 2**31 - 1)
        return sorted(found, key=lambda scope: (scope.start_line, -scope.end_line))

    async def scope(self, uuid: str) -> Scope:
        """Return a scope.

        Raises:
            NotFoundError: There is none.
        """
        store = await self._store()
        found = await store.code.get([uuid])
        if not found:
            raise NotFoundError("This code is no longer in the graph.", todo="Search for it by name.")
        return found[0]

    # --- one scope ---------------------------------------------------------------------------------------------------

    async def code(self, scope: Scope) -> ScopeCode:
        """Return the text of a scope as it is in the file now."""
        return await asyncio.to_thread(current_code, self._folder, scope)

    async def view(self, scope: Scope) -> ScopeView:
        """Return all about a scope."""
        store = await self._store()
        code, callers, (callees, unresolved), talks, around = await asyncio.gather(
            self.code(scope),
            self.dependents(scope),
            self.dependencies(scope),
            store.code.conversations_about(scope.uuid, MOST_TALKS),
            store.code.in_lines(self._workspace, scope.file, scope.start_line, scope.end_line),
        )
        inside = [one for one in around if one.qualified_name.rpartition(".")[0] == scope.qualified_name]
        members = [_short(one) for one in inside if scope.kind != "module"]
        return ScopeView(
            scope=msgspec.structs.replace(scope, text=""),
            code=code,
            members=sorted(members, key=lambda member: member.start_line),
            callers=callers,
            callees=callees,
            unresolved=unresolved,
            talks=talks,
        )

    async def dependents(self, scope: Scope, *, depth: int = 1) -> list[ScopeLink]:
        """Return the scopes that refer to a scope, through others up to a depth."""
        store = await self._store()
        return await _walk(scope.uuid, lambda uuid: store.code.dependents(uuid, limit=MOST_LINKS), depth)

    async def dependencies(self, scope: Scope, *, depth: int = 1) -> tuple[list[ScopeLink], list[UnresolvedName]]:
        """Return the scopes that a scope refers to, through others up to a depth, and names it could not resolve."""
        store = await self._store()
        links = await _walk(scope.uuid, lambda uuid: store.code.dependencies(uuid, limit=MOST_LINKS), depth)
        return links, await store.code.unresolved(scope.uuid)

    async def touched(self, conversation_id: str, limit: int) -> list[TouchedScope]:
        """Return the scopes that turns of a conversation touched or named, newest turn first."""
        store = await self._store()
        return await store.code_links.touched(conversation_id, limit)


Neighbours = Callable[[str], Awaitable[Sequence[tuple[Reference, Scope]]]]


async def _walk(start: str, neighbours: Neighbours, depth: int) -> list[ScopeLink]:
    """Return the scopes reached by references, the nearest first, each once for each kind of reference."""
    links: list[ScopeLink] = []
    seen, level = {start}, [start]
    for distance in range(1, depth + 1):
        found = [link for links_of in await asyncio.gather(*map(neighbours, level)) for link in links_of]
        level = _next_level(found, seen)
        links += [
            ScopeLink(
                scope=_short(scope),
                kind=reference.kind,
                line=reference.line,
                confidence=reference.confidence,
                depth=distance,
            )
            for reference, scope in found
            if scope.uuid in level or distance == 1
        ]
        seen.update(level)
        if not level or len(links) >= MOST_LINKS:
            break
    return links[:MOST_LINKS]


def _next_level(found: Sequence[tuple[Reference, Scope]], seen: Collection[str]) -> list[str]:
    return list(dict.fromkeys(scope.uuid for _, scope in found if scope.uuid not in seen))


def _short(scope: Scope) -> Scope:
    return msgspec.structs.replace(scope, text="", doc="")
