"""What is ours never raises into the host: it is said once, and costs records only."""

from __future__ import annotations

import contextlib
import logging

from stopcause.agui import told
from stopcause.receipts import capture

log = logging.getLogger("stopcause")

_said: set[object] = set()  # what this process has been told once


def failed(where: str, error: Exception) -> None:
    """Something of ours went wrong: said once a process for each type, and on the next record."""
    with contextlib.suppress(Exception):  # a log handler of the host's, say
        once(type(error), "stopcause: an AG-UI stream is watched no more (%s in %s)", type(error).__name__, where)
        if (writer := capture.writer()) is not None:
            writer.say("hook_failed", f"{told.ADAPTER}:{where}")


def once(what: object, message: str, *words: object) -> None:
    """A warning that this process is given once."""
    if what not in _said:
        _said.add(what)
        log.warning(message, *words)
