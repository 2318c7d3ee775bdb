"""Selection of the current model: in the background at the start, by the user, or by the preference of a persona.

LiteLLM takes seconds to import; a turn that starts earlier waits here.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from ragforge_tui.conversation.model_windows import ModelWindows
from ragforge_tui.llm import (
    ChatModel,
    Connections,
    ListedModel,
    LiteLLMModel,
    ModelChoice,
    check_model,
    check_provider,
    choose_model,
    list_models,
    make_model,
    stated_window,
)
from ragforge_tui.personas import Persona
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ErrorInfo, RagforgeError
from ragforge_tui.shared.events import Event, ModelChanged, Notice
from ragforge_tui.shared.requests.work import EffortState

log = logging.getLogger(__name__)


class CurrentModel:
    """The model of one agent.

    Args:
        windows: Context windows of models, also learned ones.
        emit: Receives `ModelChanged`.
        connections: Addresses and keys that the user stored.
        own: Model of the program, used until the user chooses another.
    """

    def __init__(
        self,
        settings: ModelSettings,
        windows: ModelWindows,
        emit: Callable[[Event], None],
        connections: Connections,
        *,
        own: ChatModel | None = None,
    ) -> None:
        self._settings = settings
        self._connections = connections
        self._listed: dict[str, ListedModel] = {}
        """Models of the last list by name, which say where each is."""
        self._own = own
        self._windows = windows
        self._emit = emit
        self._model: ChatModel | None = None
        self._task: asyncio.Task[ChatModel] | None = None
        self._asking: asyncio.Task[None] | None = None
        """The question for the window of the model that was chosen last."""
        self._made: tuple[ModelChoice, ModelSettings] | None = None
        self.chosen = own is not None or bool(settings.name)
        """Whether the user named the model in the settings or here; a persona cannot replace it then."""
        self.preferred = ""
        """The model a persona requested; empty for the chosen or discovered one."""
        self.state = ModelChanged(phase="loading", name=settings.name if own is None else own.name)

    def start(self) -> None:
        """Start to choose and import the model; returns at once."""
        if self._task is None:
            self._task = asyncio.create_task(self._choose(self._settings), name="current-model")

    async def model(self, *, temperature: float | None = None) -> ChatModel:
        """Return the current model; `temperature` applies if the settings have none.

        Raises:
            RagforgeError: No model could be chosen.
        """
        self.start()
        assert self._task is not None
        model = await asyncio.shield(self._task)
        if temperature is None or model.offline or self._made is None or self._settings.temperature is not None:
            return model
        choice, settings = self._made
        return self._make(choice, msgspec.structs.replace(settings, temperature=temperature))

    async def choose(self, name: str, *, provider: str = "", url: str = "", unchecked: bool = False) -> ModelChanged:
        """Check the model that the user chose, then use it from the next turn on; see `change`.

        Args:
            provider: The connection it is chosen from, with its `url`; empty if the name, or the last list, says it.
            unchecked: Use it although its server does not answer.

        Raises:
            RagforgeError: That model cannot be used; the one before answers as before.
        """
        at = ListedModel(name, provider, url) if provider else self._listed.get(name, ListedModel(name))
        if name and not unchecked:
            try:
                settings = self._settings_of(at)
                await check_model(await self._choice(settings), settings, os.environ)
            except RagforgeError as error:
                self._say_kept(error, self.state)
                raise
        changed = await self.change(name, at)
        if at.provider and (self._connections.get(at.provider, at.url) is not None):
            await asyncio.to_thread(self._connections.choose, at.provider, at.url, name)
        return changed

    async def change(self, name: str, at: ListedModel | None = None) -> ModelChanged:
        """Use another model from the next turn on; an empty name selects the one discovered automatically.

        Choosing the current model again forgets the window that was learned for it.

        Args:
            at: Where it is; None if its name says it.

        Raises:
            RagforgeError: That model cannot be used; the one before answers as before.
        """
        at = at or ListedModel(name)
        task, made, state, chosen, preferred = self._task, self._made, self.state, self.chosen, self.preferred
        self.chosen = self._own is not None or bool(name)
        self.preferred = ""
        if task is None or state.phase != "ready":
            return await self._choose_again(at)
        try:
            return await self._choose_again(at, report=False)
        except RagforgeError as error:
            self._task, self._made, self.chosen, self.preferred = task, made, chosen, preferred
            self._set_state(state)
            self._say_kept(error, state)
            raise

    def _say_kept(self, error: RagforgeError, state: ModelChanged) -> None:
        if state.phase == "ready":
            error.info = msgspec.structs.replace(error.info, kept=f"The model is still {state.name}.")

    async def prefer(self, name: str, *, by: str) -> ModelChanged:
        """Use the model a persona prefers, or with an empty name return to the configured one."""
        self.preferred = name
        at = ListedModel(name or self._settings.name)
        return await self._use(at, f"preferred by the persona {by}" if name else "")

    async def _choose_again(self, at: ListedModel, *, report: bool = True) -> ModelChanged:
        """Use the model that the user chose; what was learned of its window is forgotten."""
        await self._use(at, "", report=report)
        model = await self.model()
        if self._windows.forget(model):
            self._show_window(model)
        return self.state

    def _show_window(self, model: ChatModel) -> None:
        self._set_state(msgspec.structs.replace(self.state, **self._window_fields(model)))

    def _window_fields(self, model: ChatModel) -> dict[str, Any]:
        learned = self._windows.learned_at(model)
        return {
            "context_window": self._windows.of(model),
            "window_learned": learned,
            "window_assumed": learned is None and isinstance(model, LiteLLMModel) and model.window_assumed,
        }

    def _settings_of(self, at: ListedModel) -> ModelSettings:
        """Return the settings with which a model is asked."""
        settings = msgspec.structs.replace(self._settings, name=at.name)
        if at.provider:
            return msgspec.structs.replace(settings, api_base=at.url, api_key="")
        return for_another(settings, self._settings.name)

    async def _use(self, at: ListedModel, origin: str, *, report: bool = True) -> ModelChanged:
        settings = self._settings_of(at)
        self._task = asyncio.create_task(self._choose(settings, origin, report=report), name="current-model")
        await self.model()
        return self.state

    def learn_window(self, model: ChatModel, tokens: int, *, named: bool) -> None:
        """Remember that a model reads fewer tokens than was assumed.

        Args:
            named: Whether the provider named the number.
        """
        self._windows.learn(model, tokens, named=named)
        if model.name == self.state.name:
            self._show_window(model)

    def update(self, **changes: Any) -> None:
        """Change settings of `LIVE_MODEL_SETTINGS`, by name, from the next request on."""
        self._settings = msgspec.structs.replace(self._settings, **changes)

    def _now(self) -> ModelSettings:
        return self._settings

    async def effort(self) -> EffortState:
        """Return how much the model thinks.

        Raises:
            RagforgeError: No model could be chosen.
        """
        model = await self.model()
        taken = isinstance(model, LiteLLMModel) and model.takes_effort
        return EffortState(model=model.name, effort=self._settings.reasoning_effort or "", taken=taken)

    async def fallback(self, tried: Collection[str]) -> ChatModel | None:
        """Return the first model of `model.fallbacks` that is not among the tried ones, None if there is none."""
        for name in self._settings.fallbacks:
            if name in tried:
                continue
            try:
                model = await self.other(name)
            except RagforgeError as error:
                log.warning("the fallback %s cannot be used: %s", name, error)
                continue
            if model.name not in tried:
                return model
        return None

    async def other(self, name: str) -> ChatModel:
        """Return a model next to the current one, such as the one for summaries.

        Raises:
            RagforgeError: Its stored key cannot be read.
        """
        settings = for_another(msgspec.structs.replace(self._settings, name=name), self._settings.name)
        return make_model(await self._choice(settings), settings, self._now)

    async def names(self) -> list[str]:
        listed = await list_models(self._settings, os.environ, connections=self._connections)
        self._listed = {model.name: model for model in listed}
        return list(self._listed)

    async def _choice(self, settings: ModelSettings) -> ModelChoice:
        return await choose_model(settings, os.environ, connections=self._connections)

    async def close(self) -> None:
        tasks = [task for task in (self._task, self._asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _choose(self, settings: ModelSettings, origin: str = "", *, report: bool = True) -> ChatModel:
        """Choose and make the model; unless it is not to be reported, a failure becomes the state."""
        try:
            model, origin = await self._made_model(settings, origin)
        except RagforgeError as error:
            if report:
                self._set_state(ModelChanged(phase="failed", name=settings.name, error=error.info))
            raise
        except Exception as error:
            log.exception("choosing a model failed")
            info = ErrorInfo(
                kind="model",
                what="The model client could not be loaded.",
                todo="See the log: run ragforge-chat doctor.",
            )
            self._set_state(ModelChanged(phase="failed", name=settings.name, error=info))
            raise RagforgeError(info.what, todo=info.todo, kind=info.kind) from error
        self._set_state(
            ModelChanged(
                phase="ready",
                name=model.name,
                origin=origin,
                destination=model.destination,
                offline=model.offline,
                **self._window_fields(model),
            )
        )
        return model

    async def _made_model(self, settings: ModelSettings, origin: str) -> tuple[ChatModel, str]:
        """Return the model and the origin of its choice; the program's own unless the user named another."""
        if self._own is not None and not settings.name:
            self._made = None
            return self._own, "given by the program"
        choice = await self._choice(settings)
        if origin:
            choice = msgspec.structs.replace(choice, origin=origin)
        if not choice.offline:
            self._set_state(ModelChanged(phase="loading", name=choice.name, origin=choice.origin))
        model = self._make(choice, settings)
        if not choice.offline:
            if settings.context_window is None:
                self._asking = asyncio.create_task(self._ask_window(choice, model), name="model-window")
            await check_provider(choice)
        self._made = choice, settings
        return model, choice.origin

    def _make(self, choice: ModelChoice, settings: ModelSettings) -> ChatModel:
        return make_model(choice, settings, self._now, self._windows)

    async def _ask_window(self, choice: ModelChoice, model: ChatModel) -> None:
        """Ask the model's server for its window; no answer waits for it."""
        tokens = await stated_window(choice, os.environ)
        if tokens is None:
            return
        self._windows.state(model, tokens)
        if self.state.phase == "ready" and model.name == self.state.name:
            self._show_window(model)

    def _set_state(self, state: ModelChanged) -> None:
        self.state = state
        self._emit(state)


