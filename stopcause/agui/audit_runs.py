"""What a run says of itself beside what it did.

Rules: R14, R25, R45, R78, R94.

What its events show while they come is told by `closing` and `promises`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from stopcause.agui.scene import Scene
from stopcause.agui.schemas import offers_edits
from stopcause.agui.values import NOTHING, Interrupt, Json
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.receipts.vocabulary import ABORTED, NO_PROGRESS, ApprovalKind, StopCause

_SNAPSHOTS = frozenset({"STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"})
# Limits that a producer enforces. That a model ends where its output does, nobody meant.
_LIMITS = {StopCause.STEP_LIMIT, StopCause.TOKEN_BUDGET, StopCause.COST_BUDGET, StopCause.TIME_LIMIT}
_ON_PURPOSE = ABORTED | NO_PROGRESS | _LIMITS


def input_no_version(scene: Scene) -> Iterable[str]:
    """Both say which version they speak: the consumer on its input (spec 1.0, basic/versioning)."""
    given = scene.run.input
    if given is None or given.is_echo:  # an agent may leave out what it echoes
        return []
    is_untold = given.protocol_version is None and scene.run.protocol_version is not None
    return [scene.run.run_id] if is_untold else []


def stop_as_success(scene: Scene) -> Iterable[str]:
    """A run that was stopped on purpose closes as cancelled (spec 1.0, events/lifecycle). Its receipt says that it was.

    Before 1.0 there was no such outcome.
    """
    return [scene.run.run_id] if scene.run.ending is Ending.SUCCESS and scene.run.cause in _ON_PURPOSE else []


def stop_as_error(scene: Scene) -> Iterable[str]:
    """The same rule: by the code of its RUN_ERROR somebody aborted it. One that cannot close what is open may."""
    return [scene.run.run_id] if scene.run.ending is Ending.ERROR and scene.run.cause in ABORTED else []


def subagent_failed_handled(scene: Scene) -> Iterable[str]:
    """A SUBAGENT_ERROR ends an invocation, and not the run (spec 1.0, events/subagents)."""
    return [scene.run.run_id] if scene.run.ending is Ending.SUCCESS and scene.run.subagents.failed else []


def no_boundary_snapshot(scene: Scene) -> Iterable[str]:
    """State and messages stand before the RUN_FINISHED that asks (contract before 1.0, state at the boundary).

    Of one that asks by CUSTOM events beside it no text says so.
    """
    seen = scene.run.counts
    asks = scene.run.ending is Ending.INTERRUPT and scene.run.mode is not Mode.LEGACY_CUSTOM and bool(seen)
    return [scene.run.run_id] if asks and not seen.keys() >= _SNAPSHOTS else []


def capability_mismatch(scene: Scene) -> Iterable[str]:
    """What is declared informs, and the stream counts (spec 1.0, basic/capabilities). What is left out is no no."""
    declared = _declared(scene.capabilities)
    asked = scene.run.interrupts if scene.run.ending is Ending.INTERRUPT else ()
    return [f"humanInTheLoop.{name}" for name, is_other in _OTHERWISE.items() if asked and is_other(declared, asked)]


def _declared(capabilities: Json) -> Mapping[str, Json]:
    human = capabilities.get("humanInTheLoop") if isinstance(capabilities, dict) else None
    return human if isinstance(human, dict) else NOTHING


def _asks_otherwise(declared: Mapping[str, Json], asked: Sequence[Interrupt]) -> bool:
    said = declared.get("interrupts")
    return said is False or (said is True and all(each.channel is not Channel.OUTCOME for each in asked))


def _offers_no_edits(declared: Mapping[str, Json], asked: Sequence[Interrupt]) -> bool:
    """It would take edits of every call that it asks about, and the schema of a question says nothing of them."""
    if declared.get("approveWithEdits") is not True:
        return False
    calls = (each for each in asked if each.kind is ApprovalKind.TOOL_CALL and each.channel is Channel.OUTCOME)
    return not all(offers_edits(each.schema) for each in calls)


_OTHERWISE: Mapping[str, Callable[[Mapping[str, Json], Sequence[Interrupt]], bool]] = {
    "interrupts": _asks_otherwise,
    "approveWithEdits": _offers_no_edits,
}


RULES: Mapping[str, Callable[[Scene], Iterable[str]]] = {
    "INPUT_NO_VERSION": input_no_version,
    "STOP_AS_SUCCESS": stop_as_success,
    "STOP_AS_ERROR": stop_as_error,
    "SUBAGENT_FAILED_HANDLED": subagent_failed_handled,
    "NO_BOUNDARY_SNAPSHOT": no_boundary_snapshot,
    "CAPABILITY_MISMATCH": capability_mismatch,
}
