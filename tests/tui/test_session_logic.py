"""Sessions as a list, without a screen: what is listed in which order, how rows, previews and hits read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragforge_tui.shared.records import Conversation, ConversationPeek, SearchHit
from ragforge_tui.tui.sessions.preview_pane import addresses, ends, preview
from ragforge_tui.tui.sessions.search_screen import HIT_LINES, hit_lines, snippet
from ragforge_tui.tui.sessions.session_list_model import (
    RowStyle,
    SessionFilter,
    SessionList,
    action_keys,
    filter_keys,
    session_row,
)
from ragforge_tui.tui.sessions.session_service import parse_query, parse_tags, with_topic
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList, _labelled
from tests.support.fake_engine import CLOCK, conversation

LOOKS = RowStyle(now=CLOCK, glyphs={"Ragnarök": "☾"})
HOSTILE = "[b]x[/y]\x1b[31m\x1b]0;owned\x07\nnext"


def session_list(*records: Conversation) -> SessionList:
    made = SessionList()
    made.replace(records)
    return made


def aged(number: int, title: str, days: float, **more: Any) -> Conversation:
    return conversation(number, title, updated_at=CLOCK - timedelta(days=days), **more)


def labels(rows: list[Choice]) -> list[str]:
    return [f"{row.lead}{row.label}" for row in rows]


class TestShelf:
    def test_newest_first_in_groups(self) -> None:
        kept = session_list(aged(1, "Old", 2), aged(2, "New", 0), aged(3, "Older", 40))
        rows = kept.rows(SessionFilter(), LOOKS)
        assert [(row.heading, row.label) for row in rows] == [
            ("Today", "New"),
            ("This week", "Old"),
            ("September 2026", "Older"),
        ]

    def test_orders(self) -> None:
        kept = session_list(
            aged(1, "banana", 0, created_at=CLOCK - timedelta(days=9)),
            aged(2, "Apple", 1, created_at=CLOCK - timedelta(days=2)),
        )
        assert [row.label for row in kept.rows(SessionFilter(order="created"), LOOKS)] == ["Apple", "banana"]
        rows = kept.rows(SessionFilter(order="title"), LOOKS)
        assert [(row.heading, row.label) for row in rows] == [("", "Apple"), ("", "banana")]

    def test_filters(self) -> None:
        kept = session_list(
            aged(1, "A", 0, tags=["work"]),
            aged(2, "B", 1, status="archived", tags=["work", "db"]),
            aged(3, "C", 2, status="deleted", deleted_at=CLOCK - timedelta(days=3)),
        )
        assert [row.label for row in kept.rows(SessionFilter(), LOOKS)] == ["A"]
        (deleted,) = kept.rows(SessionFilter(status="deleted"), LOOKS)
        assert deleted.badge == "(deleted, kept 4 days)"
        assert [row.label for row in kept.rows(SessionFilter(status="any", tag="work"), LOOKS)] == ["A", "B"]
        assert kept.tags("any") == ["work", "db"]
        assert kept.tags("active") == ["work"]

    def test_words_are_found_in_title_tags_id_and_summary(self) -> None:
        kept = session_list(
            aged(0xABCD12, "Index allocation", 0, tags=["rust"]),
            aged(2, "Café menu", 1, summary="They spoke of retries."),
            aged(3, "Retries double turns", 2),
        )
        found = {
            query: [row.label for row in kept.rows(SessionFilter(query=query), LOOKS)]
            for query in ("retries", "idx", "#ru", "#retries", "00abcd", "café menu", "cfm retries", "zzz", "INDEX")
        }
        assert found == {
            "retries": ["Retries double turns", "Café menu"],
            "idx": ["Index allocation"],
            "#ru": ["Index allocation"],
            "#retries": [],
            "00abcd": ["Index allocation"],
            "café menu": ["Café menu"],
            "cfm retries": ["Café menu"],
            "zzz": [],
            "INDEX": ["Index allocation"],
        }

    def test_letter_by_letter_finds_what_the_whole_word_finds(self) -> None:
        records = [aged(n, f"Title {n} of many", n / 10, summary="abcdef" * (n % 3)) for n in range(1, 200)]
        typed = session_list(*records)
        for text in ("00000a1", "abcdef", "many ttl", "#x", "title 17 "):
            for end in range(1, len(text) + 1):
                query = SessionFilter(query=text[:end])
                assert typed.rows(query, LOOKS) == session_list(*records).rows(query, LOOKS), query

    def test_matches_follow_changes(self) -> None:
        kept = session_list(aged(1, "Alpha", 0))
        assert not kept.rows(SessionFilter(query="beta"), LOOKS)
        assert not kept.put([aged(1, "Alpha", 0)])
        assert kept.put([aged(1, "Beta", 0), aged(2, "Beta two", 1)])
        assert [row.label for row in kept.rows(SessionFilter(query="beta"), LOOKS)] == ["Beta", "Beta two"]
        assert not kept.replace([aged(1, "Beta", 0), aged(2, "Beta two", 1)])
        assert kept.replace([aged(2, "Beta two", 1)])
        assert [row.label for row in kept.rows(SessionFilter(), LOOKS)] == ["Beta two"]
        assert kept.newest == CLOCK - timedelta(days=1)

    def test_branches_are_under_their_parent(self) -> None:
        parent, other = aged(1, "Parent", 3), aged(9, "Other", 1)
        kept = session_list(
            parent,
            other,
            aged(2, "Second", 2, branch_of=parent.uuid, branch_turn=12),
            aged(3, "First", 2, branch_of=parent.uuid, branch_turn=4),
            aged(4, "Below", 0, branch_of=conversation(3).uuid, branch_turn=6),
            aged(5, "Orphan", 5, branch_of=conversation(77).uuid, branch_turn=1),
        )
        rows = kept.rows(SessionFilter(), LOOKS)
        assert labels(rows) == [
            "☾ Parent",
            "├ from turn 4 · ☾ First",
            "│ └ from turn 6 · ☾ Below",
            "└ from turn 12 · ☾ Second",
            "☾ Other",
            "from turn 1 · ☾ Orphan",
        ]
        # A family stands where its newest member belongs.
        assert [row.heading for row in rows] == ["Today"] * 4 + ["Yesterday", "This week"]
        assert kept.branches(parent.uuid) == 2
        found = kept.rows(SessionFilter(query="first"), LOOKS)
        assert labels(found) == ["from turn 4 · ☾ First"]

    def test_rows_follow_who_looks(self) -> None:
        kept = session_list(aged(1, "A", 0, private=True), aged(2, "", 0, persona=""))
        first = kept.rows(SessionFilter(), LOOKS)
        assert (first[0].badge, first[1].lead, first[1].label) == ("(private)", "", "untitled 00000002")
        (row, _) = kept.rows(SessionFilter(), RowStyle(now=CLOCK, current=conversation(1).uuid))
        assert (row.badge, row.lead) == ("(open now, private)", "✶ ")


def test_a_row_shows_how_much_and_when() -> None:
    def detail(**more: Any) -> str:
        return session_row(conversation(1, "T", **more), CLOCK).detail

    assert detail(message_count=1) == "1 message · 14:02"
    assert detail(updated_at=datetime(2025, 1, 2, tzinfo=UTC)) == "0 messages · 2 Jan 2025"
    assert session_row(conversation(1, "T", branch_of="x", branch_turn=3), CLOCK, narrow=True).lead == "t3 · ✶ "
    assert session_row(conversation(1, "T", branch_of="x", branch_turn=0), CLOCK).lead == "from the start · ✶ "


@pytest.mark.parametrize("space", [8, 20, 40])
def test_a_title_gives_way_before_its_mark_does(space: int) -> None:
    row = Choice("k", "A title far longer than the room there is for it", lead="✶ ", badge="(open now)")
    parts = _labelled(row, row.label, space, False)
    assert sum(len(text) for text, _ in parts) == space
    assert ("(open now)" in parts[2][0]) == (space > 20)
    branch = Choice(
        "k", "A title far longer than the room there is for it", lead="└ from turn 2 · ◆ ", badge="(open now)"
    )
    assert "".join(text for text, _ in _labelled(branch, branch.label, 41, False)).startswith("└ from turn 2 · ◆ A")


def test_a_list_keeps_its_cursor_when_rows_change() -> None:
    rows = [Choice(str(n), str(n)) for n in range(5)]
    choices = ChoiceList()
    choices.show(rows)
    choices.move(3)
    choices.show(rows[1:], keep=True)
    assert choices.chosen == rows[3]
    choices.show(rows[:2], keep=True)
    assert choices.chosen == rows[1]
    choices.show(rows)
    assert choices.chosen == rows[0]


def test_tags_as_people_write_them() -> None:
    assert parse_tags("work, #rust  work,#") == ["work", "rust"]


class TestPreview:
    def test_all_of_it(self) -> None:
        shown = conversation(
            2,
            "Way two",
            summary="Discussed x; done: y.",
            tags=["db"],
            branch_of=conversation(1).uuid,
            branch_turn=3,
            model="m",
        )
        text = preview(shown, CLOCK, glyphs={}, parent=conversation(1, "Way one"), branches=1).plain
        for part in ("Way two", "Discussed x; done: y.", "#db", "turn 3 of Way one", "1 branch", "✶ Ragnarök · m"):
            assert part in text
        assert shown.uuid in addresses(shown).plain

    def test_marks_of_markdown_are_left_out(self) -> None:
        shown = conversation(1, "T", summary="The **lock** was added.")
        assert "The lock was added." in preview(shown, CLOCK, glyphs={}).plain

    def test_the_first_and_the_last_message_have_their_speakers(self) -> None:
        shown = conversation(1, "T")
        said = ends(ConversationPeek(conversation=shown, first="Why?", last="Because.", last_role="assistant"), "✶")
        assert [(one.persona, one.glyph, one.text) for one in said] == [("", "", "Why?"), ("Ragnarök", "✶", "Because.")]
        assert [one.persona for one in ends(ConversationPeek(conversation=shown, first="a", last="b"))] == ["", ""]
        assert len(ends(ConversationPeek(conversation=shown, first="a", last="a"))) == 1, "its only message"
        assert not ends(ConversationPeek(conversation=shown))

    def test_foreign_text_is_text(self) -> None:
        shown = conversation(1, HOSTILE, summary=HOSTILE, tags=[HOSTILE], persona=HOSTILE, workspace=HOSTILE)
        text = preview(shown, CLOCK, glyphs={HOSTILE: HOSTILE}).plain + addresses(shown).plain
        assert "\x1b" not in text and "owned" not in text
        assert "[b]x[/y] next" in text


class TestBars:
    def test_actions_of_a_session(self) -> None:
        def offered(chosen: Conversation | None, **more: Any) -> str:
            return " · ".join(hint.text for hint in action_keys(chosen, **{"undo": False, **more}))

        assert offered(None) == "esc back"
        active = offered(conversation(1, private=True), undo=True)
        assert "alt+a archive" in active and "alt+u undo" in active and "alt+p not private" in active
        assert "alt+a unarchive" in offered(conversation(1, status="archived"))
        deleted = offered(conversation(1, status="deleted"))
        assert "alt+d restore" in deleted and "alt+a" not in deleted and "alt+u" not in deleted

    def test_filters(self) -> None:
        narrowed = SessionFilter(status="any", tag="db", order="title")
        hints = filter_keys(narrowed, everywhere=True)
        assert [hint.text for hint in hints] == ["alt+w all folders", "alt+s any status", "alt+g #db", "alt+o by title"]
        assert all(hint.on for hint in hints), "what differs from the default is highlighted"
        assert not any(hint.on for hint in filter_keys(SessionFilter(), everywhere=False))


class TestHits:
    def hit(self, text: str, word: str, **more: Any) -> SearchHit:
        at = text.index(word)
        values: dict[str, Any] = {
            "conversation_id": conversation(1).uuid,
            "title": "T",
            "turn_index": 4,
            "message_uuid": "m",
            "role": "user",
            "snippet": text,
            "highlights": [(at, at + len(word))],
            "timestamp": CLOCK,
            "score": 1.0,
        }
        return SearchHit(**(values | more))

    def test_queries(self) -> None:
        wanted = parse_query('lock topic:"error handling" lease', "all")
        assert (wanted.words, wanted.topic, wanted.scope) == ("lock lease", "error handling", "all")
        assert parse_query("topic:retries", "folder").words == ""
        assert parse_query('topic:"half', "folder").topic == "half"
        assert parse_query("mytopic:x", "folder").words == "mytopic:x"
        assert with_topic("topic:a lock", "b c") == 'topic:"b c" lock'
        assert with_topic("topic:a lock", "") == "lock"

    def test_the_words_are_set_apart_and_in_view(self) -> None:
        found = self.hit("far " * 60 + "the lock is late", "lock")
        text = snippet(found, 80)
        assert text.plain.startswith("you …") and text.plain.index("lock") < 80
        (span,) = [span for span in text.spans if "bold" in str(span.style)]
        assert text.plain[span.start : span.end] == "lock"
        assert snippet(self.hit("the lock", "lock"), 80).plain == "you the lock"
        assert snippet(self.hit("the lock", "lock", role="assistant"), 80).plain == "answer the lock"

    def test_marks_of_markdown_are_no_part_of_a_hit(self) -> None:
        written = "## Why\nthe **lock** is *held* by `_take_it()`, 2 * 3 ** x**2 times: ```python lock(*args)"
        text = snippet(self.hit(written, "lock"), 200)
        assert text.plain == "you Why the lock is held by _take_it(), 2 * 3 ** x**2 times: lock(*args)"
        assert {text.plain[span.start : span.end] for span in text.spans if "bold" in str(span.style)} == {"lock"}

    def test_lines(self) -> None:
        found = self.hit("so\tthe lock\nis late " * 20, "lock", title="A long title " * 9)
        for width in (20, 56, 130):
            lines = hit_lines(found, CLOCK, width, selected=True, current=found.conversation_id)
            assert len(lines) == HIT_LINES
            assert all(line.cell_length <= max(width, 46) for line in lines)
            assert "turn 4 · 14:02 · open now" in lines[0].plain
        (head, body, last) = hit_lines(self.hit("lock", "lock", title=HOSTILE), CLOCK, 80, selected=False)
        assert head.plain == "  [b]x[/y] next · turn 4 · 14:02"
        assert (body.plain, last.plain) == ("    you lock", "")

    def test_foreign_text_is_text(self) -> None:
        text = snippet(self.hit(HOSTILE, "x"), 80).plain
        assert "\x1b" not in text and "\n" not in text
