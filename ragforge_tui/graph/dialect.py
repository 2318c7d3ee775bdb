"""Differences between Neo4j and the embedded ArcadeDB.

Names of indexes in queries, creation of vector and full-text indexes, and the cosine. All other Cypher is the same on
both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

Run = Callable[[str], Awaitable[Any]]
"""Runs one statement in a transaction of its own."""

# Language codes the full-text analyzers of both backends know: (Neo4j's name, Lucene's class).
ANALYZERS = {
    "": ("standard-no-stop-words", "org.apache.lucene.analysis.standard.StandardAnalyzer"),
    "de": ("german", "org.apache.lucene.analysis.de.GermanAnalyzer"),
    "en": ("english", "org.apache.lucene.analysis.en.EnglishAnalyzer"),
    "es": ("spanish", "org.apache.lucene.analysis.es.SpanishAnalyzer"),
    "fr": ("french", "org.apache.lucene.analysis.fr.FrenchAnalyzer"),
    "it": ("italian", "org.apache.lucene.analysis.it.ItalianAnalyzer"),
    "nl": ("dutch", "org.apache.lucene.analysis.nl.DutchAnalyzer"),
    "pt": ("portuguese", "org.apache.lucene.analysis.pt.PortugueseAnalyzer"),
    "ru": ("russian", "org.apache.lucene.analysis.ru.RussianAnalyzer"),
}


class Dialect(Protocol):
    """The operations that differ between backends.

    `vector_index` and `fulltext_index` give the name to pass to ``db.index.vector.queryNodes`` and
    ``db.index.fulltext.queryNodes``. A vector index's score is (1 + cosine) / 2 on both backends.
    """

    name: str

    def vector_index(self, label: str, prop: str = "embedding") -> str: ...

    def fulltext_index(self, label: str, props: Sequence[str]) -> str: ...

    def cosine(self, a: str, b: str) -> str:
        """Return a Cypher expression for the cosine (-1 to 1) of two vector expressions."""
        ...

    async def declare(self, label: str, prop: str, kind: str = "STRING") -> None:
        """Declare a property's type (STRING, LONG, DATETIME) where a backend indexes by declared types."""
        ...

    async def create_relationship_type(self, name: str) -> None: ...

    async def create_unique(self, label: str, props: Sequence[str]) -> None: ...

    async def create_range_index(self, label: str, props: Sequence[str]) -> None: ...

    async def await_indexes(self) -> None: ...

    async def create_vector_index(self, label: str, prop: str, dimension: int) -> None: ...

    async def create_fulltext_index(self, label: str, props: Sequence[str], language: str = "en") -> None: ...

    async def drop_index(self, name: str) -> None:
        """Drop an index by the name `vector_index` or `fulltext_index` gave; nothing when there is none."""
        ...


class Neo4jDialect:
    """Neo4j 5.23 and newer."""

    name = "neo4j"

    def __init__(self, run: Run) -> None:
        self._run = run

    def vector_index(self, label: str, prop: str = "embedding") -> str:
        return f"{label}_{prop}_vector".lower()

    def fulltext_index(self, label: str, props: Sequence[str]) -> str:
        return f"{label}_{'_'.join(props)}_text".lower()

    def cosine(self, a: str, b: str) -> str:
        return f"(2 * vector.similarity.cosine({a}, {b}) - 1)"

    async def declare(self, label: str, prop: str, kind: str = "STRING") -> None:
        """Do nothing: values carry their types here."""

    async def create_relationship_type(self, name: str) -> None:
        """Do nothing: a type exists with its first relationship."""

    async def create_unique(self, label: str, props: Sequence[str]) -> None:
        on = ", ".join(f"n.{prop}" for prop in props)
        name = f"{label}_{'_'.join(props)}_unique".lower()
        await self._run(f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:{label}) REQUIRE ({on}) IS UNIQUE")

    async def create_range_index(self, label: str, props: Sequence[str]) -> None:
        on = ", ".join(f"n.{prop}" for prop in props)
        name = f"{label}_{'_'.join(props)}_range".lower()
        await self._run(f"CREATE INDEX {name} IF NOT EXISTS FOR (n:{label}) ON ({on})")

    async def await_indexes(self) -> None:
        await self._run("CALL db.awaitIndexes(120)")

    async def create_vector_index(self, label: str, prop: str, dimension: int) -> None:
        await self._run(
            f"CREATE VECTOR INDEX {self.vector_index(label, prop)} IF NOT EXISTS FOR (n:{label}) ON (n.{prop}) "
            f"OPTIONS {{indexConfig: {{`vector.dimensions`: {dimension}, `vector.similarity_function`: 'cosine'}}}}"
        )

    async def create_fulltext_index(self, label: str, props: Sequence[str], language: str = "en") -> None:
        on = ", ".join(f"n.{prop}" for prop in props)
        analyzer = ANALYZERS.get(language, ANALYZERS[""])[0]
        await self._run(
            f"CREATE FULLTEXT INDEX {self.fulltext_index(label, props)} IF NOT EXISTS FOR (n:{label}) ON EACH [{on}] "
            f"OPTIONS {{indexConfig: {{`fulltext.analyzer`: '{analyzer}'}}}}"
        )

    async def drop_index(self, name: str) -> None:
        await self._run(f"DROP INDEX {name} IF EXISTS")


