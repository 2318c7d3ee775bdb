"""The work of some days as Markdown: by folder, with what was left open, and nothing in it that acts."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from ragforge_tui.export import standup_markdown
from ragforge_tui.shared.records import Finding
from tests.support.fake_past import WORK

SINCE = datetime(2026, 11, 2, tzinfo=UTC)


def test_a_standup_is_grouped_by_folder() -> None:
    other = msgspec.structs.replace(
        WORK[0],
        workspace="",
        title="",
        first_turn=4,
        last_turn=4,
        ended=WORK[0].started,
        findings=[],
        actions="",
        closed=[],
        failures=[],
        files=[f"f{n}.py" for n in range(14)],
        commits=["abc1234 store: one retry"],
    )
    assert standup_markdown([*WORK, other], SINCE, zone=UTC) == (
        "# Since Monday, 2026-11-02\n\n"
        "## /w\n\n"
        "2 turns in 1 conversation: 1 file changed, 1 decision, 1 point closed, 1 failure, 1 point open.\n\n"
        "**Retries double turns** · `00000001` t2–t3 · Tue 2026-11-03 09:02–14:02\n\n"
        "- The user asked why turns double; the lock was missing.\n"
        "- Changed `src/store.py`\n"
        "- Ran `make test` (2 times).\n"
        "- Decided: One retry is enough. (t3)\n"
        "- [x] Write a test. (t3: its test passed) (t2)\n"
        "- Failed: `ruff check .` ended with exit status 1 (t3)\n"
        "- [ ] Measure it. (t3)\n\n"
        "## No folder\n\n"
        "1 turn in 1 conversation: 1 commit, 14 files changed, 1 point open.\n\n"
        "**Untitled conversation** · `00000001` t4 · Tue 2026-11-03 09:02\n\n"
        "- The user asked why turns double; the lock was missing.\n"
        "- Committed abc1234 store: one retry\n"
        f"- Changed {', '.join(f'`f{n}.py`' for n in range(12))} and 2 more\n"
        "- [ ] Measure it. (t3)"
    )


def test_nothing_done_and_a_time_of_day() -> None:
    text = standup_markdown([], SINCE.replace(hour=9, minute=30), zone=UTC)
    assert text == "# Since Monday, 2026-11-02 09:30\n\nNothing was done in any conversation."


def test_foreign_text_stays_text() -> None:
    work = msgspec.structs.replace(
        WORK[0],
        title="a\n# b",
        text="<img src=x> and [here](http://x) with `code_here`",
        actions="Kept `a_b`.",
        files=["a`b\x1b[31m.py"],
        open_points=[Finding(text="sk-abcdefghijklmnopqrstuvwxyz0123456789")],
    )
    text = standup_markdown([work], SINCE, zone=UTC)
    assert "\n# b" not in text
    assert "<img" not in text.replace("\\<img", "")
    assert "[here](" not in text.replace("\\[here", "")
    assert "- Kept `a_b`." in text
    assert "`ab.py`" in text
    assert "sk-abcdefghij" not in text
