"""JSON Schema of an answer: how it is asked for, and whether an answer matches it.

Used by `ask --output-schema`, which checks the schema itself, and by the turn, which checks the answer. The library
that validates is imported when a schema is given.
"""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.sanitize import plain_text

MOST_CHARS = 400
"""Characters of a problem that are told."""
_FENCED = re.compile(r"```[A-Za-z]*\s*\n(.*?)\n\s*```", re.DOTALL)


class OutputSchema:
    """A schema that answers are checked against. References to other addresses are not followed.

    Raises:
        RagforgeError: It is no valid JSON Schema.
    """

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        jsonschema: Any = importlib.import_module("jsonschema")
        registry = importlib.import_module("referencing").Registry()
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise RagforgeError(
                f"That is no valid JSON Schema: {_short(error.message)}.", kind="output_schema"
            ) from None
        self._schema = schema
        # Without a registry of its own the library fetches what a reference names.
        self._validator = kind(schema, registry=registry)

    @property
    def request(self) -> str:
        """Text that asks for such an answer; tools may be used before it."""
        return (
            "[Your last message of this turn, the one without tool calls, must be one JSON document and nothing else: "
            f"no fence, no words around it. It must match this JSON Schema:\n{json.dumps(self._schema)}]"
        )

    def repair(self, problem: str) -> str:
        """Return the text that asks for a corrected answer, with the schema, which a long turn may have left out."""
        return f"[{problem} Answer again now, without tool calls.]\n{self.request}"

    def checked(self, answer: str) -> tuple[str, str]:
        """Return the JSON document in an answer, and what is wrong with it; the latter is empty if it matches."""
        text = answer.strip()
        if (fenced := _FENCED.fullmatch(text)) is not None:
            text = fenced[1].strip()
        try:
            value = json.loads(text)
        except ValueError as error:
            return text, f"The answer is not JSON: {_short(str(error))}."
        try:
            problem = next(iter(self._validator.iter_errors(value)), None)
        except Exception as error:
            # An unresolvable reference, or a schema without an end.
            return text, f"The answer cannot be checked with this schema: {_short(str(error))}."
        if problem is None:
            return text, ""
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.absolute_path)
        return text, f"The answer does not match the schema at ${place}: {_short(problem.message)}."


def _short(text: str) -> str:
    line = plain_text(" ".join(text.split())).rstrip(".")
    return line if len(line) <= MOST_CHARS else line[: MOST_CHARS - 1] + "…"
