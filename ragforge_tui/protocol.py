"""Protocol of the public Python API; defined in `shared.wire`, kept importable under this name."""

from ragforge_tui.shared.wire import *  # noqa: F403
