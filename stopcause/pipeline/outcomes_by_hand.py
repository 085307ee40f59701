"""An outcome receipt by a person: somebody looked at the destination and says what is there.

It is a record like any other, of strength `human`, seen at the boundary `operator`; the classifier weighs it as it
weighs the rest. Said twice, it is two looks and not two effects: a person's look names no effect. Here too: why a
verdict did not change, from the classifier's own facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from stopcause.classifier.attempt import declared
from stopcause.classifier.policy import Contract
from stopcause.classifier.rules import RULES
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import StoreError
from stopcause.pipeline.keeper import Detail, Keeper
from stopcause.pipeline.triage import new_id
from stopcause.receipts import codec, model
from stopcause.receipts.identifiers import is_personal
from stopcause.receipts.pseudonyms import pseudonym
from stopcause.receipts.vocabulary import Boundary, IssuerType, Polarity, Strength
from stopcause.render.outcome import Told
from stopcause.render.sentences import reason_sentence
from stopcause.render.views import Revision

_DECIDES = (VerdictName.VERIFIED_COMPLETE, VerdictName.FALSE_COMPLETE)
_UNLISTED = ("issuer_unlisted", "refuted_unlisted")
_TICK = timedelta(milliseconds=1)
_REFUTED, _VERIFIED = "receipt_refuted", "receipt"
_UNPROVEN = ("receipt_pending", "receipt_missing")


class Saying(NamedTuple):
    """What a person says. Every string is an identifier; `actor` is `user:NAME`."""

    polarity: Polarity  # confirmed or refuted
    contract: str
    reason: str
    actor: str
    check: str | None = None
    subject: str | None = None
    ticket: str | None = None


def record_by_hand(keeper: Keeper, name: str, saying: Saying, now: datetime) -> Told:
    """Records what a person says of a run, and tells the verdict before and after it.

    Args:
        keeper: Has been settled as of `now`.
        name: The run's id, or the head or tail of it.
        saying: What is said. An actor that looks like a person's address is kept as a hash.
        now: When it was seen, and when the run is judged again.

    Raises:
        NotFoundError: No run is called so, or several are.
        StoreFullError: The disk took no more; nothing was recorded.
        StoreError: The store failed.
    """
    before = keeper.detail(name, now)
    actor = pseudonym(saying.actor) if is_personal(saying.actor) else saying.actor
    record = _record(before, saying._replace(actor=actor), now)
    accepted = keeper.accept([codec.write_line(record)], now)
    if accepted.errors:
        raise StoreError(f"The record was refused: {accepted.errors[0]}. Please report this.")
    after = keeper.detail(record.run_id, now, record.attempt)
    return Told(
        run_id=record.run_id,
        attempt=record.attempt,
        agent=after.facts.subject.agent,
        outcome_id=record.outcome.outcome_id,
        polarity=saying.polarity,
        contract=saying.contract,
        check=saying.check,
        issuer=f"{IssuerType.HUMAN}:{actor}",
        before=_verdict(before),
        after=_verdict(after),
        why=_why_not(before, after, record.outcome),
        notes=tuple(_notes(before, saying)),
    )


def _record(run: Detail, saying: Saying, now: datetime) -> model.OutcomeRecorded:
    at, number = _moment(run, now), new_id(now)
    return model.OutcomeRecorded(
        schema="stopcause/1",
        record_id=number,
        run_id=run.run.run_id,
        attempt=run.facts.attempt,
        at=at,
        boundary=Boundary.OPERATOR,
        outcome=model.Outcome(
            outcome_id=number,
            contract=saying.contract,
            check=saying.check,
            strength=Strength.HUMAN,
            polarity=saying.polarity,
            issuer=model.Issuer(type=IssuerType.HUMAN, id=saying.actor),
            subject=saying.subject,
            observed_at=at,
            evidence={"reason": saying.reason, **({"ticket": saying.ticket} if saying.ticket else {})},
        ),
    )


def _moment(run: Detail, now: datetime) -> datetime:
    """Now; after what was said by hand before, though the clock may have been set back: the latest word counts."""
    said = (each for each in run.run.records() if isinstance(each, model.OutcomeRecorded))
    return max([now, *(each.at + _TICK for each in said if each.boundary is Boundary.OPERATOR)])


def _verdict(detail: Detail) -> Revision:
    return Revision(detail.verdict.as_of, detail.verdict.verdict, detail.verdict.reason)


# What a person should know -------------------------------------------------------------------------------------------


def _notes(run: Detail, saying: Saying) -> Iterator[str]:
    """What does not fit together: the word is recorded all the same."""
    facts, contract = run.facts, run.facts.contract
    if facts.contract_name is None:
        yield f"run {facts.run_id} is under no contract; what you say counts by itself"
    elif facts.contract_name != saying.contract:
        yield f"run {facts.run_id} is under contract {facts.contract_name}, not {saying.contract}"
    elif saying.check and contract and contract.checks and saying.check not in _checks(contract):
        yield f"contract {saying.contract} has no check {saying.check}; it has {', '.join(_checks(contract))}"
    if saying.subject and (target := _target(run)) and target != saying.subject:
        yield f"the target of run {facts.run_id} is {target}, not {saying.subject}"


def _checks(contract: Contract) -> list[str]:
    return [each.check for each in contract.checks]


def _target(run: Detail) -> str | None:
    return declared(run.facts.start, run.facts.told, "subject")


def _why_not(before: Detail, run: Detail, outcome: model.Outcome) -> str | None:
    """Why a word did not do what it says, the first reason that applies; None where it did."""
    facts, verdict = run.facts, run.verdict
    did = _REFUTED if outcome.polarity is Polarity.REFUTED else _VERIFIED
    if facts.contract_name and facts.contract_name != outcome.contract:
        return f"A word on another contract proves nothing here; say --contract {facts.contract_name}."
    if (target := _target(run)) and outcome.subject not in (None, target):
        return f"A look at another target proves nothing here; say --subject {target}."
    if verdict.verdict not in _DECIDES:
        return _decided_before(run)
    if any(each.code in _UNLISTED and each.where == f"outcome:{outcome.outcome_id}" for each in verdict.findings):
        return _unlisted(facts.contract, facts.contract_name, outcome)
    if verdict.reason == did:
        return None if before.verdict.reason != did else f"It was {outcome.polarity} before. Now one more look says so."
    return _still_as_it_was(run, outcome)


def _decided_before(run: Detail) -> str:
    verdict = run.verdict
    if verdict.verdict is None:
        return "It still runs. What you say counts once it has finished."
    said = reason_sentence(verdict.verdict, verdict.reason, run.facts.cause)
    number = next(i for i, rule in enumerate(RULES, 1) if rule.id == verdict.rule)
    return f"{said} Rule {number}, {verdict.rule}, decides it; an outcome decides only about a run that finished."


def _unlisted(contract: Contract | None, name: str | None, outcome: model.Outcome) -> str:
    listed = ", ".join(contract.issuers) if contract else ""
    issuer = outcome.issuer.id if outcome.issuer else ""
    who = f"{IssuerType.HUMAN}:{issuer}"
    return f"Contract {name} takes the word of {listed} only. Add {who} to its issuers where that person's word counts."


def _still_as_it_was(run: Detail, outcome: model.Outcome) -> str:
    """Confirmed, and not verified; or refuted, and verified all the same."""
    proof, contract = run.facts.proof, run.facts.contract
    if proof.met and outcome.polarity is Polarity.REFUTED:
        later = proof.evidence[0].removeprefix("outcome:")
        return f"Outcome {later} is a later look than yours, by its own clock, and the latest look counts."
    if proof.fault == _REFUTED:
        return _refuted_elsewhere(run, outcome)
    if run.verdict.reason in _UNPROVEN and contract and contract.checks:
        held = {each.check for each in _outcomes(run.run.records()) if f"outcome:{each.outcome_id}" in proof.evidence}
        open_checks = [each for each in _checks(contract) if each not in held]
        return f"Contract {run.facts.contract_name} wants every check, and nobody confirms {', '.join(open_checks)}."
    return reason_sentence(run.verdict.verdict, run.verdict.reason, run.facts.cause)


def _refuted_elsewhere(run: Detail, outcome: model.Outcome) -> str:
    """A refutation of another check stands until somebody confirms that check."""
    refuting = [
        each for each in _outcomes(run.run.records()) if f"outcome:{each.outcome_id}" in run.facts.proof.evidence
    ]
    first = next((each for each in refuting if each.outcome_id != outcome.outcome_id), outcome)
    about = f" of check {first.check}" if first.check else ""
    advice = f" To overrule it, say --check {first.check}." if first.check and first.check != outcome.check else ""
    return f"Outcome {first.outcome_id}{about} refutes it, and stands.{advice}"


def _outcomes(records: Iterable[model.RunRecord]) -> Iterator[model.Outcome]:
    for record in records:
        if isinstance(record, model.OutcomeRecorded):
            yield record.outcome
        elif isinstance(record, model.RunStopped):
            yield from record.outcomes or ()
