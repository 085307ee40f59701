"""What is noted of waits: that a run stops for one, what was decided, and that the gated call ran.

A wait is open until something is decided on it: in this run, which then went on, or by a run that resumes this one.
Most frameworks stop to wait, and the receipt tells it. Where one waits without stopping, the wait is recorded at once,
and so is what becomes of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stopcause.receipts import ids
from stopcause.receipts.causes import Rank
from stopcause.receipts.notes import MOST_NOTED, Notes, harmless, word_of
from stopcause.receipts.vocabulary import WAITING, ApprovalKind, Boundary, Decision, StopCause

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_LATEST_NS = 253_402_300_800 * 1_000_000_000  # the year 10000, which no date can have
_WAIT_CAUSES: dict[ApprovalKind | None, StopCause] = {
    ApprovalKind.INPUT_REQUIRED: StopCause.INPUT_PENDING,
    ApprovalKind.EXTERNAL: StopCause.EXTERNAL_PENDING,
}


class Waits(Notes):
    """The waits of a run."""

    if TYPE_CHECKING:

        @property
        def run_id(self) -> str:
            """Its id, which `run` makes."""

    @harmless
    def waiting(  # noqa: PLR0913 - what can be known of a wait
        self,
        approval_id: str | None = None,
        kind: str = ApprovalKind.TOOL_CALL,
        *,
        tool: str | None = None,
        tool_call_id: str | None = None,
        raised_by: str | None = None,
        owner: str | None = None,
        deadline: datetime | None = None,
        expires_at: datetime | None = None,
        resume_token: str | None = None,
        resumable: bool | None = None,
        boundary: Boundary = Boundary.CALL,
        metadata: object = None,
        at_once: bool = False,
        asked_ns: int | None = None,
    ) -> None:
        """It stops to wait for something that only the outside can give.

        Args:
            approval_id: What the answer will name. Without one it is numbered, so that the wait is not lost. Of one
                that is said twice, the last word counts.
            kind: A word of `ApprovalKind`.
            tool: The tool that is gated; one that the agent has.
            tool_call_id: The call that is gated.
            raised_by: The child that asked.
            owner: Who answers; without one the configured route says.
            deadline: Until when, softly.
            expires_at: Until when, at all.
            resume_token: What names the paused state; never a bearer secret.
            resumable: Whether the run can be resumed; observed, not hoped.
            boundary: Where it was seen.
            metadata: The framework's own; only the keys that `configure(approval_keys=...)` names are read.
            at_once: It waits without stopping: the wait has a record of its own now, and one for each thing that
                becomes of it.
            asked_ns: When it was asked, where that is not now: an engine runs its history again.
        """
        named, known = ids.id_text(approval_id), word_of(ApprovalKind, kind)
        asked = asked_ns if type(asked_ns) is int and 0 <= asked_ns < _LATEST_NS else None
        for name, given, taken in (
            ("approval_id", approval_id, named), ("kind", kind, known), ("asked_ns", asked_ns, asked),
        ):  # fmt: skip
            if given is not None and taken is None:
                self.find("refused_value", f"waiting.{name}")
        wait = {
            "approval_id": named,
            "kind": known,
            "tool": tool,
            "tool_call_id": tool_call_id,
            "raised_by": raised_by,
            "owner": owner,
            "deadline": deadline,
            "expires_at": expires_at,
            "resume_token": resume_token,
            "resumable": resumable,
            "at_ns": time.time_ns() if asked is None else asked,
        }
        if at_once:
            wait["at_once"] = True
        if self.config.approval_keys:
            wait |= _allowed(self.config.approval_keys, metadata)
        self._keep(wait)
        self.say(_WAIT_CAUSES.get(known, StopCause.APPROVAL_PENDING), Rank.SIGNAL, boundary)

    def _keep(self, wait: dict[str, Any]) -> None:
        """The newest of each id, up to a bound. One that is to be told at once is, while there is a run that waits."""
        named = wait["approval_id"]
        if any(each["approval_id"] == named for each in self.waits):  # else nothing is put back that threads may add to
            self.waits = tuple(each for each in self.waits if each["approval_id"] != named)
        if len(self.waits) >= MOST_NOTED:
            self.find("approvals_cut", None)
            return
        wait["approval_id"] = named or f"{self.run_id[:180]}/approval-{len(self.waits) + 1}"
        self.waits += (wait,)
        if "at_once" in wait and self.writer is not None and self.is_open:
            self.writer.asked(self, wait)

    @harmless
    def resumed(
        self, run_id: str | None = None, answers: Mapping[str, str | None] | Iterable[str] = (), *, attempt: int = 1
    ) -> None:
        """It resumes an attempt of a run that waited.

        Args:
            run_id: That run.
            answers: The approval ids that it answers, with the decisions if known.
            attempt: Which attempt of it waits.
        """
        if (named := ids.id_text(run_id)) is not None:
            self.resumes_run_id, self.resumes_attempt = named, attempt
        elif run_id is not None:
            self.find("refused_value", "resumes_run_id")
        given = (answers,) if isinstance(answers, str) else answers
        pairs = given.items() if isinstance(given, Mapping) else ((each, None) for each in given)
        for approval_id, decision in pairs:
            if self.is_started and decision is not None:  # a host's own block, whose start record is written
                self.decided(approval_id, decision)
            else:
                self._answer(approval_id, decision)

    @harmless
    def decided(self, approval_id: str, decision: str) -> None:
        """What was decided on a wait: on one of its own, and it goes on; or of the run that this one resumes.

        Of the latter the decisions that are known before the start belong into `resumed`.
        """
        if self._decided_here(approval_id, decision):
            return
        if self._answer(approval_id, decision) and self.writer is not None:
            named, known = self.answers[-1]
            self.writer.decided(self, named, str(known), time.time_ns())

    def _answer(self, approval_id: str, decision: str | None) -> bool:
        """Of an approval that is answered twice, the last word counts. Whether a decision is in it."""
        named, known = ids.id_text(approval_id), word_of(Decision, decision)
        if named is None or (decision is not None and known is None):
            self.find("refused_value", "answers" if named is None else "decision")
        if named is not None:
            kept = tuple(each for each in self.answers if each[0] != named)
            self.answers = (*kept[: MOST_NOTED - 1], (named, known))
        return named is not None and known is not None

    @harmless
    def executed(self, approval_id: str, run_id: str | None = None) -> None:
        """The call that an approval gated has run, in this run: the one that waited, or one that resumes it.

        Args:
            approval_id: The approval.
            run_id: The run that waited, where that is neither this one nor the one that it resumes.
        """
        if (named := ids.id_text(approval_id)) is None:
            self.find("refused_value", "executed")
            return
        if self._change_wait(named, executed=True):
            return
        if named not in self.ran and len(self.ran) < MOST_NOTED:
            self.ran += (named,)
        if self.writer is not None:
            self.writer.executed(self, named, ids.id_text(run_id), time.time_ns())

    @harmless
    def expired(self, approval_id: str) -> None:
        """Nobody answered one of its waits in time, and it goes on or ends with that."""
        if not self._settle(ids.id_text(approval_id), state="expired"):
            self.find("refused_value", "expired")

    @harmless
    def withdrawn(self, run_id: str, approval_id: str) -> None:
        """What another run waited for cannot be answered any more: this one goes on in its place."""
        if (named := ids.id_text(approval_id)) is None:
            self.find("refused_value", "withdrawn")
        elif self.writer is not None:
            self.writer.withdrawn(self, run_id, named, time.time_ns())

    def _decided_here(self, approval_id: str, decision: str) -> bool:
        """A decision on a wait of this run, which went on with it. Where none is open any more, it no longer waits."""
        known = word_of(Decision, decision)
        return known is not None and self._settle(
            ids.id_text(approval_id), state="decided", decision=known, decided_at=time.time_ns()
        )

    def _settle(self, approval_id: str | None, **facts: Any) -> bool:  # noqa: ANN401 - as `records` takes them
        """Whether there is such a wait, which is open no more. Where none is, it no longer waits."""
        if not self._change_wait(approval_id, **facts):
            return False
        if all("state" in wait for wait in self.waits):
            self.said = tuple(each for each in self.said if each.rank is not Rank.SIGNAL or each.cause not in WAITING)
        return True

    def _change_wait(self, approval_id: str | None, **facts: Any) -> bool:  # noqa: ANN401 - as `records` takes them
        """Whether there is such a wait. A new tuple of new values: the writer may be reading the old ones."""
        changed = [wait for wait in self.waits if wait["approval_id"] == approval_id]
        if approval_id is None or not changed:
            return False
        if "at_once" in changed[0] and self.writer is not None:
            self.writer.changed(self, approval_id, facts, time.time_ns())
        self.waits = tuple(wait | facts if wait["approval_id"] == approval_id else wait for wait in self.waits)
        return True


def _allowed(keys: Mapping[str, str], metadata: object) -> dict[str, Any]:
    """What the host allowed out of a framework's metadata: values by the names of ours, nothing else."""
    if not isinstance(metadata, dict):
        return {}
    found = {name: metadata.get(key) for name, key in keys.items()}
    return {name: value for name, value in found.items() if value is not None}
