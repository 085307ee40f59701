"""Triage: what people said about groups. It hides a group for a while, or gives it an owner; no verdict changes by it.

Nothing is for ever. An acknowledgement ends after `ACK_HOLDS`, or when the group escalates or regresses after it; a
snooze at its own end, at most `LONGEST` away; a resolution when the group comes back, or after `LONGEST`. And nothing
that was said hides a group past the moment at which one of its waits is due.

Records are appended through the keeper, never updated: of what was said about a group the newest counts, and a
`reopened` takes all before it back but the owner. A record that is dated after now, beyond the policy's `clock_skew`,
does not count yet. Not here: which groups need somebody (`attention`), and how it is asked for and shown.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from stopcause.classifier.verdict import VerdictName
from stopcause.errors import InputError
from stopcause.pipeline import groups
from stopcause.pipeline.groups import Facts, latest
from stopcause.pipeline.keeper import Keeper
from stopcause.receipts import codec
from stopcause.receipts.model import SCHEMA, TriageUpdated
from stopcause.receipts.vocabulary import Boundary, Kind, TriageAction
from stopcause.render.views import Regressed, Said, TriageLine
from stopcause.store.columns import naive, utc
from stopcause.store.queries import text

ACK_HOLDS: Final = timedelta(days=7)
LONGEST: Final = timedelta(days=30)
_HOLDS: Final[Mapping[str, timedelta]] = {
    TriageAction.ACKNOWLEDGED: ACK_HOLDS,
    TriageAction.SNOOZED: LONGEST,
    TriageAction.RESOLVED: LONGEST,
}
_WEEK = 7
_VERSIONS = 5  # that a refusal lists
_TICK = timedelta(microseconds=1)


class Words(NamedTuple):
    """What holds of a group: what hides it, its newest resolution, its owner, and when anything was said last."""

    said: Said | None = None
    resolved: Said | None = None
    owner: str | None = None
    at: datetime | None = None


class Pace(NamedTuple):
    """How many runs of a group ended after a word, after it in the last day, and in the day and week before it."""

    later: int = 0
    last_day: int = 0
    day_before: int = 0
    week_before: int = 0


class Return(NamedTuple):
    """Runs of a group that started after a word: their version, the newest start, and the version's first anywhere."""

    version: str | None
    newest_at: datetime
    first_at: datetime | None


class Standing(NamedTuple):
    """What holds of a group now: `said` with why it is over, if it is; its owner; whether it regressed."""

    said: Said | None = None
    owner: str | None = None
    regressed: Regressed | None = None


class Order(NamedTuple):
    """What somebody says about groups."""

    action: TriageAction
    actor: str
    until: datetime | None = None
    runs: int | None = None
    in_version: str | None = None
    owner: str | None = None
    reason: str | None = None
    ticket: str | None = None


class Told(NamedTuple):
    """A record that was appended. `due`: the moment of a wait that ends it sooner than was asked for."""

    group: Facts
    record: TriageUpdated
    due: datetime | None = None


# What was said --------------------------------------------------------------------------------------------------------


def words_of(keeper: Keeper, now: datetime) -> dict[str, Words]:
    """What people said, by group, as far as it counts by now."""
    until = latest(now, keeper.policy)
    read = (codec.read_line(line.encode()) for (line,) in keeper.store.ask(text("triage_lines")).rows)
    return fold(record for record in read if isinstance(record, TriageUpdated) and record.at <= until)


def fold(records: Iterable[TriageUpdated]) -> dict[str, Words]:
    """Records, in any order, as what holds of each group."""
    words: dict[str, Words] = {}
    for record in sorted(records, key=lambda each: (each.at, each.record_id or "")):
        words[record.group] = _after(words.get(record.group, Words()), record)
    return words


def _after(words: Words, record: TriageUpdated) -> Words:
    words = words._replace(at=record.at)
    if record.action is TriageAction.ASSIGNED:
        return words._replace(owner=record.owner)
    if record.action is TriageAction.REOPENED:
        return words._replace(said=None, resolved=None)
    if record.action is None:
        return words
    said = _said(record, record.action)
    return words._replace(said=said, resolved=said if record.action is TriageAction.RESOLVED else words.resolved)


def _said(record: TriageUpdated, action: TriageAction) -> Said:
    """Whatever a record says of its end, it has one."""
    end = record.at + _HOLDS[action]
    return Said(
        action=action,
        at=record.at,
        actor=record.actor,
        reason=record.reason_code,
        ticket=record.ticket,
        until=min(record.until, end) if record.until else end,
        runs=record.until_count if action is TriageAction.SNOOZED else None,
        in_version=record.in_version,
    )