class ArcadeDialect:
    """The embedded ArcadeDB. Its special indexes are made in SQL over HTTP; Cypher cannot."""

    name = "arcadedb"

    def __init__(self, run_sql: Run) -> None:
        self._run = run_sql

    def vector_index(self, label: str, prop: str = "embedding") -> str:
        return f"{label}[{prop}]"

    def fulltext_index(self, label: str, props: Sequence[str]) -> str:
        return f"{label}[{','.join(props)}]"

    def cosine(self, a: str, b: str) -> str:
        return f"vector.similarity.cosine({a}, {b})"

    async def declare(self, label: str, prop: str, kind: str = "STRING") -> None:
        # Without a declared type a number is indexed as text, and 10 comes before 9.
        await self._run(f"CREATE VERTEX TYPE {label} IF NOT EXISTS")
        sql_kind = "DATETIME_MICROS" if kind == "DATETIME" else kind
        await self._run(f"CREATE PROPERTY {label}.{prop} IF NOT EXISTS {sql_kind}")

    async def create_relationship_type(self, name: str) -> None:
        # Quoted: a relationship's name may be a word of SQL.
        await self._run(f"CREATE EDGE TYPE `{name}` IF NOT EXISTS")

    async def create_unique(self, label: str, props: Sequence[str]) -> None:
        await self._run(f"CREATE INDEX IF NOT EXISTS ON {label} ({', '.join(props)}) UNIQUE")

    async def create_range_index(self, label: str, props: Sequence[str]) -> None:
        await self._run(f"CREATE INDEX IF NOT EXISTS ON {label} ({', '.join(props)}) NOTUNIQUE")

    async def await_indexes(self) -> None:
        """Do nothing: an index is filled by the statement that creates it."""

    async def create_vector_index(self, label: str, prop: str, dimension: int) -> None:
        await self._run(f"CREATE VERTEX TYPE {label} IF NOT EXISTS")
        await self._run(f"CREATE PROPERTY {label}.{prop} IF NOT EXISTS ARRAY_OF_FLOATS")
        await self._run(
            f"CREATE INDEX IF NOT EXISTS ON {label} ({prop}) LSM_VECTOR "
            f'METADATA {{"dimensions": {dimension}, "similarity": "COSINE"}}'
        )

    async def create_fulltext_index(self, label: str, props: Sequence[str], language: str = "en") -> None:
        await self._run(f"CREATE VERTEX TYPE {label} IF NOT EXISTS")
        for prop in props:
            await self._run(f"CREATE PROPERTY {label}.{prop} IF NOT EXISTS STRING")
        analyzer = ANALYZERS.get(language, ANALYZERS[""])[1]
        await self._run(
            f"CREATE INDEX IF NOT EXISTS ON {label} ({', '.join(props)}) FULL_TEXT METADATA "
            f'{{"analyzer": "{analyzer}"}}'
        )

    async def drop_index(self, name: str) -> None:
        await self._run(f"DROP INDEX `{name}` IF EXISTS")
