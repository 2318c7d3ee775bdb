"""Points in time as users write them: ``2026-11-20``, ``yesterday``, ``monday``, ``3d``.

Read in the local time zone unless a text names another. A day, as well as days and weeks back, counts from midnight;
hours and minutes back are exact.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo

from ragforge_tui.shared.errors import RagforgeError

FORMS = "Write a date (2026-11-20), today, yesterday, a weekday (monday), or a time back (30m, 12h, 3d, 2w)."
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_BACK = re.compile(r"(\d{1,4})\s*(m|min|h|d|w|minutes?|hours?|days?|weeks?)(?:\s+ago)?")
_FEWEST_LETTERS = 3
_FRIDAY = 4


def parse_moment(text: str, now: datetime, *, zone: tzinfo | None = None, end: bool = False) -> datetime:
    """Return the point in time that a text names.

    Args:
        now: The current time, timezone-aware.
        zone: The user's time zone; None for that of the machine.
        end: The text ends a range: a day includes all of itself.

    Raises:
        RagforgeError: The text names none.
    """
    wanted = " ".join(text.strip().casefold().split())
    here = now.astimezone(zone)
    if wanted == "now":
        return now
    if (back := _BACK.fullmatch(wanted)) and back[2][0] in "mh":
        return now - timedelta(**{"minutes" if back[2][0] == "m" else "hours": int(back[1])})
    day = _day(wanted, here.date())
    if day is not None:
        return midnight(day + timedelta(days=1) if end else day, zone)
    try:
        moment = datetime.fromisoformat(text.strip())
        return _local(moment, zone) if moment.tzinfo is None else moment
    except (ValueError, OverflowError):
        raise RagforgeError(f"{text!r} is not a time.", todo=FORMS, kind="usage") from None


def midnight(day: date, zone: tzinfo | None = None) -> datetime:
    """Return the start of a day in a time zone, by default that of the machine."""
    return _local(datetime.combine(day, time.min), zone)


def last_working_day(now: datetime, *, zone: tzinfo | None = None) -> datetime:
    """Return the start of the last day before today that is neither Saturday nor Sunday."""
    day = now.astimezone(zone).date() - timedelta(days=1)
    return midnight(day - timedelta(days=max(0, day.weekday() - _FRIDAY)), zone)


def _day(wanted: str, today: date) -> date | None:
    """Return the day that a text names, None if it names none; a weekday is the last one, which may be today."""
    if wanted in ("today", "yesterday"):
        return today - timedelta(days=wanted == "yesterday")
    if back := _BACK.fullmatch(wanted):
        return today - timedelta(days=int(back[1]) * (7 if back[2][0] == "w" else 1))
    name = wanted.removeprefix("last ")
    for number, weekday in enumerate(WEEKDAYS):
        if len(name) >= _FEWEST_LETTERS and weekday.startswith(name):
            ago = (today.weekday() - number) % 7
            return today - timedelta(days=ago or (7 if name != wanted else 0))
    try:
        return date.fromisoformat(wanted)
    except ValueError:
        return None


def _local(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.replace(tzinfo=zone) if zone is not None else naive.astimezone()


def age_text(then: datetime, now: datetime) -> str:
    """Return how long ago a point in time was, such as ``5 min``, ``2 h`` or ``3 d``; the date after five weeks."""
    seconds = max(0.0, (now - then).total_seconds())
    if seconds < 60:
        return "now"
    for unit, size, most in (("min", 60, 3_600), ("h", 3_600, 86_400), ("d", 86_400, 35 * 86_400)):
        if seconds < most:
            return f"{int(seconds // size)} {unit}"
    day = then.astimezone(now.tzinfo)
    return f"{day.day} {day:%b}" if day.year == now.year else f"{day:%b %Y}"
