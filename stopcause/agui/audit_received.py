"""What the agent made of the answers that it got (R70 to R88)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from stopcause.agui.scene import Scene

RULES: Mapping[str, Callable[[Scene], Iterable[str]]] = {}
