"""The offline assistant, run through the real tools of the agent on a small folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.llm import Finished, OfflineAssistant, TextPart, ToolRequest
from ragforge_tui.llm.offline.answers import Evidence, FinishedCall, answer
from ragforge_tui.llm.offline.intents import key_terms, parse_intent
from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.registry import Toolbox


class Talk:
    """A conversation with the assistant, tools really run; approvals are given."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work"
        self.toolbox = Toolbox(self.workspace, ToolSettings(), undo_dir=folder / "undo", state_dir=folder / "state")
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": "rules"}]
        self.calls: list[str] = []

    async def ask(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        self.calls = []
        for _ in range(6):
            parts = [p async for p in OfflineAssistant().stream(self.messages, tools=self.toolbox.schemas())]
            assert isinstance(parts[-1], Finished)
            requests = [p for p in parts if isinstance(p, ToolRequest)]
            answer = "".join(p.text for p in parts if isinstance(p, TextPart))
            if not requests:
                self.messages.append({"role": "assistant", "content": answer})
                return answer
            calls = [
                {"id": r.id, "type": "function", "function": {"name": r.name, "arguments": r.arguments}}
                for r in requests
            ]
            self.messages.append({"role": "assistant", "content": answer, "tool_calls": calls})
            for request in requests:
                self.calls.append(request.name)
                result = await self._run(request)
                self.messages.append({"role": "tool", "tool_call_id": request.id, "content": result})
        raise AssertionError("the assistant does not come to an end")

    async def _run(self, request: ToolRequest) -> str:
        try:
            call = await self.toolbox.prepare(request.name, request.arguments)
            return (await call.run()).text
        except ToolError as error:
            return str(error)


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "README.md").write_text("# Lantern\n\nA tool that measures light.\nRun it with `make`.\n")
    (work / "src" / "config.py").write_text(
        'import os\n\n\ndef load_config(path):\n    """Read the settings."""\n    return os.stat(path)\n'
    )
    (work / "src" / "retry.py").write_text(
        "from config import load_config\n\nMAX_RETRIES = 4\n\n\ndef backoff(attempt):\n    return 2 ** attempt\n"
    )
    (work / "notes.txt").write_text("colour: red\nsize: 3\n")
    return Talk(tmp_path)


async def test_it_shows_once_what_it_is(talk: Talk) -> None:
    first = await talk.ask("hello")
    assert "not a language model" in first and talk.calls == []
    assert "not a language model" not in await talk.ask("what is in notes.txt")


async def test_a_named_file_is_read_and_quoted(talk: Talk) -> None:
    answer = await talk.ask("What is in README.md?")
    assert talk.calls == ["read_file"]
    assert "`README.md:1-4`" in answer and "A tool that measures light." in answer


async def test_a_range_of_lines(talk: Talk) -> None:
    answer = await talk.ask("read src/retry.py lines 3 to 6")
    assert "`src/retry.py:3-6`" in answer and "MAX_RETRIES" in answer and "load_config" not in answer


async def test_a_file_in_another_folder_is_found(talk: Talk) -> None:
    answer = await talk.ask("show config.py")
    assert talk.calls == ["read_file", "glob_files", "read_file"]
    assert "`src/config.py:1-6`" in answer


async def test_where_something_is_defined(talk: Talk) -> None:
    answer = await talk.ask("where is load_config defined?")
    assert talk.calls[:2] == ["grep_files", "glob_files"] and "read_file" in talk.calls
    assert answer.index("src/config.py:") < answer.index("src/retry.py:")
    assert "def load_config(path):" in answer


async def test_a_question_is_answered_with_real_lines(talk: Talk) -> None:
    answer = await talk.ask("How many retries are allowed?")
    assert "MAX_RETRIES = 4" in answer and "src/retry.py:" in answer


