"""Tool for questions to the user, who picks a choice or types an answer.

The agent loop gives the running call a function that asks. Without a screen, and in background work, there is none:
the call is answered at once, in words.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.events import AskedChoice
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools.base import Tool, ToolArguments, ToolOutcome

MOST_CHOICES = 4
NO_ANSWER = (
    "No user can answer now. Choose what is easiest to change later and say so in your answer, or end your turn with "
    "the question if you cannot go on without it."
)

ask_user: ContextVar[Callable[[str, list[AskedChoice], str], Awaitable[str | None]] | None] = ContextVar(
    "ask_user", default=None
)
"""Function of the running call that returns the user's answer, None if no user can give one.

Its arguments are the question, the choices, and the text that an answer of the user's own starts with.
"""


class AskUserArguments(ToolArguments):
    question: Annotated[str, Meta(description="One question, complete in itself.")]
    choices: Annotated[
        # Parsed leniently: plain strings are a common slip.
        list[Any],
        Meta(
            description=f"Up to {MOST_CHOICES} answers, the one you recommend first; the user can also type another.",
            extra_json_schema={
                "items": {
                    "type": "object",
                    "properties": {
                        "label": {"type": "string", "description": "A few words."},
                        "description": {"type": "string", "description": "What it means or costs."},
                    },
                    "required": ["label"],
                }
            },
        ),
    ] = msgspec.field(default_factory=list)


class AskUser(Tool):
    """Tool that asks the user and waits for the answer."""

    info = ToolInfo(
        name="ask_user",
        label="Question",
        help="ask you a question with choices",
        access="control",
        main_argument="question",
        result="prose",
        verb="asked the user {}",
        longest_argument=120,
    )
    description = (
        "Ask the user when only they can decide between ways to go on: what they want, not what you can find out. "
        "They pick a choice or type an answer; the call returns it. One question per call."
    )
    arguments = AskUserArguments

    async def run(self, arguments: AskUserArguments) -> ToolOutcome:
        question = plain_text(arguments.question).strip()
        if not question:
            raise ToolError("The question is empty.", todo="Write what you want to know.")
        choices = [_choice(given) for given in arguments.choices]
        if len(choices) > MOST_CHOICES:
            raise ToolError(f"There are {len(choices)} choices.", todo=f"Offer at most {MOST_CHOICES}.")
        ask = ask_user.get()
        answer = await ask(question, choices, "") if ask is not None else None
        if answer is None:
            return ToolOutcome(text=NO_ANSWER, success=False, error="no user can answer")
        return ToolOutcome(text=f"The user answered: {answer}", data={"answer": answer})


def _choice(given: Any) -> AskedChoice:
    try:
        choice = AskedChoice(label=given) if isinstance(given, str) else msgspec.convert(given, AskedChoice)
    except msgspec.ValidationError as error:
        raise ToolError(
            f"An entry of choices is invalid: {error}.", todo="Each entry is an object with label and description."
        ) from error
    if not choice.label.strip():
        raise ToolError("A choice is empty.", todo="Give each a label of a few words.")
    return choice