# Whether it still holds -----------------------------------------------------------------------------------------------


def standings(
    keeper: Keeper, dues: Mapping[str, datetime | None], now: datetime, words: Mapping[str, Words] | None = None
) -> dict[str, Standing]:
    """How things stand with these groups, by fingerprint; those of which nothing was said are left out.

    Args:
        keeper: Its store is asked only about groups of which something was said.
        dues: The groups, each with the first moment at which one of its waits is due.
        now: The present time.
        words: What `words_of` gave, where it was asked already.
    """
    known = words_of(keeper, now) if words is None else words
    spoken = {group: known[group] for group in dues if group in known}
    paces = _paces(keeper, {group: each.said.at for group, each in spoken.items() if each.said}, now)
    returns = _returns(keeper, spoken, now)
    return {
        group: standing(each, dues[group], paces.get(group, Pace()), returns, group, now)
        for group, each in spoken.items()
    }


def standing(
    words: Words,
    due: datetime | None,
    pace: Pace,
    returns: Mapping[tuple[str, datetime], Sequence[Return]],
    group: str,
    now: datetime,
) -> Standing:
    """How things stand with one group. `returns` are by group and the time of the word that they came after."""
    resolved, said = words.resolved, words.said
    back = returned(resolved, returns.get((group, resolved.at), ())) if resolved else None
    regressed = Regressed(back.version, resolved.in_version, resolved.at) if back and resolved else None
    if said is None:
        return Standing(None, words.owner, regressed)
    later = returns.get((group, said.at), ())
    is_new = any(each.first_at is not None and each.first_at > said.at for each in later) if resolved else False
    over = why_over(said, now, due, pace, later, regressed if said is resolved else None, is_back=is_new)
    return Standing(said._replace(over=over), words.owner, regressed)


def why_over(  # noqa: PLR0913 - each of them can end it
    said: Said,
    now: datetime,
    due: datetime | None,
    pace: Pace,
    later: Sequence[Return] = (),
    regressed: Regressed | None = None,
    *,
    is_back: bool = False,
) -> str:
    """Why what was said no longer hides its group; empty where it does. `later`: runs that started after it."""
    if due is not None and due <= now:
        return "a wait of it is due"
    if said.until is None or said.until <= now:
        return "its time is over"
    if said.action == TriageAction.SNOOZED:
        return "its count is reached" if said.runs is not None and pace.later >= said.runs else ""
    if said.action == TriageAction.ACKNOWLEDGED:
        return "regressed since" if is_back else "escalated since" if escalated(pace) else ""
    if regressed is not None:
        return "regressed"
    return "goes on" if said.in_version is None and later else ""


def escalated(pace: Pace) -> bool:
    """Whether a group has got worse than it was when somebody said that they had seen it."""
    usual = max(pace.day_before, pace.week_before / _WEEK, 1 / _WEEK)
    return groups.escalation(pace.last_day, usual) is not None


def returned(resolved: Said, later: Sequence[Return]) -> Return | None:
    """The newest run that a resolution should not have seen; of a version that was there before, it may."""
    back = [
        each
        for each in later
        if each.version is None
        or each.version == resolved.in_version
        or (each.first_at is not None and each.first_at > resolved.at)
    ]
    return max(back, key=lambda each: each.newest_at, default=None)


def _paces(keeper: Keeper, since: Mapping[str, datetime], now: datetime) -> dict[str, Pace]:
    if not since:
        return {}
    asked = {
        "groups": list(since),
        "times": [naive(at) for at in since.values()],
        "day_ago": naive(now - timedelta(days=1)),
        "until": naive(latest(now, keeper.policy)),
    }
    return {row[0]: Pace(*row[1:]) for row in keeper.store.ask(text("group_pace"), asked).rows}


def _returns(keeper: Keeper, spoken: Mapping[str, Words], now: datetime) -> dict[tuple[str, datetime], list[Return]]:
    """What started after each resolution, and after each word that followed one."""
    pairs = {
        (group, said.at)
        for group, each in spoken.items()
        if each.resolved
        for said in (each.resolved, each.said)
        if said
    }
    if not pairs:
        return {}
    asked = {
        "groups": [group for group, _ in pairs],
        "times": [naive(at) for _, at in pairs],
        "until": naive(latest(now, keeper.policy)),
    }
    found: dict[tuple[str, datetime], list[Return]] = {}
    for group, said_at, version, newest_at, first_at in keeper.store.ask(text("group_returns"), asked).rows:
        key = (group, said_at.replace(tzinfo=now.tzinfo))
        found.setdefault(key, []).append(Return(version, newest_at.replace(tzinfo=now.tzinfo), utc(first_at)))
    return found


