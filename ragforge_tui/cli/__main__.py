"""Entry point of ``python -m ragforge_tui.cli``, the same as ``ragforge-chat``."""

from ragforge_tui.cli import main

main()
