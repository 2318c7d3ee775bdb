"""Files that no general permission covers: those with secrets, those that run by themselves, the program's own.

The tables are data. `Guard` judges a path, or a word of a command, for one workspace; the file tools and the approval
of commands both ask it, so that a file is as safe from `cat` as from read_file.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from ragforge_tui.shared.account import home_folder

Reason = Literal["", "own", "secret", "runs", "outside", "options"]
"""Why a path is not covered, the gravest first; empty if it is an ordinary one."""

BECAUSE: dict[Reason, str] = {
    "own": "belongs to this program",
    "secret": "may hold keys or passwords",
    "runs": "is run or obeyed by other programs",
    "outside": "is outside the workspace",
    "options": "may name a file with more options",
}

# A pattern is matched against the end of a path, in small letters: `*` within one part, `{a,b}` either. With a slash at
# its end it is a folder, which counts itself and with all it holds.

SECRET = """
    .env .env.* *.env .envrc
    *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.asc *.secret *.secrets *.tfvars *.tfstate *.keytab *.ovpn
    id_rsa* id_dsa* id_ecdsa* id_ed25519* krb5cc_* .netrc _netrc .npmrc .pypirc .pgpass .my.cnf .htpasswd .dockercfg
    .git-credentials kubeconfig .vault-token .s3cfg .boto .curlrc .wgetrc .*_history .terraformrc *.tfrc
    {,*.,*_,*-}credentials{,.json,.yaml,.yml,.toml,.ini,.csv,.txt,.xml,.properties,.tfrc.json}
    {,.}secret{,s}{,.json,.yaml,.yml,.toml,.ini,.txt,.properties}
    client_secret*.json service{-,_}account*.json *creds.json auth.json .claude.json logins.json key{3,4}.db
    cookies.sqlite rclone.conf gh/hosts.yml .m2/settings{,-security}.xml .gradle/gradle.properties age/keys.txt
    serviceaccount/token etc/{,g}shadow etc/sudoers
    .ssh/ .gnupg/ .aws/ .azure/ .kube/ .docker/ .secrets/ .password-store/ .config/gcloud/ .config/op/ run/secrets/
    keyrings/ .mozilla/ .config/google-chrome/ .config/chromium/
"""
NOT_SECRET = ".env.{example,sample,template,dist} *.example.env *.pub"

RUNS = """
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .login .zshrc .zshenv .zprofile .zlogin
    .inputrc .xinitrc .xprofile .xsession .tmux.conf .screenrc .vimrc .gvimrc .exrc .nvimrc .emacs .emacs.d/ .vim/
    .gdbinit .lldbinit .pythonrc .pythonstartup .irbrc .Rprofile .condarc
    {site,user}customize.py *.pth
    .config/{autostart,systemd,environment.d,fish,git,hypr,i3,kitty,nvim,sway,tmux}/ .local/bin/
    library/launchagents/ .local/share/applications/
    .git/ .gitconfig .gitattributes .gitmodules .githooks/ .husky/ .pre-commit-config.yaml lefthook.y{,a}ml head
    .ragforge/ .claude/ .codex/ .cursor/ .cursorrules .gemini/ .opencode/ {agents,claude,gemini}.md {,.}mcp.json
    .vscode/ .idea/ .devcontainer/ .zed/ .nvim.lua .lvimrc
    .github/{workflows,actions}/ .gitlab-ci.yml .circleci/ jenkinsfile azure-pipelines.yml .travis.yml
    conftest.py {,.}mypy.ini {,.}pytest.ini tox.ini setup.cfg setup.py pyproject.toml noxfile.py .pylintrc .coveragerc
    package.json .yarnrc* .pnpmfile.cjs .mocharc.* *.config.{js,cjs,mjs,ts} .eslintrc* gulpfile.* gruntfile.*
    .cargo/config{,.toml} build.rs {,gnu}makefile *.mk justfile .justfile taskfile.y{,a}ml cmakelists.txt rakefile
    {,.}venv/bin/ node_modules/.bin/
    .bundle/config .rspec composer.json build.gradle{,.kts} settings.gradle{,.kts} .mvn/ .bazelrc
    dockerfile* {,docker-}compose*.y{,a}ml cargo.toml rust-toolchain* mise.toml flake.nix deno.json{,c} bunfig.toml
    manage.py opencode.json crush.json
