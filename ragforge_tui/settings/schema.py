"""Definition of every setting: its type, default and description, which also serves as the manual.

`config.example.yaml`, `config show` and the messages of settings errors are generated from the structs below; loading
and precedence are in `load.py`. Imports no other module of the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ragforge_tui.settings.folders import Paths as Paths


class _Section(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    pass


PositiveInt = Annotated[int, Meta(ge=1)]
Dollars = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class ModelSettings(_Section, frozen=True):
    """The model and its provider."""

    name: Annotated[
        str,
        Meta(
            description="Any LiteLLM model, e.g. anthropic/claude-sonnet-5, openai/gpt-5.2, ollama/qwen3; "
            "'offline' for the built-in assistant. Empty: the one chosen last with /connect or /model, else one found "
            "in the environment, then on localhost."
        ),
    ] = ""
    fallbacks: Annotated[
        list[str],
        Meta(
            description="Models that answer the rest of a turn, in this order, if the provider limits requests or is "
            "down; the chat says so, and the next message goes to the chosen model again."
        ),
    ] = []
    api_base: Annotated[str, Meta(description="Base URL of an OpenAI-compatible server.")] = ""
    api_key: Annotated[
        str, Meta(description="Key for the provider; the provider's own environment variable is safer.")
    ] = ""
    temperature: Annotated[float | None, Meta(description="Sampling temperature; null: the provider's.")] = None
    reasoning_effort: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
        Meta(
            description="How much a reasoning model thinks, where it can be set; null: the provider's choice.",
            extra={"live": "request"},
        ),
    ] = None
    images: Annotated[
        Literal["auto", "yes", "no"],
        Meta(
            description="Whether images that a message names are sent; auto: to models of which LiteLLM says that they "
            "take them, and to unknown ones at api_base until their server refuses.",
            extra={"live": "request"},
        ),
    ] = "auto"
    max_output_tokens: Annotated[
        PositiveInt | None,
        Meta(description="Longest reply in tokens; null: the provider's limit.", extra={"live": "request"}),
    ] = None
    context_window: Annotated[
        PositiveInt | None,
        Meta(description="Context window of the model in tokens; null: what its server or a table says, else 32768."),
    ] = None
    max_iterations: Annotated[
        PositiveInt,
        Meta(
            description="Maximum number of model replies in one turn; then a final answer without tools is requested."
        ),
    ] = 50
    max_cost: Annotated[
        Dollars | None, Meta(description="US dollars one turn may cost before it stops and asks; null: no limit.")
    ] = None
    max_session_cost: Annotated[
        Dollars | None,
        Meta(description="US dollars all turns of one run may cost before a turn stops and asks; null: no limit."),
    ] = None
    first_token_timeout: Annotated[
        Seconds | None,
        Meta(
            description="Seconds to wait for a reply to start; null: depends on the server. A server on this machine, "
            "which may have to load the model first, has no limit; any other has 600 s.",
            extra={"live": "request"},
        ),
    ] = None
    token_timeout: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds without a token, once a reply has started, before it counts as stalled.",
            extra={"live": "request"},
        ),
    ] = 120.0
    retries: Annotated[
        int,
        Meta(ge=0, description="Number of retries after a temporary failure of a request.", extra={"live": "request"}),
    ] = 4


def live_part(annotated: Any) -> str:
    """Return the part of a running chat that a setting applies to, as its `Meta` names it in ``extra``.

    ``request``: the next request to the model. ``screen``: whatever reads it when the screen is drawn again. The other
    parts are those of `LiveSettings`. Empty: the setting is read when the chat starts.
    """
    metas = (meta for meta in getattr(annotated, "__metadata__", ()) if isinstance(meta, Meta))
    return next((str(meta.extra["live"]) for meta in metas if meta.extra and "live" in meta.extra), "")


LIVE_MODEL_SETTINGS = tuple(field.name for field in msgspec.structs.fields(ModelSettings) if live_part(field.type))
"""Settings of the model that a running chat applies, from the next request on."""


class GraphSettings(_Section, frozen=True):
    """The graph that stores the memory."""

    uri: Annotated[
        str,
        Meta(
            description="bolt:// or neo4j:// URI (also +s, +ssc) of a Neo4j 5.23 or newer; empty: the embedded graph."
        ),
    ] = ""
    username: Annotated[str, Meta(description="User name on that server.")] = "neo4j"
    password: Annotated[str, Meta(description="Password on that server; NEO4J_PASSWORD is safer.")] = ""
    database: Annotated[str, Meta(description="Database name; empty: the server's default.")] = ""
    adopt: Annotated[bool, Meta(description="Add this program's schema to a graph that already holds other data.")] = (
        False
    )
    heap_mb: Annotated[
        PositiveInt, Meta(description="Heap of the embedded server in MiB; a large graph gets more.")
    ] = 512
    linger_seconds: Annotated[
        float, Meta(ge=0, description="Seconds the embedded server keeps running after the last chat has ended.")
    ] = 20.0


class EngineSettings(_Section, frozen=True):
    """The processes that run the agent."""

    keep_warm_minutes: Annotated[
        float,
        Meta(
            ge=0,
            description="Minutes for which a background process stays ready after the last chat, so that the next "
            "one starts at once; 0: no such process, and each chat takes seconds to start.",
        ),
    ] = 30.0


class ToolSettings(_Section, frozen=True):
    """Tools of the agent, their permissions and limits."""

    enabled: Annotated[list[str] | None, Meta(description="Names of the tools offered to the model; null: all.")] = None
    command_timeout: Annotated[
        float, Meta(gt=0, description="Seconds a command may run; a call may ask for up to five times as many.")
    ] = 120.0
    rules: Annotated[
        list[str],
        Meta(
            description="What runs without approval, always asks or is refused: 'allow @tests in /home/me/project', "
            "'ask git commit *', 'deny write(docs/)'. /rules shows and changes them."
        ),
    ] = []
    allow_commands: Annotated[
        list[str],
        Meta(
            description="Commands that run without approval in every folder, such as 'git status' or 'pytest *' (any "
            "arguments). Each command of a chain must match. A command with $, a wildcard or a group always needs "
            "approval. The same as 'allow' rules without a folder."
        ),
    ] = []
    web: Annotated[bool, Meta(description="Offer the agent fetch_web_page, which reads pages of the web.")] = True
    allow_hosts: Annotated[
        list[str],
        Meta(description="Hosts whose pages are fetched without approval, such as docs.python.org or '*.rs'."),
    ] = []
    confine_commands: Annotated[
        bool,
        Meta(
            description="Run the agent's commands where they cannot reach this program's files, sockets and processes. "
            "Programs that need setuid, such as sudo, fail there."
        ),
    ] = True
    keep_variables: Annotated[
        list[str],
        Meta(
            description="Variables that commands get although they hold a secret or the address of an agent or a "
            "display, such as SSH_AUTH_SOCK for git over ssh."
        ),
    ] = []
    after_edit: Annotated[
        list[str],
        Meta(
            description="Commands that run without approval after a reply has edited files, such as "
            "'ruff format {*.py}' or 'pytest -q'; the model sees the result. {files} stands for the edited files, "
            "{*.py} for those of that name."
        ),
    ] = []
    after_edit_in: Annotated[
        dict[str, list[str]],
        Meta(description="The same for single folders and what is below, instead of the commands above."),
    ] = {}
    max_output_chars: Annotated[
        PositiveInt, Meta(description="Characters of a tool's output sent to the model; the rest is cut.")
    ] = 30_000
    ignore: Annotated[
        list[str], Meta(description="Paths that searches and listings skip, as .gitignore patterns.")
    ] = []
    commit_trailer: Annotated[
        bool,
        Meta(description="Ask the model to end commit messages with conversation and turn, for `blame`."),
    ] = False
    agents_md: Annotated[
        bool, Meta(description="Use AGENTS.md (else CLAUDE.md) of the workspace; you are asked once per repository.")
    ] = True


class McpServer(_Section, frozen=True):
    """An MCP server: a program, or an address.

    Attributes:
        type: Written by other programs; `url` decides.
    """

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    enabled: bool = True
    type: str = ""


class McpSettings(_Section, frozen=True):
    """MCP servers, whose tools the agent may call after you allowed each."""

    servers: Annotated[
        dict[str, McpServer],
        Meta(
            description="Servers by name: {command, args, env} or {url, headers}, and enabled: false. Values may refer "
            "to environment variables as ${NAME}, which is where secrets belong."
        ),
    ] = {}
    timeout: Annotated[Seconds, Meta(description="Seconds a call of an MCP tool may take.")] = 120.0
    project_file: Annotated[
        bool, Meta(description="Use the servers of the workspace's .mcp.json; you are asked once for each text.")
    ] = True


class HookCommand(_Section, frozen=True):
    """A command of a hook."""

    command: str
    type: Literal["command"] = "command"
    timeout: Seconds = 60.0


class HookMatcher(_Section, frozen=True):
    """Hooks for the tools that a pattern names; an empty pattern names all."""

    hooks: list[HookCommand]
    matcher: str = ""


Hook = list[HookMatcher]


class HookSettings(_Section, frozen=True):
    """Commands of yours that run at certain moments, in the form of Claude Code: {matcher, hooks: [{command}]}."""

    PreToolUse: Annotated[Hook, Meta(description="Before a tool call; may allow, ask or refuse.")] = []
    PostToolUse: Annotated[Hook, Meta(description="After a tool call; may add to its result.")] = []
    UserPromptSubmit: Annotated[Hook, Meta(description="Before a message; may refuse it or add to it.")] = []
    SessionStart: Annotated[Hook, Meta(description="Before a conversation's first message in this session.")] = []
    SessionEnd: Annotated[Hook, Meta(description="When the session ends.")] = []
    Stop: Annotated[Hook, Meta(description="When an answer ends; may have the agent go on.")] = []
    Notification: Annotated[Hook, Meta(description="When you are asked something.")] = []


class TuiSettings(_Section, frozen=True):
    """Appearance and behaviour of the screen."""

    theme: Annotated[
        str,
        Meta(
            description="auto, dark, light, ansi (the terminal's own colours), contrast-dark, contrast-light, mono, "
            "or the name of a Textual theme.",
            extra={"live": "theme"},
        ),
    ] = "auto"
    show_reasoning: Annotated[
        bool, Meta(description="Show the model's reasoning expanded.", extra={"live": "reasoning"})
    ] = False
    reduced_motion: Annotated[bool, Meta(description="No spinners and no animation.", extra={"live": "motion"})] = False
    plain: Annotated[
        bool,
        Meta(
            description="For screen readers and slow links: words instead of symbols, no frames, no automatic sidebar, "
            "few updates, no motion.",
            extra={"live": "plain"},
        ),
    ] = False
    sidebar: Annotated[
        bool,
        Meta(
            description="Show trace, memory and files next to the chat on screens of 120 columns or more.",
            extra={"live": "sidebar"},
        ),
    ] = True
    notify: Annotated[
        Literal["auto", "bell", "off"],
        Meta(
            description="Alert you when a question waits or a long answer is ready while the terminal is not focused: "
            "a desktop notification if the terminal supports them, else the bell.",
            extra={"live": "notify"},
        ),
    ] = "auto"
    terminal_title: Annotated[
        bool,
        Meta(description="Show the conversation and its state in the terminal's title, and progress where it can."),
    ] = True
    vim: Annotated[bool, Meta(description="Vim's keys in the prompt.", extra={"live": "vim"})] = False
    mouse: Annotated[
        bool, Meta(description="Use the mouse; false leaves it to the terminal, with its own selection and scrolling.")
    ] = True
    keymap: Annotated[
        dict[str, str],
        Meta(description="Your own key bindings: command id to key, e.g. {stop: escape}.", extra={"live": "keys"}),
    ] = {}


class PersonaSettings(_Section, frozen=True):
    """The character of the agent."""

    default: Annotated[str, Meta(description="Persona of a new conversation.")] = "Assistant"


class UserSettings(_Section, frozen=True):
    """You, the user."""

    name: Annotated[
        str, Meta(description="Name the agent may call you; empty: git's global user.name, else your login name.")
    ] = ""


class RecentSettings(_Section, frozen=True):
    """Newest turns, which are sent as they were once the conversation no longer fits."""

    max_chars: Annotated[
        PositiveInt | None,
        Meta(description="Maximum length of these turns together, in characters; null: as many as fit."),
    ] = None
    max_turns: Annotated[
        PositiveInt | None, Meta(description="Maximum number of these turns; null: as many as fit.")
    ] = None


class SummarizationSettings(_Section, frozen=True):
    """Summaries in levels."""

    enabled: Annotated[bool, Meta(description="Write summaries.")] = True
    every_turns: Annotated[PositiveInt, Meta(description="Turns without a summary after which an L1 is due.")] = 5
    every_chars: Annotated[
        PositiveInt, Meta(description="Characters of turns without a summary after which an L1 is due.")
    ] = 10_000
    keep_recent_turns: Annotated[int, Meta(ge=0, description="Newest turns that are never summarised.")] = 2
    level_chars: Annotated[
        PositiveInt, Meta(description="Characters of one level after which a summary of the next level is due.")
    ] = 10_000
    model: Annotated[
        str,
        Meta(
            description="Model for titles and summaries, such as a fast and cheap one; empty: the conversation's own."
        ),
    ] = ""


class RecallSettings(_Section, frozen=True):
    """Automatic recall of earlier turns."""

    strategy: Annotated[
        Literal["hybrid", "recent", "relevant"],
        Meta(description="Past turns to send: by relevance and recency, only the newest, or only relevant ones."),
    ] = "hybrid"
    scope: Annotated[
        Literal["workspace", "all", "none"],
        Meta(description="Other conversations to search: those of this workspace, all, or none."),
    ] = "workspace"
    max_tokens: Annotated[PositiveInt, Meta(description="Maximum number of tokens of recalled turns in a request.")] = (
        3_000
    )
    max_summaries: Annotated[int, Meta(ge=0, description="Maximum number of summaries recalled in a request.")] = 5
    min_score: Annotated[
        float,
        Meta(
            ge=-1,
            le=1,
            description="Cosine similarity that counts as similar. Something is recalled if it is that similar to a "
            "message, or less so with rare words in common; 0 recalls for every message.",
        ),
    ] = 0.3
    level_boost: Annotated[
        dict[int, float],
        Meta(description="Factor on a summary's score by level; higher levels use the highest one given."),
    ] = msgspec.field(default_factory=lambda: {1: 1.0, 2: 1.1, 3: 1.2})
    recency_boost: Annotated[Share, Meta(description="Share of a summary's score that fades with age.")] = 0.5
    recency_decay_days: Annotated[
        float, Meta(gt=0, description="Days after which that share has fallen to a third.")
    ] = 7.0
    other_conversations_share: Annotated[
        Share, Meta(description="Maximum share of recall for other conversations while this one needs the space.")
    ] = 0.4


class EmbeddingSettings(_Section, frozen=True):
    """Embeddings for search by meaning."""

    enabled: Annotated[bool, Meta(description="Search by meaning in addition to words.")] = True
    model: Annotated[
        str,
        Meta(
            description="LiteLLM embedding model; empty: the local multilingual one. "
            "A model of the chat model's provider uses model.api_base and model.api_key too."
        ),
    ] = ""
    dimension: Annotated[PositiveInt, Meta(description="Length of the model's vectors.")] = 512


class PersistenceSettings(_Section, frozen=True):
    """Storage of turns."""

    type: Annotated[
        Literal["graph", "hybrid"],
        Meta(
            description="graph stores everything in the graph; hybrid stores the texts of new messages, tool calls and "
            "results in files on this machine. `ragforge-chat graph contents --to files` (or graph) moves older ones."
        ),
    ] = "graph"
    auto_save: Annotated[bool, Meta(description="Store a reply's text while it streams; off: once it is complete.")] = (
        True
    )


class ExportSettings(_Section, frozen=True):
    """Files written in real time, in addition to the graph."""

    enabled: Annotated[bool, Meta(description="Write each conversation to files as it grows.")] = False
    path: Annotated[
        str,
        Meta(description="Folder of the exports, relative to the workspace; empty: exports in the data folder."),
    ] = ""
    format: Annotated[
        Literal["json", "markdown", "both"], Meta(description="conv-<uuid>.json, conv-<uuid>.md, or both.")
    ] = "json"
    on_every_message: Annotated[
        bool, Meta(description="Write while a turn is running too, not only when it has ended.")
    ] = True

    def folder(self, data: str, workspace: str) -> Path:
        """Return the folder of the exports.

        Args:
            data: The program's data folder.
            workspace: Parent of a relative folder; empty for the folder the program was started in.
        """
        chosen = Path(self.path).expanduser() if self.path else Path(data) / "exports"
        return Path(workspace or Path.cwd()) / chosen


Remembering = Literal["ask", "note", "never"]


class MemorySettings(_Section, frozen=True):
    """The agent's memory."""

    enabled: Annotated[bool, Meta(description="Use the memory; without it only the newest messages are sent.")] = True
    remember: Annotated[
        Remembering,
        Meta(
            description="What the agent may remember with its tool `remember`: ask you about each text, note it and "
            "say so, or never: then the tool is not offered, and no wish is stored when you state it, though summaries "
            "may note one."
        ),
    ] = "ask"
    max_context_chars: Annotated[
        PositiveInt | None,
        Meta(
            description="Budget for the past in a request, four characters a token; null: 60 % of the window, less "
            "the instructions and the answer."
        ),
    ] = None
    max_context_messages: Annotated[
        PositiveInt | None, Meta(description="Maximum number of past messages in a request; null: no limit.")
    ] = None
    recent: RecentSettings = RecentSettings()
    summarization: SummarizationSettings = SummarizationSettings()
    recall: RecallSettings = msgspec.field(default_factory=RecallSettings)
    embeddings: EmbeddingSettings = EmbeddingSettings()
    persistence: PersistenceSettings = PersistenceSettings()
    export: ExportSettings = ExportSettings()


