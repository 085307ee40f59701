"""What a run says of itself beside what it did (R14, R25, R45, R78, R94).

What its events show while they come is told by `closing` and `promises`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from stopcause.agui.scene import Scene
from stopcause.agui.values import Json
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.receipts.vocabulary import ABORTED, StopCause

_SNAPSHOTS = frozenset({"STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"})
# Limits that a producer enforces. That a model ends where its output does, nobody meant.
_ON_PURPOSE = ABORTED | {StopCause.STEP_LIMIT, StopCause.TOKEN_BUDGET, StopCause.COST_BUDGET, StopCause.TIME_LIMIT}


def input_no_version(scene: Scene) -> Iterable[str]:
    """Both say which version they speak: the consumer on its input (spec 1.0, basic/versioning)."""
    given = scene.run.input
    is_untold = given is not None and given.protocol_version is None and scene.run.protocol_version is not None
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
    is_by_outcome = any(each.channel is Channel.OUTCOME for each in asked)
    is_other = declared is False or (declared is True and not is_by_outcome)
    return ["humanInTheLoop.interrupts"] if asked and is_other else []


def _declared(capabilities: Json) -> Json:
    human = capabilities.get("humanInTheLoop") if isinstance(capabilities, dict) else None
    return human.get("interrupts") if isinstance(human, dict) else None


RULES: Mapping[str, Callable[[Scene], Iterable[str]]] = {
    "INPUT_NO_VERSION": input_no_version,
    "STOP_AS_SUCCESS": stop_as_success,
    "STOP_AS_ERROR": stop_as_error,
    "SUBAGENT_FAILED_HANDLED": subagent_failed_handled,
    "NO_BOUNDARY_SNAPSHOT": no_boundary_snapshot,
    "CAPABILITY_MISMATCH": capability_mismatch,
}
