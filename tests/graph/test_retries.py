"""Which failed statements are tried again."""

from __future__ import annotations

from typing import Any

import pytest
from neo4j.exceptions import Neo4jError

from ragforge_tui.graph.errors import CONSTRAINT_ATTEMPTS, Retries


def failure(code: str) -> Neo4jError:
    hydrate: Any = getattr(Neo4jError, "_hydrate_neo4j", None) or Neo4jError.hydrate
    error: Neo4jError = hydrate(code=code, message="said the server")
    return error


@pytest.mark.parametrize("code", ["Statement.EntityNotFound", "Schema.ConstraintValidationFailed"])
async def test_a_conflict_with_another_writer_is_tried_again_but_not_for_ever(code: str) -> None:
    retries = Retries()
    error = failure(f"Neo.ClientError.{code}")
    assert [retries.should_retry(error, restarts=True) for _ in range(CONSTRAINT_ATTEMPTS)] == [
        *[True] * (CONSTRAINT_ATTEMPTS - 1),
        False,
    ]


async def test_a_wrong_statement_is_not_tried_again() -> None:
    assert not Retries().should_retry(failure("Neo.ClientError.Statement.SyntaxError"), restarts=True)
