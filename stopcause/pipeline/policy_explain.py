"""Which entries of a policy hold for a run and for an approval of it, and why the ones before them do not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from stopcause.classifier.policy import DEFAULT_POLICY, AgentEntry, Policy, Route, Subject, matches
from stopcause.pipeline.policy_diff import policy_name
from stopcause.pipeline.policy_file import Checked, check_policy, usable
from stopcause.render.policy import ContractSaid, Explanation, Tried

_OF_APPROVAL = ("kind", "tool", "raised_by")
_DAY, _HOUR, _MINUTE = 86400, 3600, 60


def explanation_of(path: Path | None, subject: Subject) -> Explanation:
    """What a policy says of a subject.

    Args:
        path: A policy file or folder; None is the built-in defaults.
        subject: What the run says of itself; with `kind`, `tool` or `raised_by`, an approval of it.

    Raises:
        InputError: No such policy.
        PolicyError: It has faults.
    """
    checked = Checked(DEFAULT_POLICY, ()) if path is None else check_policy(path)
    policy = usable(checked)
    entry = policy.agent(subject)
    asked = any(getattr(subject, name) is not None for name in _OF_APPROVAL)
    route = policy.route(subject) if asked else None
    return Explanation(
        policy=policy_name(policy),
        path=str(path) if path else "the built-in defaults",
        subject=tuple((key, value) for key, value in subject._asdict().items() if value is not None),
        entries=_tried("agents", policy.agents, subject, checked),
        stage=entry.stage,
        owner=entry.owner,
        on_bound=entry.on_bound,
        contract=_contract(policy, entry.contract, checked),
        asked=asked,
        routes=_tried("routes", policy.routes, subject, checked) if asked else (),
        route=_route(route) if route else (),
    )


def _tried(
    section: str, entries: Sequence[AgentEntry | Route], subject: Subject, checked: Checked
) -> tuple[Tried, ...]:
    """The entries up to the first that matches."""
    tried: list[Tried] = []
    for number, entry in enumerate(entries):
        asked = tuple((key, pattern, getattr(subject, key)) for key, pattern in entry.match if pattern is not None)
        fits = tuple(matches(type(entry.match)(**{key: pattern}), subject) for key, pattern, _value in asked)
        tried.append(Tried(f"{section}[{number}]", checked.where(section, number), asked, fits))
        if tried[-1].matched:
            break
    return tuple(tried)


def _contract(policy: Policy, name: str | None, checked: Checked) -> ContractSaid | None:
    contract = policy.contract(name)
    if contract is None or name is None:
        return None
    settle = policy.defaults.settle if contract.settle is None else contract.settle
    checks = tuple((check.check, check.kind) for check in contract.checks)
    where = checked.where("contracts", name)
    said = (str(contract.min_strength), contract.issuers, duration_text(settle), checks)
    return ContractSaid(name, where, name in policy.contracts, *said)


def _route(route: Route) -> tuple[tuple[str, str | None], ...]:
    due = None if route.due is None else duration_text(route.due)
    return (
        ("owner", route.owner),
        ("due", due),
        ("escalate", route.escalate),
        ("on_expiry", route.on_expiry),
        ("deliver", route.deliver),
    )


def duration_text(span: timedelta) -> str:
    """A duration as a policy writes it: `30s`, `5m`, `4h`, `2d`."""
    seconds = int(span.total_seconds())
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
