"""The clipboard sequence a terminal understands, also from inside tmux.

Pure. Textual writes OSC 52 as it is; tmux swallows that unless it is wrapped as a pass-through.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping


def copy_sequence(text: str, env: Mapping[str, str]) -> str:
    """OSC 52 for `text`, wrapped when tmux stands between."""
    payload = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    sequence = f"\x1b]52;c;{payload}\x07"
    if not env.get("TMUX"):
        return sequence
    # Both forms: the bare one serves `set-clipboard on`, the wrapped one `allow-passthrough on`.
    escaped = sequence.replace("\x1b", "\x1b\x1b")
    return f"{sequence}\x1bPtmux;{escaped}\x1b\\"
