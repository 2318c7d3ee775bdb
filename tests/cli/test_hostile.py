"""Stored text that means harm, printed to a terminal by every command that shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND
from tests.support.hostile import HOSTILE, MARKUP

HARM = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@ONE_BACKEND
def test_every_command_that_shows_it(cli: Cli, tmp_path: Path) -> None:
    said = f"lantern {HOSTILE.replace(chr(0), '')}"
    before = str(cli.ok("ask", "--json", said).events[-1]["conversation_id"])
    # Under other ids, since what is there already is not replaced.
    text = re.sub(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", _another, cli.ok("export", before).out)
    exported = json.loads(text)
    uuid = exported["conversation"]["uuid"]
    exported["conversation"] |= {"title": f"lantern {HOSTILE}", "tags": [HOSTILE.strip()], "summary": HOSTILE}
    for turn in exported["turns"]:
        for message in turn["messages"]:
            message["content"] += HOSTILE
            message["persona"] += HOSTILE if message["persona"] else ""
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(exported))
    for arguments in (
        ("import", str(file)),
        ("sessions",),
        ("sessions", "--json"),
        ("show", uuid),
        ("show", uuid, "--json"),
        ("search", "lantern"),
        ("search", "lantern", "--json"),
        ("export", uuid, "--format", "markdown"),
        ("export", uuid),
        ("show", HOSTILE.replace(chr(0), "")),
    ):
        ran = cli.run(*arguments)
        printed = ran.out + ran.err
        assert not HARM.search(printed), (arguments, HARM.search(printed))
        if arguments[0] in ("sessions", "show", "search", "export"):
            assert MARKUP in printed, (arguments, printed)


def _another(found: re.Match[str]) -> str:
    fresh = uuid5(NAMESPACE_OID, found[0].replace("-", ""))
    return str(fresh) if "-" in found[0] else fresh.hex
