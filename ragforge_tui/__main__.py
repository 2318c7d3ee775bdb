"""`python -m ragforge_tui` is `ragforge-chat`."""

from ragforge_tui.cli import main

main()
