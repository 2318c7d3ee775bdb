"""Home folder and log-in name where the system knows neither."""

from __future__ import annotations

import getpass
import os
import pwd
from pathlib import Path

import pytest

from ragforge_tui.settings.folders import find_paths
from ragforge_tui.shared.account import home_folder, log_in_name
from ragforge_tui.shared.errors import ConfigError


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user that the system does not list, without the variables that name one."""

    def unknown(number: int) -> None:
        raise KeyError(f"uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("home", [None, "", "relative/folder"])
def test_without_a_home_the_root_folder_stands_in(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert home_folder() == Path("/")


@pytest.mark.usefixtures("unlisted")
def test_home_is_what_the_variable_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    assert home_folder() == tmp_path / "missing"


@pytest.mark.usefixtures("unlisted")
def test_an_unlisted_user_is_a_number() -> None:
    assert log_in_name() == str(os.getuid())
    assert log_in_name("friend") == "friend"


def test_a_listed_user_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    assert log_in_name("friend") == "ada"


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("home", [None, "~/below"])
def test_folders_without_a_home_name_the_variables(home: str | None) -> None:
    with pytest.raises(ConfigError, match=r"HOME is not set.*RAGFORGE_HOME"):
        find_paths({} if home is None else {"RAGFORGE_HOME": home})


@pytest.mark.usefixtures("unlisted")
def test_folders_of_their_own_need_no_home(tmp_path: Path) -> None:
    assert find_paths({"RAGFORGE_HOME": str(tmp_path)}).config == str(tmp_path)
