"""What a run says of itself beside what it did (R14, R45, R78, R94)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from stopcause.agui.scene import Scene

RULES: Mapping[str, Callable[[Scene], Iterable[str]]] = {}
