"""How many examples a law is tried on: all of them in `make check`, fewer in `make test`, which is to be quick."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hypothesis import settings

from stopcause.pipeline.cases import Case

IS_THOROUGH = "THOROUGH" in os.environ


def tried_on(count: int, **more: Any) -> settings:  # noqa: ANN401 - what hypothesis takes
    """The settings of a law that is tried on so many examples."""
    return settings(max_examples=count if IS_THOROUGH else max(count // 3, 10), **more)


def some_of(cases: Sequence[Case]) -> tuple[Case, ...]:
    """All that were written by hand, and of the recorded ones, which are many and much alike, each tenth."""
    recorded = [case.id for case in cases if {"ai_sdk", "frameworks"} & set(case.path.parts)]
    left_out = set() if IS_THOROUGH else set(recorded) - set(recorded[::10])
    return tuple(case for case in cases if case.id not in left_out)
