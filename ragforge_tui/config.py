"""Every setting, its type, its default and what it does. The definition is the manual.

`config.example.yaml`, `config show` and the errors a person sees come from the structs below; loading and
precedence live in `config_files.py`. Leans on nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class _Section(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    pass


PositiveInt = Annotated[int, Meta(ge=1)]
Dollars = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class ModelSettings(_Section, frozen=True):
    """Which model answers."""

    name: Annotated[
        str,
        Meta(
            description="Any LiteLLM model, e.g. anthropic/claude-sonnet-5, openai/gpt-5, ollama/qwen3; "
            "'offline' for the built-in assistant. Empty: found from the environment, then localhost."
        ),
    ] = ""
    api_base: Annotated[str, Meta(description="Base URL of an OpenAI-compatible server.")] = ""
    api_key: Annotated[str, Meta(description="Key for the provider; the provider's own variable is better.")] = ""
    temperature: Annotated[float | None, Meta(description="Sampling temperature; null leaves it to the provider.")] = (
        None
    )
    max_output_tokens: Annotated[
        PositiveInt | None, Meta(description="Longest answer in tokens; null: the provider's limit.")
    ] = None
    context_window: Annotated[
        PositiveInt | None,
        Meta(description="Tokens the model can read; null: known from its name, else 32768."),
    ] = None
    max_iterations: Annotated[
        PositiveInt,
        Meta(description="Model replies in one turn before a final answer without tools is asked for."),
    ] = 50
    max_cost: Annotated[
        Dollars | None, Meta(description="US dollars one turn may cost before it stops and asks; null: no limit.")
    ] = None
    max_session_cost: Annotated[
        Dollars | None,
        Meta(description="US dollars all answers of one run may cost before a turn stops and asks; null: no limit."),
    ] = None
    first_token_timeout: Annotated[
        Seconds | None,
        Meta(
            description="Seconds until an answer has to begin; null: by the server. One on this machine, which may "
            "have to load the model first, has no limit, any other 600 s.",
        ),
    ] = None
    token_timeout: Annotated[
        float,
        Meta(gt=0, description="Seconds without a token, once an answer has begun, before it counts as stalled."),
    ] = 120.0
    retries: Annotated[
        int, Meta(ge=0, description="How often a request that failed in a passing way is sent again.")
    ] = 4


LIVE_MODEL_SETTINGS = ("first_token_timeout", "token_timeout", "retries", "max_output_tokens")
"""Settings of the model that a running chat takes up, from the next request on."""


class GraphSettings(_Section, frozen=True):
    """Where the memory lives."""

    uri: Annotated[
        str,
        Meta(
            description="bolt:// or neo4j:// URI (also +s, +ssc) of a Neo4j 5.23 or newer; empty: the embedded graph."
        ),
    ] = ""
    username: Annotated[str, Meta(description="User name at that server.")] = "neo4j"
    password: Annotated[str, Meta(description="Password at that server; NEO4J_PASSWORD is better.")] = ""
    database: Annotated[str, Meta(description="Database name; empty: the server's default.")] = ""
    adopt: Annotated[bool, Meta(description="Allow our schema in a graph that already holds other data.")] = False
    heap_mb: Annotated[PositiveInt, Meta(description="Heap of the embedded server in MiB.")] = 512
    linger_seconds: Annotated[
        float, Meta(ge=0, description="How long the embedded server stays up after the last chat ended.")
    ] = 20.0


class ToolSettings(_Section, frozen=True):
    """What the agent may do."""

    enabled: Annotated[list[str] | None, Meta(description="Names of the tools offered to the model; null: all.")] = None
    command_timeout: Annotated[float, Meta(gt=0, description="Seconds a command may run.")] = 120.0
    allow_commands: Annotated[
        list[str],
        Meta(
            description="Commands that run without asking, such as 'git status' or 'pytest *' (any further words). "
            "Each command of a chain has to match; what holds $, a wildcard, a redirection or a group is asked about."
        ),
    ] = []
    max_output_chars: Annotated[
        PositiveInt, Meta(description="Characters of a tool's output the model is shown; the rest is cut.")
    ] = 30_000
    ignore: Annotated[
        list[str], Meta(description="Patterns, as in .gitignore, that searches and listings leave out.")
    ] = []
    agents_md: Annotated[
        bool, Meta(description="Use AGENTS.md (else CLAUDE.md) of the workspace, asked once per repository.")
    ] = True


class TuiSettings(_Section, frozen=True):
    """How the screen looks and feels."""

    theme: Annotated[
        str,
        Meta(
            description="auto, dark, light, ansi (the terminal's own colours), contrast-dark, contrast-light, mono, "
            "or the name of a Textual theme."
        ),
    ] = "auto"
    show_reasoning: Annotated[bool, Meta(description="Show reasoning unfolded.")] = False
    reduced_motion: Annotated[bool, Meta(description="No spinners and no animation.")] = False
    plain: Annotated[
        bool,
        Meta(
            description="For screen readers and slow links: words instead of signs, no frames, no sidebar by itself, "
            "few updates, nothing that moves."
        ),
    ] = False
    sidebar: Annotated[
        bool, Meta(description="Show trace, memory and files beside the chat where there are 120 columns.")
    ] = True
    notify: Annotated[
        Literal["auto", "bell", "off"],
        Meta(
            description="Call you when something waits or a long answer is there while the terminal is not focused: "
            "a desktop notification where the terminal has them, else the bell."
        ),
    ] = "auto"
    keymap: Annotated[dict[str, str], Meta(description="Your own keys: command id to key, e.g. {stop: escape}.")] = {}


class PersonaSettings(_Section, frozen=True):
    """The character the agent has."""

    default: Annotated[str, Meta(description="Persona of a new conversation.")] = "Assistant"


class UserSettings(_Section, frozen=True):
    """Who you are."""

    name: Annotated[
        str, Meta(description="How the agent may call you; empty: git's global user.name, else the log-in.")
    ] = ""


class RecentSettings(_Section, frozen=True):
    """Turns that are sent as they were when the conversation no longer fits."""

    max_chars: Annotated[PositiveInt, Meta(description="Characters of the newest turns.")] = 40_000
    max_turns: Annotated[PositiveInt, Meta(description="How many of them at most.")] = 10


class SummarizationSettings(_Section, frozen=True):
    """Summaries in levels."""

    enabled: Annotated[bool, Meta(description="Write summaries at all.")] = True
    every_turns: Annotated[PositiveInt, Meta(description="Raw turns that make an L1 due.")] = 5
    every_chars: Annotated[PositiveInt, Meta(description="Characters of raw turns that make an L1 due.")] = 10_000
    keep_recent_turns: Annotated[int, Meta(ge=0, description="Newest turns never summarised.")] = 2
    level_chars: Annotated[PositiveInt, Meta(description="Characters of a level that make the next due.")] = 10_000
    model: Annotated[str, Meta(description="Model for summaries; empty: the conversation's own.")] = ""


class RecallSettings(_Section, frozen=True):
    """What comes back by itself."""

    strategy: Annotated[
        Literal["hybrid", "recent", "relevant"],
        Meta(description="Past turns sent: by relevance and recency, only the newest, or only relevant ones."),
    ] = "hybrid"
    scope: Annotated[
        Literal["workspace", "all", "none"],
        Meta(description="Other conversations searched: of this workspace, all, or none."),
    ] = "workspace"
    max_tokens: Annotated[PositiveInt, Meta(description="Tokens of recalled turns in a request.")] = 3_000
    max_summaries: Annotated[int, Meta(ge=0, description="Summaries recalled in a request.")] = 5
    min_score: Annotated[
        float,
        Meta(ge=-1, le=1, description="Cosine below which a summary or a conversation does not count as similar."),
    ] = 0.3
    level_boost: Annotated[
        dict[int, float],
        Meta(description="Factor on a summary's score by level; higher levels take the highest given."),
    ] = msgspec.field(default_factory=lambda: {1: 1.0, 2: 1.1, 3: 1.2})
    recency_boost: Annotated[Share, Meta(description="Share of a summary's score that fades with age.")] = 0.5
    recency_decay_days: Annotated[float, Meta(gt=0, description="Days in which that share falls to a third.")] = 7.0
    other_conversations_share: Annotated[
        Share, Meta(description="Share of recall other conversations may take while this one needs the room.")
    ] = 0.4


class EmbeddingSettings(_Section, frozen=True):
    """Vectors of meaning."""

    enabled: Annotated[bool, Meta(description="Find by meaning, not by words alone.")] = True
    model: Annotated[
        str,
        Meta(
            description="LiteLLM embedding model; empty: the local multilingual one. "
            "One of the chat model's provider shares its model.api_base and api_key."
        ),
    ] = ""
    dimension: Annotated[PositiveInt, Meta(description="Length of the model's vectors.")] = 512


class PersistenceSettings(_Section, frozen=True):
    """How turns are kept."""

    type: Annotated[
        Literal["graph", "hybrid"],
        Meta(description="Everything in the graph; hybrid (texts in files) is not available yet, which is said."),
    ] = "graph"
    auto_save: Annotated[bool, Meta(description="Store an answer's text while it streams; off: once it is whole.")] = (
        True
    )


class ExportSettings(_Section, frozen=True):
    """Files written beside the graph in real time."""

    enabled: Annotated[bool, Meta(description="Write each conversation to files as it grows.")] = False
    path: Annotated[
        str,
        Meta(
            description="Folder of the exports, a relative one below the workspace; empty: exports in the data folder."
        ),
    ] = ""
    format: Annotated[
        Literal["json", "markdown", "both"], Meta(description="conv-<uuid>.json, conv-<uuid>.md, or both.")
    ] = "json"


class MemorySettings(_Section, frozen=True):
    """What the agent remembers and how."""

    enabled: Annotated[bool, Meta(description="Use the memory; without it only the newest messages are sent.")] = True
    max_context_chars: Annotated[
        PositiveInt, Meta(description="Budget of the past in a request; four characters count as a token.")
    ] = 100_000
    max_context_messages: Annotated[
        PositiveInt | None, Meta(description="Most past messages in a request; null: no limit.")
    ] = None
    recent: RecentSettings = RecentSettings()
    summarization: SummarizationSettings = SummarizationSettings()
    recall: RecallSettings = msgspec.field(default_factory=RecallSettings)
    embeddings: EmbeddingSettings = EmbeddingSettings()
    persistence: PersistenceSettings = PersistenceSettings()
    export: ExportSettings = ExportSettings()


class AgentSettings(_Section, frozen=True):
    """The agent."""

    memory: MemorySettings = msgspec.field(default_factory=MemorySettings)


class Settings(_Section, frozen=True):
    """All settings. A section's docstring is its heading in config.example.yaml."""

    model: ModelSettings = ModelSettings()
    graph: GraphSettings = GraphSettings()
    tools: ToolSettings = msgspec.field(default_factory=ToolSettings)
    tui: TuiSettings = msgspec.field(default_factory=TuiSettings)
    personas: PersonaSettings = PersonaSettings()
    user: UserSettings = UserSettings()
    agent: AgentSettings = msgspec.field(default_factory=AgentSettings)


class Paths(msgspec.Struct, kw_only=True, frozen=True):
    """Folders of the program. RAGFORGE_HOME puts all of them under one folder, else platformdirs decides.

    Attributes:
        config: The user's config.yaml and keymaps.
        data: The embedded graph (``graph/``), personas, exports, kept file contents (``undo/``).
        state: Logs, journal (``journal/``), locks, prompt history, answers given (approvals, trust).
    """

    config: str
    data: str
    state: str


class Loaded(msgspec.Struct, kw_only=True, frozen=True):
    """Settings with where each came from.

    Attributes:
        origins: Dotted key path to what set it ("--model", "RAGFORGE_MODEL", a file's path); absent: default.
        workspace: The folder the agent works in, absolute, symlinks resolved.
        config_file: The user's own settings file, whether it is there or not; empty: none was looked for.
    """

    settings: Settings
    paths: Paths
    workspace: str
    origins: dict[str, str] = {}
    config_file: str = ""
