"""The built-in assistant: answers without any language model, from the files and the memory. Leans on `base`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

from ragforge_tui.llm.base import OFFLINE_NAME, Messages
from ragforge_tui.llm.parts import Finished, ModelPart, TextPart
from ragforge_tui.models import Usage


class OfflineAssistant:
    """A deterministic `ChatModel` that says plainly that it is not a language model."""

    name = OFFLINE_NAME
    context_window = 32_768
    offline = True
    destination = "this machine"

    async def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_prefix: int = 0
    ) -> AsyncGenerator[ModelPart, None]:
        """Answer in small pieces."""
        for piece in re.findall(r"\S+\s*", "I am the offline assistant, not a language model."):
            yield TextPart(piece)
            await asyncio.sleep(0)
        yield Finished(reason="stop", usage=Usage(cost_usd=0.0))

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """The first words of the last message."""
        return str(messages[-1].get("content", ""))[:200], Usage(cost_usd=0.0)