class CodeSettings(_Section, frozen=True):
    """The index of the workspace's code: its functions, classes and texts, and what refers to what."""

    enabled: Annotated[bool, Meta(description="Index the workspace in the background and keep the index current.")] = (
        True
    )
    max_files: Annotated[PositiveInt, Meta(description="Maximum number of files to index.")] = 20_000
    max_file_bytes: Annotated[PositiveInt, Meta(description="Files above this size are left out.")] = 500_000
    watch: Annotated[
        bool, Meta(description="Watch the workspace while the chat runs; off: index its state at the start only.")
    ] = True
    describe: Annotated[
        bool,
        Meta(
            description="Let the model write a line on what users would call the code that turns touch, so that it is "
            "found in other words than its own."
        ),
    ] = True


class AgentSettings(_Section, frozen=True):
    """The agent."""

    instructions: Annotated[
        str,
        Meta(
            description="Text sent to the model in place of the program's own instructions; persona and AGENTS.md are "
            "sent in any case. Empty: the built-in ones, which /context shows."
        ),
    ] = ""
    code: CodeSettings = CodeSettings()
    memory: MemorySettings = msgspec.field(default_factory=MemorySettings)


class Settings(_Section, frozen=True):
    """All settings. A section's docstring is its heading in config.example.yaml."""

    model: ModelSettings = ModelSettings()
    graph: GraphSettings = GraphSettings()
    engine: EngineSettings = EngineSettings()
    tools: ToolSettings = msgspec.field(default_factory=ToolSettings)
    mcp: McpSettings = msgspec.field(default_factory=McpSettings)
    hooks: HookSettings = msgspec.field(default_factory=HookSettings)
    tui: TuiSettings = msgspec.field(default_factory=TuiSettings)
    personas: PersonaSettings = PersonaSettings()
    user: UserSettings = UserSettings()
    agent: AgentSettings = msgspec.field(default_factory=AgentSettings)


class Loaded(msgspec.Struct, kw_only=True, frozen=True):
    """Settings with the source of each value.

    Attributes:
        origins: Dotted key path to the source ("--model", "RAGFORGE_MODEL", a file's path); absent: default.
        workspace: The folder the agent works in, absolute, symlinks resolved.
        config_file: Path of the user's settings file, even if it does not exist; empty: no file was searched for.
    """

    settings: Settings
    paths: Paths
    workspace: str
    origins: dict[str, str] = {}
    config_file: str = ""
