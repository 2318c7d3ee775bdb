"""A long session over a real repository, kept to be read: ``python -m examples.session [--repository DIR]``.

Copies a repository into a temporary workspace and holds a conversation about its code with the offline assistant, by
the Python API and with a graph of its own; waits until the memory has settled; writes what was asked and the tree of
summaries beside this file. No language model takes part: what the summaries say is extracted.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from pathlib import Path

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.export.markdown import head_text, memory_text
from ragforge_tui.graph import stop_server
from ragforge_tui.settings.schema import (
    AgentSettings,
    Loaded,
    MemorySettings,
    ModelSettings,
    Paths,
    Settings,
    SummarizationSettings,
    UserSettings,
)

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("ragforge_tui", "personas", "tests", "README.md", "pyproject.toml", "Makefile")
LEVEL_CHARS = 3_000
"""Instead of 10 000, so that sixty turns reach the third level."""
SAID = (
    "Hello! I am new to this code and want to understand how a conversation is stored. Where is `begin_turn` defined?",
    "Read ragforge_tui/graph/writer.py",
    "Where is `writer_alive` used?",
    "What is LEASE_GRACE for?",
    "Where is LEASE_GRACE used?",
    "How does the journal set records aside?",
    "Read ragforge_tui/graph/journal.py lines 1-40",
    "Where is `drain` called?",
    "Which files are in ragforge_tui/graph",
    "Where are long texts split into parts?",
    "Read ragforge_tui/graph/store/parts.py",
    "My plan is to raise the grace of leases, because laptops that wake up lose their turns. I decided on 15 seconds.",
    "Replace `timedelta(seconds=10)` with `timedelta(seconds=15)` in ragforge_tui/graph/writer.py",
    "Read ragforge_tui/graph/writer.py lines 1-30",
    "Where are the tests of `writer_alive`?",
    "Now to the summaries. Where is `run_due` called?",
    "Read ragforge_tui/memory/summaries/plan.py",
    "What decides that a summary is due?",
    "Where is `next_due` used?",
    "What is a frontier?",
    "How are key findings chosen without a model?",
    "Read ragforge_tui/memory/summaries/offline/extract.py lines 1-60",
    "Where is `ELLIPSIS` used?",
    "Which files are in ragforge_tui/memory/summaries",
    "What happens when a model gives a malformed summary?",
    "Where is `UnusableAnswerError` raised?",
    "Remember that the words of extracted summaries stand in ragforge_tui/memory/summaries/offline/phrases.toml.",
    "Next question: how are secrets masked?",
    "Where is `mask_secrets` called?",
    "Read ragforge_tui/shared/sanitize.py lines 1-40",
    "Where is `plain_text` defined?",
    "What did we change about LEASE_GRACE?",
    "Which tools does the agent have?",
    "Which files are in ragforge_tui/tools",
    "How is a path kept inside the workspace?",
    "Where is `match_files` used?",
    "Read ragforge_tui/conversation/approvals/policy.py",
    "What may run without being asked?",
    "Where is `ModeTools` used?",
    "I prefer plan mode for reviews, since nothing is written there.",
    "How are personas found?",
    "Which files are in personas",
    "Read personas/Dev.luciform",
    "Where is `Persona` defined?",
    "What is SPOKEN_AS?",
    "Now the screen. Where is `Transcript` defined?",
    "Which files are in ragforge_tui/tui/transcript",
    "How is streaming Markdown kept fast?",
    "Read ragforge_tui/tui/transcript/transcript.py lines 1-30",
    "Where is `Sidebar` used?",
    "How does the chat survive a crash of the engine?",
    "Read ragforge_tui/tui/session/engine_session.py lines 1-40",
    "Where is MAX_CRASHES used?",
    "What is stored when a turn is stopped?",
    "Where is `TurnCancelled` emitted?",
    "How does the embedded graph start?",
    "Where is `stop_server` called?",
    "Read ragforge_tui/graph/embedded/server.py lines 1-30",
    "What did I decide about leases, and in which file?",
    "Where do the words of extracted summaries stand?",
    "Thank you, that is all for today.",
)


async def main(repository: Path, out: Path) -> None:
    """Hold the session and write it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        loaded = loaded_in(Path(folder), repository)
        try:
            async with ConversationAgent(loaded, approve_all=True) as agent:
                conversation = await agent.create_conversation()
                for text in SAID:
                    await conversation.send_message(text)
                await conversation.memory.settle()
                store = await agent.store()
                export = await store.transfer.export(conversation.record.uuid)
        finally:
            await asyncio.to_thread(stop_server, loaded.paths)
    made = ", ".join(
        f"{sum(one.level == level for one in export.memory.summaries)} of level {level}"
        for level in sorted({one.level for one in export.memory.summaries})
    )
    asked = "".join(f"{number}. {text}\n" for number, text in enumerate(SAID, 1))
    text = f"{head_text(export.conversation)}{memory_text(export.memory)}\n\n## Asked\n\n{asked}".replace(folder, "")
    target = out / "session.md"
    await asyncio.to_thread(target.write_text, text, encoding="utf-8")
    print(f"{len(export.turns)} turns, summaries: {made}; written to {target}")


def loaded_in(folder: Path, repository: Path) -> Loaded:
    """Settings of the offline assistant in a copy of the repository, with a graph of its own."""
    workspace = folder / "ragforge-chat"
    workspace.mkdir()
    for name in COPIED:
        source = repository / name
        if source.is_dir():
            shutil.copytree(source, workspace / name, ignore=shutil.ignore_patterns("__pycache__", "__snapshots__"))
        elif source.exists():
            shutil.copy2(source, workspace / name)
    memory = MemorySettings(summarization=SummarizationSettings(level_chars=LEVEL_CHARS))
    return Loaded(
        settings=Settings(
            model=ModelSettings(name="offline"), user=UserSettings(name="Ada"), agent=AgentSettings(memory=memory)
        ),
        paths=Paths(config=str(folder / "config"), data=str(folder / "data"), state=str(folder / "state")),
        workspace=str(workspace.resolve()),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hold a long session over a repository and keep it to be read.")
    parser.add_argument("--repository", type=Path, default=ROOT)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    given = parser.parse_args()
    asyncio.run(main(given.repository, given.out))
