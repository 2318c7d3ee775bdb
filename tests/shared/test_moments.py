"""Points in time as users write them, in a zone with summer time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.moments import age_text, last_working_day, parse_moment

PARIS = ZoneInfo("Europe/Paris")
MONDAY = datetime(2026, 11, 23, 0, 30, tzinfo=PARIS)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-20", "2026-11-20T00:00:00+01:00"),
        ("2026-07-01", "2026-07-01T00:00:00+02:00"),
        ("2026-11-20T09:15", "2026-11-20T09:15:00+01:00"),
        ("2026-11-20 09:15", "2026-11-20T09:15:00+01:00"),
        ("2026-11-20T09:15Z", "2026-11-20T09:15:00+00:00"),
        ("today", "2026-11-23T00:00:00+01:00"),
        (" Yesterday ", "2026-11-22T00:00:00+01:00"),
        ("monday", "2026-11-23T00:00:00+01:00"),
        ("last monday", "2026-11-16T00:00:00+01:00"),
        ("fri", "2026-11-20T00:00:00+01:00"),
        ("Tuesday", "2026-11-17T00:00:00+01:00"),
        ("3d", "2026-11-20T00:00:00+01:00"),
        ("2 weeks ago", "2026-11-09T00:00:00+01:00"),
        ("30d", "2026-10-24T00:00:00+02:00"),
        ("12h", "2026-11-22T12:30:00+01:00"),
        ("30m", "2026-11-23T00:00:00+01:00"),
        ("now", "2026-11-23T00:30:00+01:00"),
    ],
)
def test_times(text: str, wanted: str) -> None:
    # The zone's day counts: in UTC it is still Sunday.
    found = parse_moment(text, MONDAY.astimezone(UTC), zone=PARIS)
    assert found == datetime.fromisoformat(wanted)
    assert found.tzinfo is not None


def test_the_day_that_ends_a_range_belongs_to_it() -> None:
    end = parse_moment("2026-11-20", MONDAY, zone=PARIS, end=True)
    assert end == datetime(2026, 11, 21, tzinfo=PARIS)
    assert parse_moment("2026-11-20T10:00", MONDAY, zone=PARIS, end=True) == datetime(2026, 11, 20, 10, tzinfo=PARIS)


@pytest.mark.parametrize("text", ["", "soon", "mo", "99999d", "2026-13-01", "d", "-3d", "last", "last nothing"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(RagforgeError, match="is not a time"):
        parse_moment(text, MONDAY, zone=PARIS)


@pytest.mark.parametrize(
    ("day", "wanted"), [(23, 20), (24, 23), (27, 26), (28, 27), (29, 27)], ids=["Mon", "Tue", "Fri", "Sat", "Sun"]
)
def test_the_last_working_day(day: int, wanted: int) -> None:
    now = datetime(2026, 11, day, 9, tzinfo=PARIS)
    assert last_working_day(now, zone=PARIS) == datetime(2026, 11, wanted, tzinfo=PARIS)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "now"),
        (59, "now"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (86_399, "23 h"),
        (86_400, "1 d"),
        (34 * 86_400, "34 d"),
        (35 * 86_400, "19 Oct"),
        (400 * 86_400, "Oct 2025"),
    ],
)
def test_ages(seconds: int, text: str) -> None:
    assert age_text(MONDAY - timedelta(seconds=seconds), MONDAY) == text
