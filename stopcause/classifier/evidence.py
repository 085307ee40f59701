"""Whether outcome receipts meet a contract: who may vouch, how strongly, how freshly, and what the latest look says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
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
    subject: str | None  # what it is about: as it says, else as its attempt or run says


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
    latest = _latest(weighed)
    findings = tuple(_findings(weighed))
    refuting = [each for each in latest.values() if each.worth == "refutes"]
    if refuting:
        return Proof("receipt_refuted", evidence=_names(refuting), findings=findings)
    if latest and _all_checks_hold(latest.values(), expected.contract):
        return Proof(met=True, evidence=_names(latest.values()), findings=findings)
    short = [each for each in weighed if each.worth in _FAULTS and _key(each.look) not in latest]
    fault = min((each.worth for each in short), key=_FAULTS.index, default=None)
    return Proof(fault, evidence=_names(short or weighed), findings=findings)


_FAULTS = ("receipt_stale", "receipt_weak", "self_claim_only")


def _latest(weighed: Iterable[Weighed]) -> dict[tuple[str | None, str | None], Weighed]:
    """The latest look that counts for each (check, subject); the run's own no only until somebody else says yes."""
    latest: dict[tuple[str | None, str | None], Weighed] = {}
    for each in weighed:
        if each.worth == "holds" and latest:
            latest = {key: other for key, other in latest.items() if not _is_claim(other.look.outcome)}
        if each.worth in ("holds", "refutes"):
            latest[_key(each.look)] = each
    return latest


def _key(look: Look) -> tuple[str | None, str | None]:
    return look.outcome.check, look.subject


def _is_claim(outcome: Outcome) -> bool:
    return outcome.issuer is None or outcome.issuer.type is IssuerType.RUN


def _order(look: Look) -> tuple[datetime, str]:
    return (look.outcome.observed_at or look.at, look.record_id)


def _concerns(look: Look, expected: Expected) -> bool:
    """A look at another contract or another target proves nothing here, in either direction."""
    outcome = look.outcome
    other_contract = outcome.contract and expected.contract_name and outcome.contract != expected.contract_name
    other_subject = look.subject and expected.subject and look.subject != expected.subject
    return not other_contract and not other_subject


def _worth(look: Look, expected: Expected) -> str:
    outcome, refuted = look.outcome, look.outcome.polarity is Polarity.REFUTED
    if not refuted and outcome.polarity is not Polarity.CONFIRMED:
        return "unknown"
    if _is_claim(outcome) and not refuted:
        return "self_claim_only"
    if not _is_claim(outcome) and not _may_vouch(look, expected.contract):
        return "unlisted"
    if not _is_fresh(look, expected.since) or (outcome.pre_state is PreState.SAME and not refuted):
        return "receipt_stale"
    if refuted:
        return "refutes"
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
    return _is_listed(f"{issuer.type}:{issuer.id or ''}", contract.issuers)


@lru_cache(maxsize=4096)
def _is_listed(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_fresh(look: Look, since: datetime | None) -> bool:
    return since is None or (look.outcome.observed_at or look.at) >= since


def _all_checks_hold(holding: Iterable[Weighed], contract: Contract | None) -> bool:
    """Every check that the contract names has a look that holds; without named checks, one look is enough.

    A person who confirms without naming a check vouches for all of them.
    """
    wanted = {each.check for each in contract.checks} if contract else set()
    checks = {each.look.outcome.check for each in holding}
    person = any(each.look.outcome.check is None and _is_by(each.look.outcome, IssuerType.HUMAN) for each in holding)
    return person or wanted <= checks


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


def effects(looks: Iterable[Look]) -> dict[str, frozenset[str]]:
    """The confirmed effects by subject; those of which no subject is known are nobody's duplicate."""
    found: dict[str, frozenset[str]] = {}
    for look in looks:
        if look.subject and look.outcome.effect_key and look.outcome.polarity is Polarity.CONFIRMED:
            found[look.subject] = found.get(look.subject, frozenset()) | {look.outcome.effect_key}
    return found
