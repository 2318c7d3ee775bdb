"""A question to all past conversations: quotes that answer it, a preview of each one's turn, and an answer if wanted.

Loaded when first used.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.past_records import PastChoice, Quote, Recalled
from ragforge_tui.shared.records import SearchHit
from ragforge_tui.shared.requests.past import RecallPast
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.memory.topics_screen import Ask
from ragforge_tui.tui.sessions.search_screen import HitList
from ragforge_tui.tui.sessions.session_service import SessionService
from ragforge_tui.tui.sessions.turn_pane import TurnPane
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import BACK, ListScreen

MOST_QUOTES = 20


class RecallScreen(ListScreen[Quote | None]):
    """Returns the picked quote, None if none was picked.

    Args:
        question: Asked at once unless it is empty.
    """

    CSS = """
    RecallScreen > Vertical { width: 100%; max-width: 140; height: 100%; }
    RecallScreen Input { margin-bottom: 1; }
    RecallScreen #recall-answer { height: auto; max-height: 6; margin-bottom: 1; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+w", "scope", "this folder or all", show=False, priority=True),
        Binding("alt+m", "answer", "let the model do it", show=False, priority=True),
    ]

    def __init__(self, ask: Ask, service: SessionService, question: str = "") -> None:
        super().__init__()
        self._ask = ask
        self._service = service
        self._everywhere = service.folder is None
        self._asked = ""
        self.recalled = Recalled()
        self.cursor_list = self._hits = HitList(service)
        self._input = Input(question, placeholder="what did we decide about …?", compact=True)
        self._title = Static("Recall", classes="title", markup=False)
        self._answer = Static(id="recall-answer", markup=False)
        self._preview = TurnPane(service)
        self._keys = KeyBar(self, lines=2)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield self._input
            yield self._answer
            yield self._hits
            yield self._preview
            yield self._keys

    def on_mount(self) -> None:
        """Ask at once if there is a question already."""
        self._input.focus()
        self._show_title()
        self._preview.show(None)
        self._keys.show_keys([KeyHint("ask", "enter", "ask the past"), self._folders(), BACK])
        if self._input.value.strip():
            self._search()

    def _show_title(self) -> None:
        where = "all folders" if self._everywhere else "this folder"
        self._title.update(f"Recall · {where}")

    def _folders(self) -> KeyHint:
        return KeyHint("scope", "alt+w", "this folder" if self._everywhere else "all folders")

    @property
    def chosen(self) -> Quote | None:
        """The quote at the cursor."""
        hit = self._hits.chosen
        return None if hit is None else self.recalled.quotes[self._hits.hits.index(hit)]

    # -- asking

    def _search(self, *, answer: bool = False, everywhere: bool | None = None) -> None:
        everywhere = self._everywhere if everywhere is None else everywhere
        asked = self._input.value.strip()
        if asked:
            self._keys.show_note("asking the model …" if answer else "searching …")
            self.switch(lambda: self._recall(answer=answer), group="recall", _asked=asked, _everywhere=everywhere)
        else:
            self._everywhere = everywhere
            self._show_title()

    async def _recall(self, *, answer: bool) -> None:
        choice = PastChoice(
            workspace=None if self._everywhere else self._service.folder, status="any", current=self._service.current
        )
        request = RecallPast(question=self._asked, choice=choice, limit=MOST_QUOTES, answer=answer)
        self.recalled = found = await self._ask(request)
        self._show_title()
        self._hits.show([as_hit(quote) for quote in found.quotes])
        self._answer.display = bool(found.answer or found.problem)
        self._answer.update(Content(plain_text(found.answer)) if found.answer else Content.styled(found.problem, "dim"))
        self.cursor_moved()
        if not found.quotes:
            more = [] if self._everywhere else [self._folders()]
            self._keys.show_keys([*more, BACK], lead="nothing here answers that")
            return
        count = counted(len(found.quotes), "quote")
        hints = [KeyHint("ask", "enter", "open at that turn"), KeyHint("answer", "alt+m", "let the model answer")]
        self._keys.show_keys([*hints, self._folders(), BACK], lead=count)

    def cursor_moved(self) -> None:
        """Show the turn of the quote at the cursor."""
        self._preview.show(self._hits.chosen)

    # -- keys

    def on_input_submitted(self) -> None:
        self.action_ask()

    def action_ask(self) -> None:
        """Ask a new question, else open the chosen quote."""
        if self._input.value.strip() != self._asked:
            self._search()
        elif (quote := self.chosen) is not None:
            self.dismiss(quote)

    def on_hit_list_picked(self, event: HitList.Picked) -> None:
        self.dismiss(self.recalled.quotes[self._hits.hits.index(event.hit)])

    def action_scope(self) -> None:
        """Ask this folder's conversations, or those of all folders."""
        if self._service.folder is not None:
            self._search(everywhere=not self._everywhere)

    def action_answer(self) -> None:
        """Have the model answer in two sentences from the quotes."""
        if self._input.value.strip():
            self._search(answer=True)


def as_hit(quote: Quote) -> SearchHit:
    """Return a quote as a hit for the list, with the kind of a finding and what became of it in front."""
    parts = ["" if quote.kind == "turn" else quote.kind, f"({quote.note})" if quote.note else ""]
    label = " ".join(part for part in parts if part)
    label = f"{label}: " if label else ""
    return SearchHit(
        conversation_id=quote.conversation_id,
        title=quote.title,
        turn_index=quote.turn_index,
        message_uuid="",
        role="user" if quote.role == "user" else "assistant",
        snippet=f"{label}{quote.quote}",
        highlights=[(start + len(label), end + len(label)) for start, end in quote.highlights],
        timestamp=quote.date,
        score=quote.score,
    )