# Saying it ------------------------------------------------------------------------------------------------------------


def tell(keeper: Keeper, about: Sequence[Facts], order: Order, now: datetime) -> list[Told]:
    """Appends what somebody says about groups, a record for each.

    Raises:
        InputError: Something in the order has no shape that a record can hold, or hides what is due already; nothing
            is appended.
        StoreError: The store failed.
    """
    if order.action is TriageAction.SNOOZED and (late := [each for each in about if each.due and each.due <= now]):
        name = groups.short_name(late[0].fingerprint, [each.fingerprint for each in about])
        raise InputError(f"{name}: a wait of it is due, and nothing hides that. `waiting` says who has to answer.")
    known = words_of(keeper, now)
    told = [_told(each, order, _moment(known.get(each.fingerprint), now), now) for each in about]
    taken = keeper.accept([codec.write_line(each.record) for each in told], now)
    if taken.errors:
        raise InputError(str(taken.errors[0]))
    return told


def _moment(words: Words | None, now: datetime) -> datetime:
    """Now; after what was said before, though the clock may not have moved on or may have been set back a little."""
    return max(now, words.at + _TICK) if words and words.at else now


def _told(group: Facts, order: Order, at: datetime, now: datetime) -> Told:
    until, due = order.until, None
    if order.action in (TriageAction.ACKNOWLEDGED, TriageAction.SNOOZED):
        until = min(until or at + _HOLDS[order.action], at + _HOLDS[order.action])
        due = group.due if group.due and group.due < until else None
        until = max(due, now) if due else until
    said = {
        "schema": SCHEMA,
        "kind": Kind.TRIAGE,
        "record_id": new_id(at),
        "at": at.isoformat(),
        "boundary": Boundary.OPERATOR,
        "group": group.fingerprint,
        "action": order.action,
        "until": until.isoformat() if until else None,
        "until_count": order.runs,
        "in_version": order.in_version,
        "owner": order.owner,
        "actor": order.actor,
        "reason_code": order.reason,
        "ticket": order.ticket,
    }
    record = codec.read_value(said)
    if isinstance(record, codec.LineError):
        raise InputError(f"{record.field} {record.reason}; expected {record.expected}")
    if not isinstance(record, TriageUpdated):
        raise TypeError(type(record).__name__)  # it says its kind; this is for the type checker
    return Told(group, record, due)


def lines_of(told: Sequence[Told]) -> list[TriageLine]:
    """What was appended, as lines of a screen."""
    names = groups.short_names({each.group.fingerprint for each in told})
    return [
        TriageLine(
            name=names[each.group.fingerprint],
            verdict=VerdictName(each.group.verdict),
            agent=each.group.agent,
            reason=each.group.reason,
            runs=each.group.size,
            said=_kept(each.record),
            owner=each.record.owner,
            due=each.due,
        )
        for each in told
    ]


def _kept(record: TriageUpdated) -> Said:
    action = record.action or TriageAction.ACKNOWLEDGED
    if action in _HOLDS:
        return _said(record, action)
    return Said(action, record.at, record.actor, record.reason_code, record.ticket)


def told_object(told: Told) -> dict[str, Any]:
    """What was appended, as JSON has it; `due` is not part of the record."""
    kept: dict[str, Any] = json.loads(codec.write_line(told.record))
    return {**kept, "runs": told.group.size, "ended_by_wait": told.due}


def new_id(at: datetime) -> str:
    """A UUIDv7: it starts with the time, and the rest is random."""
    stamp = int(at.timestamp() * 1000)
    bits = stamp << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=bits))


def check_version(keeper: Keeper, about: Collection[Facts], version: str) -> None:
    """Holds a version against those that the agents' runs had.

    Raises:
        InputError: No run of one of these agents had it; says which there are.
    """
    for agent in dict.fromkeys(each.agent for each in about):
        seen = [row[0] for row in keeper.store.ask(text("agent_versions"), {"agent": agent}).rows]
        if version not in seen:
            newest = f"the newest are {', '.join(seen[:_VERSIONS])}" if seen else "its runs name none"
            raise InputError(
                f"No run of {agent or 'an agent without a name'} had version {version}; {newest}. "
                "Say --unreleased where it is still to come."
            )
