"""Events of the public Python API; defined in `shared.events`, kept importable under this name."""

from ragforge_tui.shared.events import *  # noqa: F403
