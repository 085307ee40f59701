"""Claude Code: the program that its hooks run, for the `claude` command without the SDK.

    python -m stopcause.receipts.hooks.claude_code

reads on its standard input what the command says of an event, and leaves a receipt of the turn or sub-agent that is
over. It prints nothing, its exit code is 0 whatever happens, and it decides nothing: to Claude Code it is not there.

The command waits for its hooks, and kills those that are slow when a session ends. So this process is gone once it has
read the event, before anything large is imported; a child of its own does the rest (`events`).
"""

from __future__ import annotations

import json
import os
import sys


def main() -> int:
    """Takes the event and goes. Always 0: any other number would tell Claude Code to do something."""
    try:
        given = sys.stdin.buffer.read()
        if given and _is_child():
            work(given)
    except Exception:  # noqa: BLE001 - a system without room for another process: there is no receipt
        return 0
    return 0


def work(given: bytes) -> None:
    """Leaves the receipt. What goes wrong is an event, a transcript or a disk like no other: then there is none."""
    import logging

    from stopcause.receipts import capture
    from stopcause.receipts.hooks.claude_code import events

    logging.disable()  # what is printed may be shown to the user
    event = json.loads(given)
    if isinstance(event, dict) and not capture.is_off(events.NAME):
        events.handle(event)
        capture.flush()


def _is_child() -> bool:
    """A process that the command neither waits for nor knows: in a session of its own, without its standard streams."""
    if not hasattr(os, "fork"):  # Windows: the command waits
        return True
    if os.fork():
        return False
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    return True
