"""Whether outcome receipts meet a contract: who may vouch, how strongly, how freshly, and what the latest look says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import NamedTuple

from stopcause.classifier.policy import DEFAULT_CONTRACT, Contract
from stopcause.classifier.verdict import Finding
from stopcause.receipts.model import Outcome
from stopcause.receipts.vocabulary import IssuerType, Polarity, PreState, Strength

_STRENGTH = {strength: rank for rank, strength in enumerate(Strength)}


class Look(NamedTuple):
    """One look at the destination. `in_process`: the agent's own process reported it."""

    at: datetime
    record_id: str
    outcome: Outcome
    in_process: bool


class Expected(NamedTuple):
    """What the looks are held against. `contract` None means that no contract was declared."""

    contract: Contract | None
    contract_name: str | None
    subject: str | None
    since: datetime | None  # nothing seen before this is fresh


class Proof(NamedTuple):
    """What the looks add up to. `fault` is the reason why they prove nothing, None where there are none."""

    fault: str | None = None
    met: bool = False
    evidence: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


NO_PROOF = Proof()


class Weighed(NamedTuple):
    """A look and what it is worth: `holds`, `refutes`, or the fault that makes it worthless."""

    look: Look
    worth: str


def prove(looks: Sequence[Look], expected: Expected) -> Proof:
    """Weigh every look of the contract's; the latest that counts decides for each (check, subject)."""
    weighed = [Weighed(look, _worth(look, expected)) for look in sorted(looks, key=_order) if _concerns(look, expected)]
    if not weighed:
        return NO_PROOF
    latest: dict[tuple[str | None, str | None], Weighed] = {}
    for each in weighed:
        if each.worth in ("holds", "refutes"):
            latest[(each.look.outcome.check, each.look.outcome.subject)] = each
    findings = tuple(_findings(weighed))
    refuting = [each for each in latest.values() if each.worth == "refutes"]
    if refuting:
        return Proof("receipt_refuted", evidence=_names(refuting), findings=findings)
    if latest and _all_checks_hold(latest, expected.contract):
        return Proof(met=True, evidence=_names(latest.values()), findings=findings)
    faults = [fault for fault in ("receipt_stale", "receipt_weak", "self_claim_only") if _has(weighed, fault)]
    return Proof(faults[0] if faults and not latest else None, evidence=_names(weighed), findings=findings)


def _order(look: Look) -> tuple[datetime, str]:
    return (look.outcome.observed_at or look.at, look.record_id)


def _concerns(look: Look, expected: Expected) -> bool:
    """A look at another contract or another target proves nothing here, in either direction."""
    outcome = look.outcome
    other_contract = outcome.contract and expected.contract_name and outcome.contract != expected.contract_name
    other_subject = outcome.subject and expected.subject and outcome.subject != expected.subject
    return not other_contract and not other_subject


def _worth(look: Look, expected: Expected) -> str:
    outcome = look.outcome
    claimed = outcome.issuer is None or outcome.issuer.type is IssuerType.RUN
    if outcome.polarity is Polarity.REFUTED:
        return "refutes" if claimed or _may_vouch(look, expected.contract) else "unlisted"
    if outcome.polarity is not Polarity.CONFIRMED:
        return "unknown"
    if claimed:
        return "self_claim_only"
    if not _may_vouch(look, expected.contract):
        return "unlisted"
    if outcome.pre_state is PreState.SAME or not _is_fresh(look, expected.since):
        return "receipt_stale"
    minimum = (expected.contract or DEFAULT_CONTRACT).min_strength
    strength = Strength.HUMAN if outcome.strength is None and _is_by(outcome, IssuerType.HUMAN) else outcome.strength
    return "holds" if strength is not None and _STRENGTH[strength] >= _STRENGTH[minimum] else "receipt_weak"


def _is_by(outcome: Outcome, issuer: IssuerType) -> bool:
    return outcome.issuer is not None and outcome.issuer.type is issuer


def _may_vouch(look: Look, contract: Contract | None) -> bool:
    """A validator in the agent's own process counts only where the contract lists it."""
    issuer = look.outcome.issuer
    if issuer is None or issuer.type is IssuerType.RUN:
        return False
    if contract is None or not contract.issuers:
        return not (look.in_process and issuer.type is IssuerType.VALIDATOR)
    name = f"{issuer.type}:{issuer.id or ''}"
    return any(fnmatchcase(name, pattern) for pattern in contract.issuers)


def _is_fresh(look: Look, since: datetime | None) -> bool:
    return since is None or (look.outcome.observed_at or look.at) >= since


def _all_checks_hold(latest: dict[tuple[str | None, str | None], Weighed], contract: Contract | None) -> bool:
    """Every check that the contract names has a look that holds; without named checks, one look is enough."""
    wanted = {each.check for each in contract.checks} if contract else set()
    return wanted <= {check for check, _subject in latest}


def _has(weighed: Iterable[Weighed], worth: str) -> bool:
    return any(each.worth == worth for each in weighed)


def _names(weighed: Iterable[Weighed]) -> tuple[str, ...]:
    return tuple(f"outcome:{each.look.outcome.outcome_id}" for each in weighed)


def _findings(weighed: Iterable[Weighed]) -> Iterable[Finding]:
    for look, worth in weighed:
        if worth == "unlisted":
            refuted = look.outcome.polarity is Polarity.REFUTED
            yield Finding("refuted_unlisted" if refuted else "issuer_unlisted", f"outcome:{look.outcome.outcome_id}")
        elif look.in_process and worth in ("holds", "refutes") and _is_by(look.outcome, IssuerType.VALIDATOR):
            yield Finding("in_process", f"outcome:{look.outcome.outcome_id}")


def freshness_start(started_at: datetime | None, clock_skew: timedelta) -> datetime | None:
    """The earliest time that a fresh look may bear."""
    return None if started_at is None else started_at - clock_skew


def effect_keys(looks: Iterable[Look]) -> frozenset[str]:
    """The effects that somebody confirmed. One of them may bear the id of a gated tool call."""
    confirmed = (look.outcome for look in looks if look.outcome.polarity is Polarity.CONFIRMED)
    return frozenset(each.effect_key for each in confirmed if each.effect_key)


def effects(looks: Iterable[Look], target: str | None) -> dict[str, frozenset[str]]:
    """The confirmed effects by subject; those of which no subject is known are nobody's duplicate."""
    found: dict[str, frozenset[str]] = {}
    for look in looks:
        subject = look.outcome.subject or target
        if subject and look.outcome.effect_key and look.outcome.polarity is Polarity.CONFIRMED:
            found[subject] = found.get(subject, frozenset()) | {look.outcome.effect_key}
    return found
