"""Command line and environment of processes that need none of the user's keys: graph, engine host, parser of code.

The first two outlive the chat that started them, and the last one reads foreign files.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from ragforge_tui.shared.search_path import absolute_entries

_KEPT = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TMPDIR|TMP|TEMP|TZ|VIRTUAL_ENV|LD_LIBRARY_PATH|NO_COLOR|SSL_\w+|PYTHON\w+"
    r"|REQUEST_TIMEOUT|LITELLM_(LOG|SSL_CIPHERS)|OPENAI_(LOG|API_TYPE|API_VERSION)|AZURE_OPENAI_ENDPOINT"
)
"""Variables of the system, and those that users set and the imports of an engine read. None of them holds a key."""


def daemon_command(*arguments: str) -> list[str]:
    """Return the command line that runs this interpreter with `arguments`."""
    # -P: do not import modules of the current folder that have the same names as ours.
    return [sys.executable, "-P", *arguments]


def daemon_environment() -> dict[str, str]:
    """Return the environment of a background process, with a PYTHONPATH on which it finds this package.

    OpenBLAS gets one thread: others would not survive a fork of the host, and wait for each other busily, which takes
    ten times the processor time for each vector.
    """
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    package_root = str(Path(__file__).resolve().parents[2])
    return kept | {
        "PYTHONPATH": os.pathsep.join([package_root, *absolute_entries()]),
        "OPENBLAS_NUM_THREADS": "1",
    }
