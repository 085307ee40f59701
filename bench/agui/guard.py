"""What the guard costs: a check and a sending, beside reading the input alone. Run by `python -m bench.agui.guard`.

CPU time, but for a sending, which waits for the disk.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.run import Figure, best
from stopcause.agui.guard import ResumeGuard
from stopcause.agui.inputs import read_input
from stopcause.agui.lifecycle import Watch
from stopcause.agui.values import RunSeen

_THREADS = 1_000
_SCHEMA = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object", "properties": {"to": {"type": "string", "format": "email"}}},
    },
    "required": ["approved"],
}
_ASKED = [{"id": f"i-{n}", "reason": "tool_call", "toolCallId": f"tc-{n}", "responseSchema": _SCHEMA} for n in range(3)]


def _paused(thread_id: str) -> RunSeen:
    watch = Watch()
    watch.take({"type": "RUN_STARTED", "threadId": thread_id, "runId": "r1", "protocolVersion": "1.0"})
    outcome = {"type": "interrupt", "interrupts": _ASKED}
    seen = watch.take({"type": "RUN_FINISHED", "threadId": thread_id, "runId": "r1", "outcome": outcome})
    return next(run for run in (*seen, *watch.close()) if isinstance(run, RunSeen))


def _answering(thread_id: str) -> dict[str, Any]:
    payload = {"approved": True, "editedArgs": {"to": "somebody@example.com"}}
    resume = [{"interruptId": each["id"], "status": "resolved", "payload": payload} for each in _ASKED]
    return {"threadId": thread_id, "runId": "r2", "messages": [], "tools": [], "context": [], "resume": resume}


def _each(work: Callable[[Any], object], values: list[Any]) -> Callable[[], None]:
    def turn() -> None:
        for each in values:
            work(each)

    return turn


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        guard = ResumeGuard(Path(folder) / "guard.db")
        for number in range(_THREADS):
            guard.saw(_paused(f"t{number}"))
        inputs = [_answering(f"t{number}") for number in range(_THREADS)]
        if any(guard.check(each).refused for each in inputs):
            raise SystemExit("the guard refuses what it has to pass")
        texts = [json.dumps(each) for each in inputs]
        works = (_each(json.loads, texts), _each(read_input, inputs), _each(guard.check, inputs))
        loads, reads, checks = best(works, _THREADS)
        (sends,) = best([_each(guard.sent, inputs)], _THREADS, turns=1, clock=time.perf_counter)
        print(f"{_THREADS} paused threads in a file; three answers an input, each held against its schema")
        print(Figure("read an input", "input", reads, "json.loads", loads))
        print(Figure("check it", "input", checks, "json.loads", loads))
        print(f"{'say that it is sent':<26} {sends:>12,.2f} us wall, on the disk when it returns")


if __name__ == "__main__":
    main()
