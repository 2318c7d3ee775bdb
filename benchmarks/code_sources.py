"""Real code bases for benchmarks, fetched from their package registries, and questions about them with known answers.

The ordinary client of each language fetches a source distribution by name and exact version into a folder outside of
the checkout; nothing fetched is committed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections import defaultdict
from pathlib import Path

import msgspec

DATA = Path(__file__).parent / "data"


class Repository(msgspec.Struct, frozen=True):
    """Source distribution: the ecosystem chooses the client."""

    ecosystem: str
    package: str
    version: str


class Answer(msgspec.Struct, frozen=True):
    """File with the qualified names of scopes that answer; any scope of the file if there are none."""

    file: str
    names: list[str] = []


class Question(msgspec.Struct, frozen=True):
    """Question about a repository.

    Attributes:
        kind: ``name`` gives the name or a part of it, ``meaning`` describes it in other words, ``mixed`` is the rest.
        only: ``brain`` if the answer is in a text file, which search_functions leaves out.
    """

    repo: str
    kind: str
    text: str
    answers: list[Answer]
    only: str = ""

    def answered_by(self, file: str, name: str) -> bool:
        """Return whether a scope is a right answer."""
        return any(
            answer.file == file and (not answer.names or any(_same(name, known) for known in answer.names))
            for answer in self.answers
        )


class Questions(msgspec.Struct, frozen=True):
    """All questions with the repositories they are about."""

    repositories: dict[str, Repository]
    questions: list[Question]

    def halves(self) -> dict[str, str]:
        """Return ``tune`` or ``unseen`` by the question's text: a fixed hash, alternating within each kind."""
        by_kind: defaultdict[str, list[str]] = defaultdict(list)
        for question in self.questions:
            by_kind[question.kind].append(question.text)
        halves: dict[str, str] = {}
        for texts in by_kind.values():
            ordered = sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())
            halves |= {text: ("tune", "unseen")[place % 2] for place, text in enumerate(ordered)}
        return halves


def read_questions(path: Path = DATA / "code_questions.json") -> Questions:
    """Return the questions of a file."""
    return msgspec.json.decode(path.read_bytes(), type=Questions)


def fetch(name: str, repository: Repository, folder: Path) -> Path:
    """Return the folder of an unpacked source distribution, fetched unless it is there already."""
    target = folder / f"{name}-{repository.version}"
    if not target.exists():
        with_parts = folder / f"{name}.part"
        shutil.rmtree(with_parts, ignore_errors=True)
        with_parts.mkdir(parents=True)
        source = _CLIENTS[repository.ecosystem](repository, with_parts)
        source.rename(target)
        shutil.rmtree(with_parts, ignore_errors=True)
    return target


def _python(repository: Repository, folder: Path) -> Path:
    wanted = f"{repository.package}=={repository.version}"
    # The tool's own interpreter may have no pip; any other will do, since nothing is built or installed.
    python = shutil.which("python3") or sys.executable
    _run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder), wanted])
    return _unpacked(folder)


def _javascript(repository: Repository, folder: Path) -> Path:
    _run(["npm", "pack", "-s", "--pack-destination", str(folder), f"{repository.package}@{repository.version}"])
    return _unpacked(folder)


def _go(repository: Repository, folder: Path) -> Path:
    wanted = f"{repository.package}@{repository.version}"
    environment = {**os.environ, "GOMODCACHE": str(folder / "modules"), "GOFLAGS": "-mod=mod -modcacherw"}
    told = _run(["go", "mod", "download", "-json", wanted], folder, environment)
    source = Path(json.loads(told)["Dir"])
    copied = folder / "source"
    shutil.copytree(source, copied)
    return copied


_CLIENTS = {"python": _python, "javascript": _javascript, "go": _go}


def _unpacked(folder: Path) -> Path:
    archive = next(folder.glob("*.t*gz"))
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    return next((folder / "unpacked").iterdir())


def _run(command: list[str], folder: Path | None = None, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def _same(name: str, known: str) -> bool:
    return name == known or name.endswith(f".{known}")
