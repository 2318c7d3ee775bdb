"""The git queries of the program: files, state and commits of a repository, who wrote a line, and the user's name.

A folder from another source may bring its own ``.git``, and its configuration can name programs: a remote to
fetch missing objects from, a file monitor, hooks, filters. The chat calls git at its start, before anything in the
folder is trusted, so every call goes through this module, which keeps those programs from running.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.records import Commit

_INHERITED = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "USER",
    "TMPDIR",
    # Locations of the user's own settings and limits of the search for a repository; set by the user, not by a folder.
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
)
_ENVIRONMENT = {
    # A missing object is fetched from the remote that the repository names, and a remote may be any command. This list
    # of protocols overrides protocol.*.allow of the repository; no protocol is called "none".
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_SSH_COMMAND": "false",
    "GIT_PROXY_COMMAND": "false",
    "GIT_ASKPASS": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_NOWHERE = {"GIT_DIR": os.devnull}
"""Environment without a repository, so that no includeIf of the user's settings can match one either."""
GIT_SECONDS = 5.0
"""Longest wait for a command that reads little of a repository."""
_NO_PROGRAMS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    # A folder with the layout of .git is not a repository unless it is named explicitly.
    "safe.bareRepository": "explicit",
    "log.showSignature": "false",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
}
"""Settings that keep git from starting a program, in place of those of a repository and of the user."""
_READABLE = {
    # What git prints is read as UTF-8, whatever the repository or the user prefers.
    "i18n.logOutputEncoding": "UTF-8",
    "core.quotePath": "false",
}
STAND_INS = {"core.checkStat": "minimal", "core.trustctime": "false"}
"""Settings with which a file in place of a hidden one, of the same size and time, does not count as changed."""
_OPTIONS = (
    "--no-pager",
    *(word for key, value in (_NO_PROGRAMS | _READABLE).items() for word in ("-c", f"{key}={value}")),
)
_HARMLESS = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)"
    r"|(remote\..*\.(url|fetch|pushurl|tagopt|prune)|branch\..*\.(remote|merge|rebase|pushremote|description))"
    r"|(user|pull|push|init|gc|color|advice)\.[^=]*",
    re.DOTALL,
)
"""Settings of a repository that name no program."""
_OF_DISPLAY = re.compile(
    r"core\.(excludesfile|quotepath)|safe\.directory|(status|column|i18n|log\.date|diff\.algorithm)\b.*"
)
"""Display settings of the user, which name no program."""
_COMMITS = 4
_LAST_SECOND = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp())
"""Latest time of a commit; one may be dated beyond what a date can hold in every time zone."""
_AT_ONCE = 500
"""Commits in one query."""
_POINTER_BYTES = 4_096
"""Most characters read of a file that names a branch or a folder."""
TRAILER = "Ragforge-Conversation"
"""Trailer of a commit message that names the conversation and turn of the commit: ``<id> t<turn>``."""
_COMMIT_FORMAT = f"%H%x1f%an%x1f%ct%x1f%s%x1f%(trailers:key={TRAILER},valueonly,separator=%x2c)%x1e"


class RepositoryState(msgspec.Struct, frozen=True):
    """State of a work tree. All texts are foreign.

    Attributes:
        branch: The branch with its upstream and distance, as ``git status`` prints it: ``main...origin/main``.
        commits: Short id and subject of the last commits, newest first.
        changes: Uncommitted changes of the folder as ``M path``, relative to it.
    """

    branch: str
    commits: list[str] = []
    changes: list[str] = []


class FileBlame(msgspec.Struct, frozen=True):
    """Commits behind the lines of a file.

    Attributes:
        commits: The commit of each line, empty where the line is not committed; no lines for a file without commits.
        names: Paths of the file in those commits and their parents, relative to the folder.
    """

    commits: list[str] = []
    names: list[str] = []


