"""What `always` never covers: secrets, the program's files, files with options, and what is outside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.conversation.approvals.allowed_commands import judge, offer
from ragforge_tui.settings.folders import find_paths, program_files
from ragforge_tui.tools.sensitive import Guard


def covers(patterns: list[str], command: str, guard: Guard) -> bool:
    return judge(patterns, command, guard).covered


def words(table: str) -> list[str]:
    return table.split()


READING = words("cat grep rg diff wc")
PATTERNS = [f"{program} *" for program in (*READING, "head", "sort", "pytest", "mypy", "go test", "ls", "git diff")]
PATTERNS += ["git show *", "git log *", "git commit *", "cd sub", "cd ..", "cd"]

SECRETS_OF_HOME = words("""
    .ssh .ssh/config .ssh/id_ed25519 .aws .aws/credentials .gnupg .kube/config .docker/config.json .bash_history
    .zsh_history .python_history .psql_history .config/gh/hosts.yml .vault-token .config/rclone/rclone.conf
    .m2/settings.xml .terraform.d/credentials.tfrc.json .s3cfg .boto .claude.json .codex/auth.json
    .local/share/opencode/auth.json .gemini/oauth_creds.json .mozilla/firefox/x.default/logins.json
    .password-store/mail.gpg .netrc .npmrc .pypirc .pgpass .git-credentials .config/gcloud/x .azure/x
    .cargo/credentials.toml .env .env.local .env~ prod.env.bak app/secrets.yaml deploy/server.key infra/a.tfvars
    .local/share/keyrings/login.keyring .gradle/gradle.properties .curlrc .wgetrc .my.cnf kubeconfig id_rsa.bak
    .config/ragforge/config.yaml .local/share/ragforge/graph/password .local/state/ragforge/trust.json
    .local/state/ragforge .cache/ragforge/x
""")
OUTSIDE = words("""
    / /root /root/.ssh /etc/shadow /etc/passwd /run/secrets/db /var/run/secrets/kubernetes.io/serviceaccount/token
    /tmp/krb5cc_0 /dev/tty /dev/fd/3 /proc/1/environ /proc/self/mem ../other/x.py ../../proc/1/environ sub/../../x
