"""Data of ArcadeDB's Java build, `arcadedb-embedded` 26.10.2, is taken over.

`tests/data/jvm-graph.tar.xz` is the folder such a server left behind: a conversation of one turn, with a vector and
recall keys on the question.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from ragforge_tui.graph import Graph, GraphTarget, stop_server
from ragforge_tui.graph.embedded.files import ServerFiles
from tests.conftest import open_graph, paths_under
from tests.support.sizes import DIMENSION

ARCHIVE = Path(__file__).parents[1] / "data" / "jvm-graph.tar.xz"
VERSION = "26.10.2.post1"
IDENTITY = "59d9b43466b1494b9d99c3bfd7a09bfb"
CONVERSATION = "103ce366-9816-4cf0-b878-dfecb627fcbc"
QUESTION, ANSWER = "fb1ad77b-bef4-4986-b093-02cc15012244", "aef29ceb-fd52-4e59-a3b6-7865b8d81b9c"


async def found(graph: Graph) -> tuple[list[str], list[str]]:
    """What the indexes find: by words, and by meaning."""
    words = "CALL db.index.fulltext.queryNodes($index, 'lease') YIELD node RETURN node.uuid AS uuid"
    meaning = "CALL db.index.vector.queryNodes($index, 1, $vector) YIELD node RETURN node.uuid AS uuid"
    text_index = graph.dialect.fulltext_index("Message", ["lex_key", "conversation_id"])
    by_words = await graph.rows(words, index=text_index)
    by_meaning = await graph.rows(meaning, index=graph.dialect.vector_index("Message"), vector=[0.25] * DIMENSION)
    return [row["uuid"] for row in by_words], [row["uuid"] for row in by_meaning]


async def test_data_of_the_java_build_is_backed_up_and_keeps_identity_ids_and_indexes(home: Path) -> None:
    paths = paths_under(home)
    files = ServerFiles.of(paths)
    files.create_folders()
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(files.home, filter="data")
    graph = await open_graph(GraphTarget(embedded=True), paths)
    try:
        assert graph.identity == IDENTITY
        rows = await graph.rows(
            "MATCH (c:Conversation)-[:HAS_MESSAGE]->(m:Message) "
            "RETURN c.uuid AS held_by, m.uuid AS uuid ORDER BY m.position"
        )
        assert rows == [{"held_by": CONVERSATION, "uuid": uuid} for uuid in (QUESTION, ANSWER)]
        assert await found(graph) == ([QUESTION], [QUESTION])
    finally:
        await graph.close()
        stop_server(paths)
    (backup,) = files.backups.iterdir()
    assert backup.name.startswith(f"{VERSION}-")
    assert (backup / "databases" / "ragforge" / "schema.json").is_file()
