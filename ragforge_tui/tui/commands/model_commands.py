"""Commands that connect providers and choose the model that answers.

Screens are imported when first used.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import ModelChanged
from ragforge_tui.shared.model_help import WAYS_TO_A_MODEL, WITHOUT_MODEL
from ragforge_tui.shared.requests.models import Connected, DisconnectProvider, ListProviders, ProviderInfo
from ragforge_tui.shared.requests.work import EffortState, FetchEffort, ListModels, SetModel
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.widgets.choice_list import Choice

COMMANDS = Commands("Models")

PROVIDERS = "Providers"
EFFORTS = ("none", "low", "medium", "high")
DEFAULT = "default"
SERVERS = "Servers, here or elsewhere"


@COMMANDS.add("model", "Choose the model that answers next", arguments="[NAME]", completes="models")
async def use_model(host: Host, name: str) -> None:
    """Use a model from the next turn on; without a name, show a list."""
    if name:
        await _set_model(host, SetModel(name=name))
        return
    session = host.session
    found = await session.ask(ListModels())
    if set(found) <= {"offline"}:
        session.notice(f"No language model was found. To get one: {', '.join(WAYS_TO_A_MODEL)}.")
        return
    _pick_model(host, found, "Models", "", "")


def _pick_model(host: Host, names: Sequence[str], title: str, provider: str, url: str) -> None:
    """Show models to pick from; the picked one is used."""
    from ragforge_tui.tui.sessions.session_list_model import model_rows
    from ragforge_tui.tui.widgets.list_screen import Picker

    async def rows() -> list[Choice]:
        return model_rows(names, host.session.state.model)

    def picked(name: str) -> None:
        request = SetModel(name=name, provider=provider, url=url)
        host.session.spawn(_set_model(host, request), group="model", exclusive=True)

    host.open_screen(Picker(title, rows, empty="no model was found", verb="use"), picked)


async def _set_model(host: Host, request: SetModel) -> None:
    """Use a model that works; help with one that lacks a key or does not answer now."""
    session = host.session
    if request.name != "offline" and not request.unchecked:
        host.hint("checking the model …")
    try:
        changed = await session.ask(request)
    except RagforgeError as error:
        if error.info.kind == "unreachable":
            _offer_unreachable(host, request, error)
        elif error.info.kind in ("not_configured", "bad_key") and (prefix := _provider_named(request)):
            await _connect_to(host, prefix, error)
        elif session.state.model is None or session.state.model.error != error.info:
            raise  # else the event of the change has told it
        return
    session.model_changed(changed)
    session.changed()
    session.notice(changed_text(changed))


def _provider_named(request: SetModel) -> str:
    return request.provider or request.name.partition("/")[0]


def _offer_unreachable(host: Host, request: SetModel, error: RagforgeError) -> None:
    """Ask whether to use a model whose server does not answer now."""
    from ragforge_tui.tui.questions.question_panel import Question

    def answer(decision: str, _: str) -> None:
        if decision == "yes":
            kept = SetModel(name=request.name, provider=request.provider, url=request.url, unchecked=True)
            host.session.spawn(_set_model(host, kept), group="model", exclusive=True)

    title = f"{error.info.what} Use {one_line(request.name)} anyway?"
    answers = [Choice("yes", "yes, it will answer later", mark="y"), Choice("no", "no", mark="n")]
    host.ask_user(Question(f"model:{request.name}", "text", title, error.info.todo, answers, answer))


@COMMANDS.add("connect", "Connect a provider: its key is checked and stored", arguments="[PROVIDER]", opens=True)
async def connect(host: Host, wanted: str) -> None:
    """Ask for the key of a provider, or the address of a server; without one, show a list."""
    from ragforge_tui.tui.widgets.list_screen import Picker

    providers = await host.session.ask(ListProviders())
    if wanted:
        name = wanted.strip().casefold()
        found = [one for one in providers if name in (one.id, one.title.casefold(), one.url.casefold())]
        if not found:
            known = ", ".join(dict.fromkeys(one.id for one in providers))
            raise RagforgeError(f"There is no provider {wanted.split()[0]!r}.", todo=f"/connect takes {known}.")
        open_connect(host, found[-1])
        return

    async def rows() -> list[Choice]:
        return [provider_row(number, one) for number, one in enumerate(providers)]

    def picked(key: str) -> None:
        open_connect(host, providers[int(key)])

    host.open_screen(Picker("Connect a provider", rows, empty="none", verb="connect"), picked)


def provider_row(number: int, provider: ProviderInfo) -> Choice:
    """Return a provider as a row, with where its key comes from."""
    state = provider.key_from or ("answers on this machine" if provider.running else "")
    state = state or ("connected" if provider.stored else "needs a key" if provider.needs_key else "")
    heading = SERVERS if provider.asks_url else PROVIDERS
    return Choice(str(number), one_line(provider.title), one_line(state), heading=heading)


async def _connect_to(host: Host, provider_id: str, error: RagforgeError) -> None:
    """Ask for the key that a model lacks, in the dialog of its provider."""
    providers = await host.session.ask(ListProviders())
    found = next((one for one in providers if one.id == provider_id), None)
    if found is None:
        raise error
    open_connect(host, found, why=error.info.what)


def open_connect(host: Host, provider: ProviderInfo, *, why: str = "") -> None:
    """Show the dialog of a provider, then its models."""
    from ragforge_tui.tui.dialogs.connect_screen import ConnectScreen

    def connected(result: Connected) -> None:
        host.session.notice(result.kept)
        title = f"Models · {one_line(provider.title)}"
        _pick_model(host, result.models, title, result.provider, result.url)

    host.open_screen(ConnectScreen(host, provider, why=why), connected)


@COMMANDS.add("disconnect", "Remove a stored key or server", arguments="[PROVIDER]", opens=True, removes=True)
async def disconnect(host: Host, wanted: str) -> None:
    """Remove the connection of a provider; without one, show the stored ones."""
    from ragforge_tui.tui.widgets.list_screen import Picker

    stored = [one for one in await host.session.ask(ListProviders()) if one.stored]
    if not stored:
        host.session.notice("No key and no server is stored.")
        return
    if wanted:
        name = wanted.strip().casefold()
        found = [one for one in stored if name in (one.id, one.title.casefold(), one.url.casefold())]
        if not found:
            raise RagforgeError(f"Nothing is stored for {wanted!r}.", todo="/disconnect lists what is.")
        await _remove(host, found[0])
        return

    async def rows() -> list[Choice]:
        return [provider_row(number, one) for number, one in enumerate(stored)]

    def picked(key: str) -> None:
        host.session.spawn(_remove(host, stored[int(key)]), group="disconnect", exclusive=True)

    host.open_screen(Picker("Remove a stored key or server", rows, empty="none", verb="remove it"), picked)


async def _remove(host: Host, provider: ProviderInfo) -> None:
    url = provider.url if provider.asks_url else ""
    host.session.notice(await host.session.ask(DisconnectProvider(provider=provider.id, url=url)))


@COMMANDS.add(
    "effort",
    "Set how much the model thinks before it answers",
    ("think",),
    arguments="[LEVEL]",
    completes=(*EFFORTS, DEFAULT),
)
async def set_effort(host: Host, wanted: str) -> None:
    """Change how much the model thinks, from the next request on; without a word, say how much it does."""
    session = host.session
    if wanted and wanted not in (*EFFORTS, DEFAULT):
        raise RagforgeError(f"There is no effort {wanted!r}.", todo=f"/effort takes {', '.join((*EFFORTS, DEFAULT))}.")
    if wanted:
        await session.change_model_setting("reasoning_effort", None if wanted == DEFAULT else wanted)
    session.notice(effort_text(await session.ask(FetchEffort()), changed=bool(wanted)))


def effort_text(state: EffortState, *, changed: bool) -> str:
    """Return how much the model thinks as a sentence."""
    model = one_line(state.model)
    if not state.taken:
        kept = f" {state.effort.capitalize()} is kept for a model that does." if state.effort else ""
        return f"{model} does not take an effort; it thinks as it does.{kept}"
    if not state.effort:
        return f"{model} thinks as much as its provider lets it by default."
    return f"{model} thinks with effort {state.effort}{' from the next request on' if changed else ''}."


def changed_text(model: ModelChanged) -> str:
    """Return what a change of the model means; for the offline assistant also how to get a language model."""
    if model.offline:
        return f"From the next message on, {WITHOUT_MODEL}. To get a language model: {', '.join(WAYS_TO_A_MODEL)}."
    where = f" ({model.destination})" if model.destination else ""
    return f"{model.name}{where} answers from the next message on."
