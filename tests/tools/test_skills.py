"""Skills and commands as other agents and editors write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.tools.skills import find_commands, find_skills, front_matter

SKILL = "---\nname: notes\ndescription: Takes notes.\n---\nWrite them down.\n"


def found(tmp_path: Path, content: bytes, file: str = "notes/SKILL.md") -> tuple[str, str]:
    """The description and the text of the one skill, which has no problem."""
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    problems: list[str] = []
    (skill,) = find_skills(tmp_path, project=True, problems=problems)
    assert not problems and skill.prompt.name == "notes"
    return skill.prompt.description, skill.body


@pytest.mark.parametrize(
    "content",
    [
        SKILL.encode(),
        SKILL.replace("\n", "\r\n").encode(),
        SKILL.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + SKILL.encode(),
        SKILL.encode("utf-16"),
        f"\n\n{SKILL}".encode(),
        SKILL.replace("---\n", "---  \n").encode(),
    ],
)
def test_the_form_of_the_text_does_not_matter(tmp_path: Path, content: bytes) -> None:
    assert found(tmp_path, content) == ("Takes notes.", "Write them down.\n")


@pytest.mark.parametrize("file", ["notes/skill.md", "notes/Skill.MD", "group/notes/SKILL.md"])
def test_the_place_of_a_skill(tmp_path: Path, file: str) -> None:
    assert found(tmp_path, SKILL.encode(), file)[0] == "Takes notes."


def test_a_skill_within_another_is_part_of_it(tmp_path: Path) -> None:
    for folder in ("notes", "notes/example"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "SKILL.md").write_text(SKILL)
    assert len(find_skills(tmp_path, project=False, problems=[])) == 1


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("Turn talk into a spec: no interview", "Turn talk into a spec: no interview"),
        ("`make` runs it", "`make` runs it"),
        ("@file and more", "@file and more"),
        ('"quoted" and more', '"quoted" and more'),
        ("a\ttab", "a\ttab"),
        ("\ta tab first", "a tab first"),
        ("[message]", "[message]"),
        ("{a: b}", "{a: b}"),
        ("*all", "*all"),
        ("'it''s quoted'", "it's quoted"),
        (">-\n  folded\n  lines", "folded lines"),
        ("|\n  kept\n  lines\n", "kept\nlines\n"),
        ("plain\n  and more", "plain and more"),
        ("\n  - one\n  - two", "- one - two"),
    ],
)
def test_a_field_is_read_whatever_its_value(written: str, value: str) -> None:
    fields, body = front_matter(f"---\nname: notes\ndescription: {written}\nlicense: MIT\n---\nbody")
    assert (fields["name"], fields["license"], body) == ("notes", "MIT", "body")
    assert fields["description"] == value or fields["description"].split() == value.split()


def test_an_odd_field_of_a_command_is_shown_as_written(tmp_path: Path) -> None:
    (tmp_path / "go.md").write_text("---\r\nargument-hint: [message] [to]\r\ndescription: a: b\r\n---\r\nGo $1.")
    (command,) = find_commands(tmp_path, project=False, problems=[])
    assert (command.prompt.arguments, command.prompt.description) == ("[message] [to]", "a: b")


@pytest.mark.parametrize(
    ("text", "reason"), [("---\nname: x\ndescription: y\n", "no --- after"), ("words", "no description")]
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "SKILL.md").write_text(text)
    problems: list[str] = []
    assert not find_skills(tmp_path, project=False, problems=problems) and reason in problems[0]
