"""Errors of the public Python API; defined in `shared.errors`, kept importable under this name."""

from ragforge_tui.shared.errors import *  # noqa: F403
