"""How many examples a law is tried on: all of them in `make check`, a third in `make test`, which is to be quick."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

IS_THOROUGH = "THOROUGH" in os.environ


def tried_on(count: int, **more: Any) -> settings:  # noqa: ANN401 - what hypothesis takes
    """The settings of a law that is tried on so many examples."""
    return settings(max_examples=count if IS_THOROUGH else max(count // 3, 10), **more)
