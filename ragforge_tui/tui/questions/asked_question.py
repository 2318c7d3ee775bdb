"""Questions that the agent asks with `ask_user`, in the panel of all questions.

The choices have digits, since an answer typed into the prompt may start with any letter.
"""

from __future__ import annotations

from collections.abc import Callable

from ragforge_tui.shared.events import QuestionAsked
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.questions.question_panel import Question
from ragforge_tui.tui.widgets.choice_list import Choice

TYPED = "typed"
PLACEHOLDER = "Your answer. Enter sends, Escape goes back"
_LONG_QUESTION = 300
"""Characters from which a question is shown as scrollable text below a short title."""


def asked_question(event: QuestionAsked, answer: Callable[[str], None], stop: Callable[[], None]) -> Question:
    """Return a question of the agent.

    Args:
        answer: Called with the answer's text.
        stop: Called when the user stops the turn instead.
    """
    labels = [one_line(plain_text(choice.label)) for choice in event.choices]
    rows = [
        Choice(str(at), label, detail=one_line(plain_text(choice.description)), mark=str(at + 1))
        for at, (label, choice) in enumerate(zip(labels, event.choices, strict=True))
    ]
    own = "edit the text" if event.draft else "another answer: type it" if labels else "type an answer"
    rows.append(Choice("because", own, mark=str(len(rows) + 1)))
    rows.append(Choice("stop", "stop; the answer so far is kept"))

    def chosen(key: str, typed: str) -> None:
        if key == "stop":
            stop()
        elif key == TYPED:
            answer(typed)
        else:
            answer(event.choices[int(key)].label)

    text = plain_text(event.question)
    long = len(text) > _LONG_QUESTION or "\n" in text
    title, detail = ("The agent asks:", text) if long else (text, "")
    return Question(
        event.approval_id,
        "text",
        title,
        detail,
        rows,
        chosen,
        feedback=TYPED,
        placeholder=PLACEHOLDER,
        draft=one_line(plain_text(event.draft)),
    )
