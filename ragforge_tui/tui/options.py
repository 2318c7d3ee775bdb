"""Options that the command line passes to the screen.

Separate from `app`, so that they can be made without loading Textual.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ragforge_tui.settings.schema import Settings, TuiSettings


class ChatOptions(msgspec.Struct, kw_only=True, frozen=True):
    """Options of one chat.

    Attributes:
        resume: Id or unique prefix to resume; empty string: pick one; None: do not resume.
        continue_last: Open the newest conversation of the workspace.
        state_dir: Folder of prompt history and drafts.
        workspace: The folder the agent works in, absolute.
        persona: Persona of a new conversation; empty: the default one.
        settings: All settings, for the settings screen; `origins` names the source of each.
        config_file: The user's settings file, where changes are saved; None: nothing is saved.
    """

    resume: str | None = None
    continue_last: bool = False
    tui: TuiSettings = TuiSettings()
    state_dir: Path
    workspace: str = ""
    persona: str = ""
    version: str = ""
    settings: Settings = msgspec.field(default_factory=Settings)
    origins: dict[str, str] = {}
    config_file: Path | None = None