def for_another(settings: ModelSettings, configured: str) -> ModelSettings:
    """Return settings with another model's name, without what belongs to the provider of the configured one.

    A base URL and key must not reach another provider.
    """
    name = settings.name
    if name == configured or "/" not in name or name.split("/")[0] == configured.split("/")[0]:
        return settings
    return msgspec.structs.replace(settings, api_base="", api_key="")


class PersonaModels:
    """Selection of the model and temperature that a persona prefers.

    The user's choice has priority: a model named by a setting, flag, variable or /model is never replaced, and neither
    is a temperature in the settings. A project's persona can only propose a model.
    """

    def __init__(self, current: CurrentModel, emit: Callable[[Event], None]) -> None:
        self._current = current
        self._emit = emit
        self._proposed: set[tuple[str, str]] = set()
        self._failed: set[str] = set()

    async def model_for(self, persona: Persona) -> ChatModel:
        """Return the model that answers as this persona.

        Raises:
            RagforgeError: No model could be chosen.
        """
        trusted = persona.origin != "project"
        preference = persona.fields.model
        if not self._current.chosen:
            await self._prefer(preference if trusted else "", persona)
        model = await self._current.model(temperature=persona.fields.temperature if trusted else None)
        if preference and preference != model.name:
            self._propose(persona, preference)
        return model

    async def _prefer(self, name: str, persona: Persona) -> None:
        if name in self._failed:
            name = ""
        if name == self._current.preferred:
            return
        try:
            await self._current.prefer(name, by=persona.name)
        except RagforgeError as error:
            self._failed.add(name)
            text = f"{persona.name} prefers the model {name}, which cannot be used: {error}"
            self._emit(Notice(text=text, level="warning"))
            await self._current.prefer("", by="")

    def _propose(self, persona: Persona, name: str) -> None:
        if (persona.digest, name) not in self._proposed:
            self._proposed.add((persona.digest, name))
            self._emit(Notice(text=f"{persona.name} prefers the model {name}; switch with /model {name}."))
