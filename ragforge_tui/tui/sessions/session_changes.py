"""What the list of sessions changes in one of them, and how it reports that."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.records import PURGE_AFTER_DAYS, Conversation
from ragforge_tui.tui.sessions.session_list_model import KEY_OF, session_title
from ragforge_tui.tui.sessions.session_service import SessionService, parse_tags


class Change(msgspec.Struct, frozen=True):
    """A change that was made.

    Attributes:
        session: Its new record; None if that stayed the same.
        go_to: Whether the cursor goes there.
    """

    message: str = ""
    session: Conversation | None = None
    go_to: bool = False


class SessionChanges:
    """Changes sessions and remembers which ones were deleted here."""

    def __init__(self, service: SessionService) -> None:
        self._service = service
        self._deleted: list[str] = []

    @property
    def last_deleted(self) -> str:
        """Id of the session that was deleted last and not restored since; empty for none."""
        return self._deleted[-1] if self._deleted else ""

    async def rename(self, uuid: str, title: str) -> Change:
        """Give a session another title, or none."""
        return Change("Renamed." if title else "The title was removed.", await self._service.rename(uuid, title))

    async def tag(self, uuid: str, tags: str) -> Change:
        """Replace the tags of a session."""
        changed = await self._service.tag(uuid, parse_tags(tags))
        return Change(f"Tags: {', '.join(changed.tags)}" if changed.tags else "The tags were removed.", changed)

    async def toggle_private(self, chosen: Conversation) -> Change:
        """Keep a session from being recalled elsewhere, or allow it again."""
        changed = await self._service.set_private(chosen.uuid, not chosen.private)
        text = "Private: no other conversation recalls or finds it." if changed.private else "Not private."
        return Change(text, changed)

    async def archive(self, chosen: Conversation) -> Change:
        """Archive a session, or make it active again."""
        away = chosen.status != "archived"
        changed = await self._service.archive(chosen.uuid, archived=away)
        return Change(f"{'Archived' if away else 'Active again'}: {session_title(changed)}", changed)

    async def delete(self, chosen: Conversation) -> Change:
        """Hide a session; it is purged after seven days."""
        deleted = await self._service.delete(chosen.uuid)
        self._deleted.append(chosen.uuid)
        gone = msgspec.structs.replace(chosen, status="deleted", deleted_at=self._service.now)
        kept = f"Deleted, kept for {PURGE_AFTER_DAYS} days: {session_title(chosen)}"
        shared = f" · a branch keeps its turns: {session_title(deleted.kept_by)}" if deleted.kept_by else ""
        return Change(f"{kept} · {KEY_OF['undo']} restores it{shared}", gone)

    async def restore(self, uuid: str) -> Change:
        """Bring a deleted session back."""
        back = await self._service.restore(uuid)
        self._deleted = [one for one in self._deleted if one != uuid]
        return Change(f"Restored: {session_title(back)}", back, go_to=True)

    async def export(self, uuid: str, target: str) -> Change:
        """Write a session to a file; without a name nothing is written."""
        return Change(f"Written to {await self._service.export(uuid, target)}") if target else Change()
