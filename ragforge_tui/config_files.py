"""Settings of the public Python API; defined in `settings.load`, kept importable under this name."""

from ragforge_tui.settings.load import *  # noqa: F403