"""
HARMLESS = ".*ignore .{git,}keep .editorconfig .nojekyll"
"""Hidden files that no program takes a command from. Every other one may hold settings of a program."""

ONLY_NAMES = frozenset({"basename", "df", "dirname", "du", "fd", "fdfind", "ls", "pwd", "readlink", "realpath", "stat"})
"""Programs that show no content of the files below a folder."""
SEARCHING = frozenset({"egrep", "fgrep", "grep", "rg"})
"""Programs that may read all files below the current folder although no word names it."""

_BACKUP = re.compile(r"(?:~|\.(?:backup|bak|copy|old|orig|save|sw[a-p]|tmp))+$")
_GIT_PARTS = ("HEAD", "objects", "refs")
_LETTERS = 10
"""Letters of an option that a file name may follow, as in `-rf.env`."""
_MOST_ENTRIES = 2_000
_MOST_SEARCHED = 20_000
"""Files and folders that are looked at before a search runs without a question: some 50 ms."""


def _compiled(table: str, *, last: bool = False) -> re.Pattern[str]:
    """Compile a table, or only the last part of each pattern."""
    signs = {"*": "[^/]*", "{": "(?:", ",": "|", "}": ")"}
    patterns = []
    for pattern in table.lower().split():
        whole = pattern.removesuffix("/")
        written = "".join(signs.get(sign) or re.escape(sign) for sign in (whole.rpartition("/")[2] if last else whole))
        patterns.append(written + ("(?:/|$)" if pattern.endswith("/") else "$"))
    return re.compile(f"(?:^|/)(?:{'|'.join(patterns)})")


_SECRET, _NOT_SECRET, _RUNS, _HARMLESS = map(_compiled, (SECRET, NOT_SECRET, RUNS, HARMLESS))
_LAST_PARTS = _compiled(f"{SECRET} {RUNS}", last=True)
_SECRET_FOLDERS = [name.rstrip("/") for name in SECRET.split() if name.endswith("/") and name.startswith(".")]


@functools.lru_cache(4096)
def is_secret(path: str) -> bool:
    """Return whether a path is named like a file or folder with keys or passwords, or like a backup of one."""
    lowered = path.lower().rstrip("/")
    folder, slash, name = lowered.rpartition("/")
    without = _BACKUP.sub("", name)
    names = {lowered, f"{folder}{slash}{without}", f"{folder}{slash}{without.removeprefix('.')}"}
    return any(_SECRET.search(one) for one in names) and not _NOT_SECRET.search(lowered)


@functools.lru_cache(65_536)
def is_ordinary(name: str) -> bool:
    """Return whether a file of a name is neither secret nor run later, unless it is for the folder that it is in."""
    without = _BACKUP.sub("", name.lower())
    return not any(map(_LAST_PARTS.search, {name.lower(), without, without.removeprefix(".")}))


def runs_later(path: str) -> bool:
    """Return whether a file, given by its path below a workspace, is one that other programs run or obey."""
    return _RUNS.search(path.lower()) is not None


class Guard:
    """Judge of paths in one workspace.

    Args:
        root: The workspace, with symlinks resolved.
        own: Folders and files of the program.
        home: The user's home folder.
    """

    def __init__(self, root: Path, own: Iterable[str | Path] = (), home: Path | None = None) -> None:
        self.root = str(root)
        self.home = os.path.realpath(home or home_folder())
        # As written too: a folder of the program may become a symlink, or stop being one.
        self._own = {path for one in own for path in (os.path.realpath(one), str(Path(one).absolute()))}
        self._hidden = self._own.union(f"{self.home}/{name}" for name in _SECRET_FOLDERS)

    def of_file(self, path: str) -> Reason:
        """Return why a file of the workspace is not covered by a permission for files in general.

        Args:
            path: Its absolute path with symlinks resolved.
        """
        if any(_within(path, one) for one in self._own):
            return "own"
        if is_secret(self._below(path, self.root)):
            return "secret"
        below = self._below(path, self.root)
        if any(map(runs_later, (below, self._below(path, self.home)))) or self._in_repository(path):
            return "runs"
        if re.search(r"(?:^|/)\.", below) and not _HARMLESS.search(below.lower()):
            return "runs"
        return ""

    def hides(self, relative: str) -> bool:
        """Return whether a search leaves out a file, given by its path below the workspace."""
        return is_secret(relative) or any(_within(f"{self.root}/{relative}", one) for one in self._own)

    def is_free_of_secrets(self, path: str) -> bool:
        """Return whether no file below a folder is named like one with secrets; False for too many files."""
        left = _MOST_SEARCHED
        for folder, folders, names in os.walk(path):
            left -= len(folders) + len(names)
            if left < 0 or any(is_secret(self._below(f"{folder}/{name}", self.root)) for name in (*folders, *names)):
                return False
        return True

    def of_word(self, word: str, program: str, folders: Iterable[str]) -> Reason:
        """Return why a word of a command is not covered by a permission for its program.

        Args:
            folders: Where the command may run, since another command of its chain may have changed the folder.
        """
        if word == "/dev/null":
            return ""
        if word.startswith("@") or "=@" in word:
            return "options"
        reasons = {self._of_value(value, program, folder) for folder in folders for value in _values(word)}
        return next((reason for reason in BECAUSE if reason in reasons), "")

    def of_folder(self, program: str, folder: str) -> Reason:
        """Return why a program that reads the folder it runs in is not covered there."""
        if not _within(folder, self.root):
            return "outside"
        return "secret" if program in SEARCHING and self._above_secrets(folder) else ""

    def _of_value(self, value: str, program: str, folder: str) -> Reason:
        try:
            path = os.path.realpath(os.path.join(folder, value))  # noqa: PTH118 - Path would normalise before realpath
        except ValueError:
            return "outside"
        if any(_within(path, one) for one in self._own):
            return "own"
        below = self._below(path, self.root)
        if is_secret(value) or is_secret(below):
            return "secret"
        if program not in ONLY_NAMES and self._above_secrets(path):
            return "secret"
        return "" if _within(path, self.root) else "outside"

    def _above_secrets(self, path: str) -> bool:
        """Return whether a folder holds a folder with secrets: a known one, or one right below it."""
        if not os.path.isdir(path):  # noqa: PTH112 - this and the next are called for each word
            return False
        if any(_within(one, path) and os.path.lexists(one) for one in self._hidden):
            return True
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            return any(is_secret(entry.name) and entry.is_dir() for entry in itertools.islice(entries, _MOST_ENTRIES))
        return False

    def _in_repository(self, path: str) -> bool:
        """Return whether a file is part of a git folder of any name, or would make one of the folder that holds it."""
        below = PurePosixPath(self._below(path, self.root)).parts
        for depth in range(len(below)):
            folder = Path(self.root, *below[:depth])
            if all(part == below[depth] or (folder / part).exists() for part in _GIT_PARTS):
                return True
        return False

    @staticmethod
    def _below(path: str, folder: str) -> str:
        """Return the path below a folder, so that a workspace in ~/.docker/x is not a secret itself; else all of it."""
        return path[len(folder.rstrip("/")) + 1 :] if _within(path, folder) else path


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _values(word: str) -> Iterator[str]:
    """Yield what in a word may be the name of a file, as in `--file=a`, `HEAD:a` and `-rfa`."""
    if word.startswith("-") and not word.startswith("--"):
        yield from (word[at:] for at in range(2, min(len(word), _LETTERS)))
    elif not word.startswith("-"):
        yield word
    yield from (word[at.end() :] for at in re.finditer(r"[=:](?!//)", word))
