"""The session of last week: held once with the real program, stored, and imported with the dates of last week.

``python -m screenshots.past`` holds it again and writes ``last_week.json``.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from screenshots.stage import environment
from tests.support.model_script import Step
from tests.support.openai_server import OpenAIServer

HERE = Path(__file__).resolve().parent
FILE = HERE / "last_week.json"
FOLDER = "/home/ada/courier"
"""The workspace, as the file names it."""
QUESTIONS = (
    "A pickup was ordered twice last night. Can a retry do that?",
    "They do: Idempotency-Key, kept for 24 hours. Do it.",
)
SUBJECT = "orders: repeat one Idempotency-Key in every attempt"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
_PATIENCE = 300.0


def workspace(home: Path, env: dict[str, str], *, changed: datetime | None = None) -> Path:
    """Return a new folder with the project in a repository.

    Args:
        changed: When the change of last week was committed; None: it was not made yet.
    """
    folder = home / "courier"
    shutil.copytree(HERE / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    author = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    committer = {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}

    def commit(subject: str, when: datetime) -> None:
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), when.isoformat())
        command = ["git", "commit", "--quiet", "--all", "-m", subject]
        subprocess.run(command, cwd=folder, env=env | author | committer | dates, check=True)

    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=folder, env=env, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, env=env, check=True)
    commit("Start", (changed or datetime.now().astimezone()) - timedelta(days=1))
    if changed is not None:
        for change in _changes():
            file = folder / change["path"]
            file.write_text(file.read_text().replace(change["old_string"], change["new_string"]))
        commit(SUBJECT, changed)
    return folder


def _changes() -> list[dict[str, str]]:
    steps = json.loads((HERE / "answers.json").read_text())["last_week"]
    calls = [call for step in steps for call in step.get("tool_calls", ())]
    return [call["arguments"] for call in calls if call["name"] == "edit_file"]


def dated(stored: str, folder: Path, newest: datetime) -> str:
    """Return the stored session as of a workspace, its newest time being this one."""
    times = [datetime.fromisoformat(found) for found in _TIME.findall(stored)]
    later = newest - max(times)
    moved = _TIME.sub(lambda found: f"{datetime.fromisoformat(found[0]) + later:%Y-%m-%dT%H:%M:%S.%fZ}", stored)
    return moved.replace(FOLDER, str(folder))


async def _hold(home: Path) -> str:
    steps = json.loads((HERE / "answers.json").read_text())["last_week"]
    async with OpenAIServer() as server:
        server.script([Step(**step) for step in steps])
        env = environment(home, server.base_url)
        folder = workspace(home, env)

        async def run(*arguments: str) -> str:
            process = await asyncio.create_subprocess_exec(
                "ragforge-chat", *arguments, cwd=folder, env=env, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            return out.decode()

        await run("ask", "--yes", QUESTIONS[0])
        session = json.loads(await run("sessions", "--json"))[0]["uuid"]
        await run("ask", "--yes", "--resume", session, QUESTIONS[1])
        end = time.monotonic() + _PATIENCE
        while not (stored := json.loads(await run("export", session)))["memory"]["summaries"]:
            if time.monotonic() > end:
                raise TimeoutError("no summary was written")
            await asyncio.sleep(1.0)
        await run("graph", "stop")
    return _without_requests(stored).replace(str(folder), FOLDER)


def _without_requests(stored: dict[str, Any]) -> str:
    """Return the session without the prompts of the program, which the film does not show."""
    return json.dumps(stored | {"contexts": []}, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Hold the session of last week again."""
    with tempfile.TemporaryDirectory(prefix="last-week-", ignore_cleanup_errors=True) as home:
        FILE.write_text(asyncio.run(_hold(Path(home).resolve())), encoding="utf-8")


if __name__ == "__main__":
    main()
