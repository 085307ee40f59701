"""Which runs a change of policy can touch: by what a run is and how it ended, without judging it.

What each section of a policy is read for, and so which runs a change of it can touch:

    [[agents]]      `contract`: runs whose loop finished, where the two policies give another contract.
                    `stage`, `owner`, `on_bound`: no verdict; who is asked, and whether anybody is (see `Touch.labels`)
    [contracts.*]   strength, issuers, names of checks: runs that finished under it; `settle`: of those, recent ones.
                    A check's parameters say how to look, and touch no verdict that is there
    [[routes]]      `owner`, `due`, `on_expiry`: runs with an approval that is open, or past its expiry.
                    `escalate`, `deliver`: no verdict
    [verdicts]      runs with that stop cause
    [defaults]      stuck_after: runs that a time limit ended, or whose stream was cut off.
                    resume_due: runs with an open approval.
                    settle: recent runs.  clock_skew: any run.  unrouted_grace: no verdict
    [links], [policy]  no run

Where a row does not say enough (what the run declared itself, who it is when receipts disagree, which child asked), the
run counts as touched. A recent run is one whose last record is younger than the longest `settle` of the two policies.
Everything that is read here is the same under any policy, but for `contract`: rows have what the policy in force gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from stopcause.classifier.approvals import KEEPS_WAITING, Status
from stopcause.classifier.fold import Facts
from stopcause.classifier.policy import Contract, Policy, Route, Subject, matches
from stopcause.receipts import vocabulary
from stopcause.receipts.vocabulary import StopCause

_ROUTED = KEEPS_WAITING | {Status.OVER, Status.EXPIRED}  # where an approval stands by its route
_REMEMBERED = 20_000  # answers; an agent name in endless spellings must not fill the memory
_UNSURE = (None, StopCause.PROCESS_LOST)  # no receipt stands: a row then may not say what the outranked ones said
_TIMED = frozenset(map(str, (StopCause.TIME_LIMIT, StopCause.STREAM_TRUNCATED)))
_FINISHED = frozenset(map(str, vocabulary.FINISHED))
_DECLARED = object()  # a contract of the run's own that the row does not say


class Sketch(NamedTuple):
    """What decides which sections can touch a run. `waits`: kind and tool of the approvals that a route is read for."""

    subject: Subject
    contract: str | None
    cause: str | None
    waits: tuple[tuple[str, str | None], ...]
    recent: bool

    @property
    def sure(self) -> bool:
        """Whether the subject is all that the classifier knows of it."""
        return self.cause not in _UNSURE


def sketch_of(facts: Facts, longest_settle: timedelta) -> Sketch:
    """The sketch of an attempt, from its facts under the policy that stands for the one in force."""
    ended = facts.stop or facts.died
    newest = max(facts.last_at, ended.at) if ended else facts.last_at
    waits = tuple(sorted({(str(wait.kind), wait.tool) for wait in facts.waits if wait.status in _ROUTED}, key=str))
    cause = None if facts.cause is None else str(facts.cause)
    return Sketch(facts.subject, facts.contract_name, cause, waits, newest + longest_settle > facts.now)


class Touch:
    """Two policies, compared run by run.

    Args:
        old: What runs are judged by.
        new: What they might be judged by.
        in_force: The policy that the contracts of the sketches come from; None is `old`.
    """

    def __init__(self, old: Policy, new: Policy, in_force: Policy | None = None) -> None:
        self.old, self.new, self.in_force = old, new, in_force or old
        self.longest_settle = max(map(_longest_settle, (old, new)))
        self.moved = frozenset(map(str, old.failed_causes ^ new.failed_causes))
        self._names = {*old.contracts, *new.contracts}
        self._routes_differ = [_of_route(each) for each in old.routes] != [_of_route(each) for each in new.routes] or [
            each.match for each in old.routes
        ] != [each.match for each in new.routes]
        self._asks_child = any(each.match.raised_by not in (None, "*") for each in (*old.routes, *new.routes))
        # Remembered for each pair of policies, and let go with it.
        self.sections: Callable[[Sketch], tuple[str, ...]] = lru_cache(_REMEMBERED)(self._sections)
        self.labels: Callable[[Sketch], tuple[str, ...]] = lru_cache(_REMEMBERED)(self._labels)
        self.entry: Callable[[Subject], int | None] = lru_cache(_REMEMBERED)(lambda who: entry_of(new, who))

    def _sections(self, run: Sketch) -> tuple[str, ...]:
        """The changed sections that can give this run another verdict; empty: none can."""
        return tuple(dict.fromkeys([*self._contract(run), *self._route(run), *self._thresholds(run)]))

    def _labels(self, run: Sketch) -> tuple[str, ...]:
        """What an `[[agents]]` entry says of it, beside the verdict, that changes: `stage`, `owner`, `on_bound`."""
        if not run.sure:
            return ()
        before, after = self.old.agent(run.subject), self.new.agent(run.subject)
        changed = [name for name in ("owner", "on_bound") if getattr(before, name) != getattr(after, name)]
        return tuple([f"stage {after.stage}", *changed] if before.stage != after.stage else changed)

    # Contracts --------------------------------------------------------------------------------------------------------

    def _contract(self, run: Sketch) -> Iterator[str]:
        if run.cause not in _FINISHED:
            return
        before, after = self.old.agent(run.subject).contract, self.new.agent(run.subject).contract
        declared = _DECLARED if self.in_force.agent(run.subject).contract else run.contract
        one, other = before or declared, after or declared
        if before != after and one != other:
            number = self.entry(run.subject)
            yield f"agents[{entry_of(self.old, run.subject)}] of before" if number is None else f"agents[{number}]"
        elif one is _DECLARED:
            for name in sorted(self._names):
                yield from self._of_contract(name, run)
        elif one is not None:
            yield from self._of_contract(str(one), run)

    def _of_contract(self, name: str, run: Sketch) -> Iterator[str]:
        before, after = self.old.contract(name), self.new.contract(name)
        if before is None or after is None or before is after:
            return
        settles = run.recent and before.settle != after.settle
        if settles or _of_contract(before) != _of_contract(after):
            yield f"contracts.{name}"

    # Approvals --------------------------------------------------------------------------------------------------------

    def _route(self, run: Sketch) -> Iterator[str]:
        if not run.waits or not self._routes_differ:
            return
        if not run.sure or self._asks_child:
            yield "routes"
            return
        for kind, tool in run.waits:
            asked = run.subject._replace(kind=kind, tool=tool)
            before, after = self.old.route(asked), self.new.route(asked)
            if _of_route(before) != _of_route(after):
                yield "routes" if after is None else f"routes[{self.new.routes.index(after)}]"

    # Thresholds -------------------------------------------------------------------------------------------------------

    def _thresholds(self, run: Sketch) -> Iterator[str]:
        if run.cause in self.moved:
            yield f"verdicts.{run.cause}"
        concerned = {
            "stuck_after": run.cause in _TIMED,
            "resume_due": bool(run.waits),
            "settle": run.recent,
            "clock_skew": True,
        }
        for name, concerns in concerned.items():
            if concerns and getattr(self.old.defaults, name) != getattr(self.new.defaults, name):
                yield f"defaults.{name}"


def entry_of(policy: Policy, subject: Subject) -> int | None:
    """The place of the first `[[agents]]` entry that matches."""
    found = (number for number, entry in enumerate(policy.agents) if matches(entry.match, subject))
    return next(found, None)


def _longest_settle(policy: Policy) -> timedelta:
    named = [each.settle for each in policy.contracts.values() if each.settle is not None]
    return max(policy.defaults.settle, *named) if named else policy.defaults.settle


def _of_contract(contract: Contract) -> tuple[Any, ...]:
    """What of a contract a verdict is made of. How a check looks at the destination is not in it."""
    return contract.min_strength, contract.issuers, {check.check for check in contract.checks}


def _of_route(route: Route | None) -> tuple[Any, ...]:
    """What of a route a verdict is made of; no route gives what an empty one gives."""
    return (None, None, "STUCK") if route is None else (route.owner, route.due, route.on_expiry)


def changed_sections(old: Policy, new: Policy) -> tuple[str, ...]:
    """The names of what two policies say otherwise, whether it touches a run or not."""
    found = [name for name in ("agents", "routes", "links") if getattr(old, name) != getattr(new, name)]
    names = [*old.contracts, *(name for name in new.contracts if name not in old.contracts)]
    found += [f"contracts.{name}" for name in names if old.contracts.get(name) != new.contracts.get(name)]
    found += [f"verdicts.{cause}" for cause in sorted(old.failed_causes ^ new.failed_causes)]
    defaults = type(old.defaults).model_fields
    found += [f"defaults.{name}" for name in defaults if getattr(old.defaults, name) != getattr(new.defaults, name)]
    return tuple(found)