async def test_sources_come_before_their_tests(talk: Talk) -> None:
    (talk.workspace / "tests").mkdir()
    asserts = "".join(f"    assert backoff({n}) == 2 ** {n}  # the backoff of attempt {n}\n" for n in range(9))
    (talk.workspace / "tests" / "test_backoff.py").write_text(f"def test_backoff_attempt():\n{asserts}")
    answer = await talk.ask("How does backoff count an attempt?")
    assert 0 < answer.index("src/retry.py:") < answer.index("tests/test_backoff.py:")
    tests = await talk.ask("Which tests are there of the backoff of an attempt?")
    assert tests.index("tests/test_backoff.py:") < tests.index("src/retry.py:")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("word " * 40, "word " * 31 + "word…"),
        (f"{'word ' * 20}ends. {'word ' * 20}", "word " * 20 + "ends."),
        (f"Ends. {'word ' * 40}", f"Ends. {'word ' * 30}".rstrip() + "…"),
        ("x" * 200, "x" * 159 + "…"),
        ("short", "short"),
    ],
)
async def test_a_long_line_ends_with_a_sentence_or_a_word(line: str, shown: str) -> None:
    intent = parse_intent("When is the word said?")
    said = answer(Evidence(intent=intent, done=[], past=[("user", line)]))
    assert f"- you: {shown}\n" in f"{said}\n"


async def test_only_what_was_written_is_reported_earlier(talk: Talk) -> None:
    await talk.ask("I set MAX_RETRIES to four because the server is slow")
    await talk.ask("show src/retry.py")
    answer = await talk.ask("what about MAX_RETRIES?")
    _, _, earlier = answer.partition("From earlier in this conversation:")
    assert "you: I set MAX_RETRIES to four" in earlier
    assert "me:" not in earlier and "= 4" not in earlier


async def test_memory_next_to_the_question_was_not_reported_by_the_user() -> None:
    messages = [
        {"role": "user", "content": "The lantern is red."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "[Memory …]\nsomebody wrote: the lantern is blue"},
        {"role": "user", "content": "what about the lantern?"},
    ]
    parts = [part async for part in OfflineAssistant().stream(messages, tools=None)]
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    assert "you: The lantern is red." in text and "blue" not in text


async def test_recalled_items_are_listed_without_their_marks(talk: Talk) -> None:
    found = (
        "From the memory. This is a record.\n<recalled>\n[t4] “Lamps”, 2026-11-20: the lantern needs four retries\n"
        "[t1] this conversation, 2026-11-22: lantern quoted\n</recalled>\nopen_turn gives a turn in full."
    )
    call = FinishedCall(name="search_history", arguments={}, text=found)
    intent = parse_intent("what about the lantern?")
    text = answer(Evidence(intent=intent, done=[call]))
    assert "- [t4] “Lamps”, 2026-11-20: the lantern needs four retries" in text
    assert "- [t1] this conversation" in text and "<recalled>" not in text and "record" not in text
    hits = FinishedCall(name="grep_files", arguments={}, text="README.md:1: # Lantern")
    assert "this conversation" not in answer(Evidence(intent=intent, done=[hits, call]))


async def test_long_questions_need_two_matching_words() -> None:
    found = "[t1] “A”, 2026-11-20: the lantern is red\n[t2] “B”, 2026-11-20: the red lantern `of the harb…"
    call = FinishedCall(name="search_history", arguments={}, text=found)
    text = answer(Evidence(intent=parse_intent("Where is the lantern of the harbour master lit?"), done=[call]))
    assert "“A”" not in text and "- [t2] “B”, 2026-11-20: the red lantern of the harb…" not in text
    text = answer(Evidence(intent=parse_intent("Which lantern is red?"), done=[call]))
    assert "“A”" in text and "- [t2] “B”, 2026-11-20: the red lantern of the harb…" in text


async def test_nothing_found_is_reported(talk: Talk) -> None:
    answer = await talk.ask("what about zebrafish?")
    assert "nothing about `zebrafish`" in answer and "You can ask me" in answer


async def test_folders_are_listed(talk: Talk) -> None:
    answer = await talk.ask("list files")
    assert talk.calls == ["glob_files"] and "README.md" in answer and "src/" in answer
    assert "retry.py" in await talk.ask("list the files in src")
    assert "retry.py" in await talk.ask("list src/")
    assert "src/retry.py" in await talk.ask("find files named *.py")


async def test_a_replacement_reads_first_then_edits(talk: Talk) -> None:
    answer = await talk.ask('replace "red" with "deep blue" in notes.txt')
    assert talk.calls == ["read_file", "edit_file"]
    assert (talk.workspace / "notes.txt").read_text() == "colour: deep blue\nsize: 3\n"
    assert "notes.txt" in answer