def list_files(folder: Path, *, most: int, timeout: float) -> list[str] | None:
    """Return the tracked and untracked files below a folder, without ignored ones; relative to it, in git's order.

    Args:
        folder: A folder inside a work tree.
        most: Number of files after which the list is cut.
        timeout: Seconds git may take.

    Returns:
        None if git is missing, fails or takes longer, or if the folder is not in a repository.
    """
    output = _run("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=folder, timeout=timeout)
    if output is None:
        return None
    names = output.decode("utf-8", "replace").split("\0")
    # A name that ends with a slash is a repository inside this one.
    return list(dict.fromkeys(name for name in names if name and not name.endswith("/")))[:most]


def repository_state(folder: Path, *, timeout: float) -> RepositoryState | None:
    """Return the state of a folder's repository; None if it is in none, or if git fails or takes longer.

    Args:
        folder: An absolute path without links.
        timeout: Seconds each of the queries may take.
    """
    root = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
    filters = _filters_disabled(folder, timeout) if root is not None else None
    if root is None or filters is None:
        return None
    status = _run(
        # Submodules have a configuration of their own, which the options for this one do not reach.
        *("status", "--porcelain=v1", "--branch", "-z", "--ignore-submodules=all", "--", "."),
        cwd=folder,
        timeout=timeout,
        options=filters,
    )
    if status is None:
        return None
    first, *entries = status.decode("utf-8", "replace").split("\0")
    # Plumbing, because `git log` may be configured to verify signatures, which runs a program.
    log = _run("rev-list", f"--max-count={_COMMITS}", "--format=%h %s", "HEAD", "--", cwd=folder, timeout=timeout)
    commits = (log or b"").decode("utf-8", "replace").split("\n")[1::2]
    prefix = "" if folder == root else f"{folder.relative_to(root).as_posix()}/"
    return RepositoryState(first.removeprefix("## "), commits, _changes(entries, prefix))


def _changes(entries: list[str], prefix: str) -> list[str]:
    changes: list[str] = []
    renamed = False
    for entry in entries:
        if entry and not renamed:
            changes.append(f"{entry[:2].strip()} {entry[3:].removeprefix(prefix)}")
        # The entry after a rename or a copy is the earlier path alone.
        renamed = not renamed and entry[:2].strip()[:1] in ("R", "C")
    return changes


def _filters_disabled(folder: Path, timeout: float) -> list[str] | None:
    """Return options that disable the filters of file contents, which are programs; None if that is impossible."""
    output = _run("config", "--list", "--name-only", "-z", cwd=folder, timeout=timeout)
    if output is None:
        return None
    options: list[str] = []
    for name in output.decode("utf-8", "surrogateescape").split("\0"):
        setting = name.rpartition(".")[2]
        if name.startswith("filter.") and setting in ("clean", "smudge", "process", "required"):
            if "=" in name:
                return None
            options += ["-c", f"{name}={'false' if setting == 'required' else ''}"]
    return options


def runs_nothing(folder: Path, *, work_tree: bool, timeout: float = 2.0) -> bool:
    """Return whether reading the history of a repository runs no program that the repository names.

    Args:
        folder: A folder in it.
        work_tree: Files are compared too, which obeys the settings of submodules.
        timeout: Seconds each of the queries may take.
    """
    names = _run("config", "--local", "--includes", "--list", "--name-only", "-z", cwd=folder, timeout=timeout)
    if names is None or not all(map(_HARMLESS.fullmatch, names.decode("utf-8", "replace").split("\0")[:-1])):
        return False
    if not work_tree:
        return True
    files = _run("ls-files", "--stage", "-z", "--", ":/", cwd=folder, timeout=timeout)
    return files is not None and not any(entry.startswith(b"160000") for entry in files.split(b"\0"))


def as_variables(settings: dict[str, str]) -> dict[str, str]:
    """Return environment variables that give git some settings, before those of any file."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for at, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return variables


def reading_variables(*, timeout: float = 2.0) -> dict[str, str]:
    """Return environment variables with which git starts no program that the user's or the system's settings name.

    The settings of a repository are judged by `runs_nothing`.
    """
    listed = _run("config", "--list", "--includes", "-z", cwd=Path("/"), timeout=timeout, environment=_NOWHERE)
    shown = {}
    for entry in (listed or b"").decode("utf-8", "replace").split("\0"):
        name, _, value = entry.partition("\n")
        if _HARMLESS.fullmatch(name) or _OF_DISPLAY.fullmatch(name):
            shown[name] = value
    only_given = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_PAGER": "cat"}
    environment = {name: value for name, value in _ENVIRONMENT.items() if name != "LC_ALL"}
    return environment | only_given | as_variables(shown | _NO_PROGRAMS | STAND_INS)


def repository_folders(folder: Path) -> list[Path]:
    """Return the folders that git reads for a folder: the work tree, its git folder and the common one."""
    names = ("--show-toplevel", "--git-dir", "--git-common-dir")
    output = _run("rev-parse", "--path-format=absolute", *names, cwd=folder, timeout=GIT_SECONDS)
    return [Path(os.fsdecode(line)) for line in (output or b"").splitlines()]


def hooks_folder(folder: Path) -> Path | None:
    """Return the folder of hooks that settings name for a repository; None if they name none."""
    output = _run("config", "--get-all", "--type=path", "-z", "core.hooksPath", cwd=folder, timeout=GIT_SECONDS)
    named = (output or b"").split(b"\0")[:-2]  # The last one is of `_NO_PROGRAMS`.
    return folder / os.fsdecode(named[-1]) if named else None


def git_is_installed() -> bool:
    return _program() is not None


def in_repository(folder: Path) -> bool:
    """Return whether a folder is inside a work tree."""
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def current_branch(folder: Path) -> str:
    """Return the branch of the repository that a folder is in, the short hash of a detached head, or nothing.

    Reads two small files instead of running git, so that the screen can ask as often as it likes.
    """
    try:
        root = next(path for path in (folder, *folder.parents) if (path / ".git").exists())
        git = root / ".git"
        if git.is_file():
            git = root / _pointer(git).removeprefix("gitdir:").strip()
        head = _pointer(git / "HEAD")
    except (OSError, ValueError, StopIteration):
        return ""
    name = head.removeprefix("ref:").strip().removeprefix("refs/heads/")
    return name if head.startswith("ref:") else name[:8]


def _pointer(file: Path) -> str:
    return read_regular(file, _POINTER_BYTES, cut=True).decode("utf-8", "replace").strip()


def branch_tips(folder: Path, *, timeout: float) -> frozenset[str] | None:
    """Return the ids of the commits that HEAD and the branches point at; None without a repository or on a failure."""
    if not in_repository(folder):
        return None
    output = _run("for-each-ref", "--format=%(objectname)", "refs/heads", cwd=folder, timeout=timeout)
    if output is None:
        return None
    head = _run("rev-parse", "--verify", "--quiet", "HEAD", cwd=folder, timeout=timeout)
    return frozenset([*output.decode().split(), *(head or b"").decode().split()])


def commits_since(folder: Path, tips: frozenset[str], *, most: int, timeout: float) -> list[Commit]:
    """Return the commits of HEAD and the branches that are not below these tips or those of a remote, oldest first.

    An amended or rebased commit is a new one; commits that were fetched or pulled are not.
    """
    now = branch_tips(folder, timeout=timeout)
    if not now or now == tips:
        return []
    return _commits(folder, *sorted(now), "--not", "--remotes", *sorted(tips), most=most, timeout=timeout)[::-1]


def commits_between(folder: Path, since: datetime, until: datetime, *, most: int, timeout: float) -> list[Commit]:
    """Return the commits of all branches made between two moments, oldest first; none outside of a repository."""
    times = (f"--since={int(since.timestamp())}", f"--until={int(until.timestamp())}")
    return _commits(folder, "--all", *times, most=most, timeout=timeout)[::-1]


def blame(folder: Path, path: str, *, timeout: float) -> FileBlame | None:
    """Return the commits that last changed the lines of a file of the work tree, apart from their white space.

    Args:
        folder: A folder inside a work tree.
        path: Relative to the folder.
        timeout: Seconds the longest of the queries may take.

    Returns:
        An empty result for a file without a commit; None if git fails or takes longer.
    """
    options = _filters_disabled(folder, timeout)
    top = _run("rev-parse", "--show-prefix", cwd=folder, timeout=timeout)
    if options is None or top is None:
        return None
    arguments = ("blame", "-w", "--porcelain", "--no-textconv", "--", path)
    output = _run(*arguments, cwd=folder, timeout=timeout, options=[*options, "-c", "blame.ignoreRevsFile="])
    if output is None:
        committed = _run("ls-tree", "-z", "HEAD", "--", path, cwd=folder, timeout=timeout)
        if committed is None:
            # A repository without a commit has no HEAD that could be listed.
            committed = _run("rev-parse", "--all", cwd=folder, timeout=timeout)
        return FileBlame() if committed == b"" else None
    return _read_blame(output, top.decode("utf-8", "replace").strip("\n"))


def _read_blame(output: bytes, prefix: str) -> FileBlame:
    """Read the porcelain form: for each line its commit, what is new about that, and the line after a tab.

    Args:
        prefix: Path of the folder in its repository, with a slash at the end; git's names are relative to the latter.
    """
    lines: list[str] = []
    names: dict[str, None] = {}
    commit = ""
    for row in output.split(b"\n"):
        word, _, rest = row.partition(b" ")
        if row.startswith(b"\t"):
            lines.append(commit if commit.strip("0") else "")
            commit = ""
        elif not commit:
            commit = word.decode("ascii", "replace")
        elif word in (b"filename", b"previous"):
            name = (rest if word == b"filename" else rest.partition(b" ")[2]).decode("utf-8", "replace")
            if name.startswith(prefix):
                names[name.removeprefix(prefix)] = None
    return FileBlame(commits=lines, names=list(names))


def commits_by_hash(folder: Path, hashes: Sequence[str], *, timeout: float) -> dict[str, Commit]:
    """Return commits by their full ids; those that git does not know, or all if it fails, are left out."""
    found: dict[str, Commit] = {}
    for start in range(0, len(hashes), _AT_ONCE):
        page = hashes[start : start + _AT_ONCE]
        commits = _commits(folder, "--no-walk=unsorted", "--end-of-options", *page, most=_AT_ONCE, timeout=timeout)
        found |= {commit.hash: commit for commit in commits}
    return found


def _commits(folder: Path, *arguments: str, most: int, timeout: float) -> list[Commit]:
    """Return the commits that arguments of ``git rev-list`` select, in git's order; none if it fails."""
    output = _run(
        "rev-list", f"--max-count={most}", f"--format={_COMMIT_FORMAT}", *arguments, cwd=folder, timeout=timeout
    )
    found: list[Commit] = []
    for record in (output or b"").decode("utf-8", "replace").split("\x1e"):
        # Each record follows a line that says "commit" and its id.
        fields = record.strip("\n").partition("\n")[2].split("\x1f")
        if len(fields) == 5:
            commit, author, moment, subject, trailer = fields
            found.append(
                Commit(
                    hash=commit,
                    author=author,
                    committed_at=_time_of(moment),
                    subject=subject,
                    trailer=trailer.split(",")[0].strip(),
                )
            )
    return found


def _time_of(seconds: str) -> datetime:
    """Return the time of a commit; any number may stand there, and git prints nothing for one it cannot read."""
    try:
        return datetime.fromtimestamp(min(max(int(seconds), 0), _LAST_SECOND), UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def global_user_name(*, timeout: float = 2.0) -> str:
    """Return ``user.name`` of the user's own git settings, empty without one; a repository's is never used."""
    output = _run(
        "config",
        "--global",
        "--includes",
        "--get",
        "user.name",
        cwd=Path("/"),
        timeout=timeout,
        environment=_NOWHERE,
    )
    return (output or b"").decode("utf-8", "replace").strip()


def _run(
    *arguments: str,
    cwd: Path,
    timeout: float,
    environment: dict[str, str] | None = None,
    options: Iterable[str] = (),
) -> bytes | None:
    program = _program()
    if program is None:
        return None
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ} | {"PATH": _search_path()}
    try:
        done = subprocess.run(
            [program, *_OPTIONS, *options, *arguments],
            cwd=cwd,
            env=inherited | _ENVIRONMENT | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError:
        _found_in.cache_clear()
        return None
    return done.stdout if done.returncode == 0 else None


def _program() -> str | None:
    program = _found_in(_search_path())
    if program is None:
        _found_in.cache_clear()  # It may be installed meanwhile.
    return program


@lru_cache(maxsize=1)
def _found_in(path: str) -> str | None:
    return shutil.which("git", path=path)


def _search_path() -> str:
    """Return PATH without empty and relative entries, which would look for programs in the folder itself."""
    return absolute_entries(os.environ.get("PATH", ""))


@lru_cache(maxsize=2)
def absolute_entries(path: str) -> str:
    """Return a PATH without entries that depend on the current folder."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())
