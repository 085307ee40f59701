"""What the application sent: answers, held against what its thread asks (R15, R34, R50 to R66)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from stopcause.agui.guard_rules import payload_faults
from stopcause.agui.resumes import Matched
from stopcause.agui.scene import Scene
from stopcause.agui.schema_budget import one_budget
from stopcause.agui.values import NOTHING, Json, Thread
from stopcause.agui.words import RESOLVED


def unfit(before: Thread, matched: Matched, payloads: Mapping[str, Json] | None) -> Mapping[str, tuple[str, ...]]:
    """What is wrong with the payloads of these answers: the name of a finding -> interrupts."""
    if payloads is None:
        return NOTHING
    about: dict[str, list[str]] = defaultdict(list)
    with one_budget():
        for place, entry in matched.taken.items():
            interrupt = before.raised[place].interrupt
            for name in payload_faults(interrupt, entry, payloads) if entry.status == RESOLVED else ():
                about[name].append(interrupt.id)
    return {name: tuple(ids) for name, ids in about.items()}


def run_id_reused(scene: Scene) -> Iterable[str]:
    """Running once more takes a new id (spec 1.0, basic/transports): under the old one there are two ends."""
    run = scene.run
    return [run.run_id] if run.input is not None and run.run_id in scene.before.runs else []


RULES: Mapping[str, Callable[[Scene], Iterable[str]]] = {
    "RUN_ID_REUSED": run_id_reused,
}
