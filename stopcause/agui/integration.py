"""What stands between an agent and AG-UI, and in which version: by what the host says, else by what is loaded."""

from __future__ import annotations

import contextlib
import sys
from importlib import metadata
from typing import Any, Final

# The module of an integration -> the package that it comes with.
_KNOWN: Final = {
    "ag_ui_langgraph": "ag-ui-langgraph",
    "ag_ui_strands": "ag_ui_strands",
    "ag_ui_crewai": "ag-ui-crewai",
    "ag_ui_adk": "ag_ui_adk",
    "agent_framework_ag_ui": "agent-framework-ag-ui",
    "pydantic_ai.ui.ag_ui": "pydantic-ai-slim",
    "llama_index.protocols.ag_ui": "llama-index-protocols-ag-ui",
    "agno.os.interfaces.agui": "agno",
}
NAMES: Final = tuple(_KNOWN.values())


def integration(said: str | None, *, is_here: bool) -> dict[str, Any]:
    """The fields `framework` and `framework_version` of its records; none where it is not known.

    Args:
        said: A package, or `package@version`.
        is_here: Whether the agent is of this process: then the one known integration that is loaded is meant.
    """
    name, _, version = (_text(said) or (_loaded() if is_here else "")).partition("@")
    if not name:
        return {}
    return {"framework": name, "framework_version": version or _version(name)}


def _text(said: object) -> str:
    """What a host says that is no text says nothing: its runs are watched all the same."""
    return said if isinstance(said, str) else ""


def _loaded() -> str:
    """Several are none: nobody knows which of them answers."""
    found = [package for module, package in _KNOWN.items() if module in sys.modules]
    return found[0] if len(found) == 1 else ""


def _version(package: str) -> str | None:
    with contextlib.suppress(Exception):  # of a package that is not installed here, or says nothing of itself
        return metadata.version(package)
    return None
