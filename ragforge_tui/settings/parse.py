"""YAML parser for settings files: rejects duplicate keys and reports errors with file, line and column.

`load` imports it only if there is a file, because loading the parser would slow down the start.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from ragforge_tui.shared.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """Loader that rejects duplicate keys, where PyYAML silently keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key '{key_node.value}' appears twice", key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def parse_yaml(file: Path, text: str) -> Any:
    """Return the values of a file's text.

    Raises:
        ConfigError: The text is not valid YAML; the message states where.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{file}{where}: not valid YAML: {error.problem or error.context}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not valid YAML: {str(error) or type(error).__name__}.") from error