""")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with a workspace in it, and the program's folders where a user has them."""
    folder = tmp_path / "home"
    for name in (".ssh", ".aws", "work/sub", "work/src", "work/plain/a", "work/nested/.ssh", ".config", ".cache"):
        (folder / name).mkdir(parents=True)
    (folder / "work/link").symlink_to(folder / ".ssh")
    (folder / "work/passwd").symlink_to("/etc/passwd")
    monkeypatch.setenv("HOME", str(folder))
    for name in ("RAGFORGE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def guard_of(home: Path, workspace: Path) -> Guard:
    paths = find_paths({})
    for folder in (paths.config, paths.data, paths.state):
        Path(folder).mkdir(parents=True, exist_ok=True)
    return Guard(workspace, program_files(paths, f"{paths.config}/config.yaml"), home)


@pytest.mark.parametrize("place", SECRETS_OF_HOME)
def test_a_secret_is_covered_neither_from_elsewhere_nor_in_the_home_folder(home: Path, place: str) -> None:
    inside, away = guard_of(home, home), guard_of(home, home / "work")
    for program in READING:
        for word in (place, f"./{place}", f"{home}/{place}", f"src/../{place}", f"{place}/"):
            command = f"{program} x {word}"
            assert not covers([*PATTERNS, command], command, inside), command
            assert offer(command, inside) == [], command
        assert not covers(PATTERNS, f"{program} {home}/{place}", away)
        assert not covers(PATTERNS, f"{program} ../{place}", away)


@pytest.mark.parametrize("word", OUTSIDE)
@pytest.mark.parametrize("form", ["{}", "-f {}", "-f{}", "-nf{}", "--file={}", "a:{}", "x {}"])
def test_nothing_outside_the_workspace_is_covered(home: Path, word: str, form: str) -> None:
    guard = guard_of(home, home / "work")
    for pattern in PATTERNS:
        if not pattern.endswith("*"):
            continue
        command = pattern.replace("*", form.format(word))
        assert not covers([*PATTERNS], command, guard), command


@pytest.mark.parametrize(
    "command",
    [
        "grep -r . ..",
        "grep -rh . link",
        "cat link/id_rsa",
        "cat passwd",
        "grep -r . nested",
        "grep -r . nested/.ssh",
        "diff -r nested src",
        "pytest @args.txt",
        "mypy @f",
        "pytest --x=@args.txt",
        "go test /tmp/evil",
        "pytest /tmp/evil_test.py",
        "git diff --no-index src ../other",
        "git show HEAD:.env",
        "git show HEAD:conf/credentials.json",
        "git log -p -- .env",
        "git commit -F.env",
        "git commit -aF.env",
        "cd .. && cat notes",
        "cd .. && grep x",
        "cd .. ; cat work2/notes",
        "cd sub && cat ../../notes",
        "cd && cat notes",
    ],
)
def test_more_that_is_not_covered(home: Path, command: str) -> None:
    assert not covers(PATTERNS, command, guard_of(home, home / "work"))


@pytest.mark.parametrize("command", ["rg -uuu .", "grep -r x .", "grep -r x", "diff -r . work", "grep -r . ./"])
def test_a_folder_above_secrets_is_not_covered(home: Path, command: str) -> None:
    assert not covers(PATTERNS, command, guard_of(home, home))


@pytest.mark.parametrize(
    "command",
    [
        "cat README.md src/a.py",
        "cat src/../README.md",
        "cat /dev/null",
        "grep -rn TODO src plain",
        "grep -rn TODO .env.example",
        "rg -n 'def main' src",
        "git diff HEAD~1..HEAD -- src",
        "git log --oneline main...dev",
        "git show HEAD:src/a.py",
        "git log --since=10:30 --author=me",
        "pytest -q tests/a.py::test_b -k 'x and y'",
        "go test ./... -run X",
        "head -n5 src/a.py",
        "cd sub && cat a.py && cat ../src/a.py",
        "rg x https://example.com",
    ],
)
def test_ordinary_work_in_the_workspace_is_covered(home: Path, command: str) -> None:
    assert judge(PATTERNS, command, guard_of(home, home / "work")) == (True, "")
    absolute = command.replace("src/a.py", f"{home}/work/src/a.py")
    assert covers(PATTERNS, absolute, guard_of(home, home / "work"))


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("cat .env", "`cat *` does not cover .env, which may hold keys or passwords"),
        ("ls && cat /etc/hosts", "`cat *` does not cover /etc/hosts, which is outside the workspace"),
        ("pytest @x", "`pytest *` does not cover @x, which may name a file with more options"),
        ("sort -o x a", "`sort *` does not cover -o, which may run a program or write a file"),
        ("make", ""),
        ("cat .env && make", ""),
    ],
)
def test_the_reason_is_given_although_a_pattern_exists(home: Path, command: str, why: str) -> None:
    patterns = [*PATTERNS, "ls"]
    assert judge(patterns, command, guard_of(home, home / "work")) == (False, why)


def test_a_folder_of_the_program_given_by_a_link_or_a_variable_is_not_covered(home: Path) -> None:
    (home / "moved").mkdir()
    (home / "rag").symlink_to(home / "moved")
    paths = find_paths({"RAGFORGE_HOME": str(home / "rag")})
    guard = Guard(home, program_files(paths, ""), home)
    for word in ("rag/state/trust.json", "moved/state/trust.json", "moved/config.yaml", "rag/data"):
        assert not covers(["cat *", f"cat {word}"], f"cat {word}", guard), word
    assert covers(["cat *"], "cat moved/notes", guard)