async def test_a_file_is_created(talk: Talk) -> None:
    await talk.ask('create todo.md with "buy milk"')
    assert (talk.workspace / "todo.md").read_text() == "buy milk\n"


async def test_a_command_is_run_exactly(talk: Talk) -> None:
    answer = await talk.ask("please run `echo one && echo 'two  three'`")
    assert talk.calls == ["run_command"] and "two  three" in answer
    await talk.toolbox.close()


async def test_a_project_is_described_from_its_readme_and_top_level(talk: Talk) -> None:
    (talk.workspace / "README.md").write_text(
        "Lantern\n=======\n\n[![build](x.svg)](x)\n\nA tool that measures light.\nRun it with `make`.\n\nMore.\n"
    )
    answer = await talk.ask("What does this project do?")
    assert talk.calls == ["glob_files", "read_file"]
    assert "`README.md:6-7`\n\n> A tool that measures light. Run it with `make`.\n" in answer
    assert "At the top level: `src/`, `README.md`, `notes.txt`." in answer and "More." not in answer


async def test_a_project_without_a_readme_is_described(talk: Talk) -> None:
    (talk.workspace / "README.md").unlink()
    answer = await talk.ask("what is this project about?")
    assert "No README says what this project does." in answer and "`notes.txt`" in answer
    (talk.workspace / "pyproject.toml").write_text('[project]\nname = "lantern"\ndescription = "Measures light."\n')
    assert "> Measures light." in await talk.ask("que fait ce projet ?")


async def test_french_is_answered_in_french(talk: Talk) -> None:
    assert "pas un modèle de langage" in await talk.ask("bonjour")
    assert "MAX_RETRIES" in await talk.ask("montre src/retry.py")
    assert "def load_config" in await talk.ask("où est load_config ?")
    assert "rien trouvé" in await talk.ask("que sais-tu sur les girafes ?")
    await talk.ask('remplace "3" par "5" dans notes.txt')
    assert "size: 5" in (talk.workspace / "notes.txt").read_text()
    assert "README.md" in await talk.ask("liste les fichiers")


async def test_earlier_messages_are_remembered(talk: Talk) -> None:
    await talk.ask("my favourite bird is the kingfisher")
    assert "you: my favourite bird is the kingfisher" in await talk.ask("what did I say about the kingfisher?")


async def test_the_same_question_gets_the_same_answer(talk: Talk, tmp_path: Path) -> None:
    assert await talk.ask("where is backoff?") == await Talk(tmp_path).ask("where is backoff?")


async def test_without_tools_it_still_answers() -> None:
    messages = [{"role": "user", "content": "what is in README.md"}]
    parts = [p async for p in OfflineAssistant().stream(messages, tools=None)]
    assert not any(isinstance(p, ToolRequest) for p in parts) and isinstance(parts[-1], Finished)
    assert (await OfflineAssistant().complete(messages))[0] == "what is in README.md"


async def test_refusals_end_the_turn() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": 'replace "a" with "b" in x.txt'}]
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "read_file", "arguments": json.dumps({"path": "x.txt"})},
    }
    messages += [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "x.txt does not exist."},
    ]
    tools = [{"type": "function", "function": {"name": name}} for name in ("read_file", "edit_file")]
    parts = [p async for p in OfflineAssistant().stream(messages, tools=tools)]
    assert "x.txt does not exist." in "".join(p.text for p in parts if isinstance(p, TextPart))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("thanks!", "greet"),
        ("help", "help"),
        ("que peux-tu faire ?", "help"),
        ("what's in this folder?", "list"),
        ("quels fichiers y a-t-il ?", "list"),
        ("exécute `ls -l`", "run"),
        ("affiche le contenu de README", "read"),
        ("explain @src/app.py", "read"),
        ("What does this project do?", "about"),
        ("explain the codebase", "about"),
        ("que fait ce projet ?", "about"),
        ("what is this repository about", "about"),
        ("what does the code in the parser do when the token budget is used up?", "lookup"),
        ("grep TODO", "lookup"),
        ("why does the parser fail on empty input?", "lookup"),
        ("find the file settings", "find_file"),
    ],
)
def test_intents(text: str, kind: str) -> None:
    assert parse_intent(text).kind == kind


def test_terms_put_names_first() -> None:
    assert key_terms("how does the parser use token_budget in `Reader`?")[:3] == ["Reader", "token_budget", "parser"]
