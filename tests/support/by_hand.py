"""Every report as plain Python: one row after the other, no sums of signs, no SQL."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from stopcause.agui.cards import CARDS
from stopcause.agui.words import Level, Mode, Side
from stopcause.store.rows import StoredWait, VerdictRow
from tests.support.verdict_rows import NOW

VERDICTS = (
    *("FAILED", "WAITING", "WAITING_UNROUTED", "STUCK", "BOUNDED_STOP"),
    *("VERIFIED_COMPLETE", "FALSE_COMPLETE", "UNCERTAIN", None),
)
_WAITING = ("WAITING", "WAITING_UNROUTED")
DAY_ONE = datetime(1970, 1, 1, tzinfo=UTC)
_Z = 1.959963984540054

Rows = list[VerdictRow]
Expected = list[tuple[Any, ...]]


class Asked(NamedTuple):
    """The parameters of a report, understood by hand."""

    since: datetime = DAY_ONE
    agent: str | None = None
    environment: str | None = None


def chosen(rows: Iterable[VerdictRow], asked: Asked, *, however_old: bool = False) -> Rows:
    return [
        row
        for row in rows
        if (however_old or row.opened_at >= asked.since)
        and (asked.agent is None or row.agent == asked.agent)
        and (asked.environment is None or row.environment == asked.environment)
    ]


def piles(rows: Iterable[VerdictRow], key: Callable[[VerdictRow], Any]) -> dict[Any, Rows]:
    sorted_out: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        sorted_out[key(row)].append(row)
    return sorted_out


def mix(rows: Rows) -> tuple[int, ...]:
    counted = Counter(row.verdict for row in rows)
    return tuple(counted[name] for name in VERDICTS)


def last(value: str | None) -> tuple[bool, str]:
    """Where nothing is said comes last."""
    return value is None, value or ""


def quantile(values: Iterable[float], share: float) -> float | None:
    ordered = sorted(values)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def most_of(names: Iterable[str | None]) -> tuple[str | None, int | None]:
    counted = Counter(name for name in names if name is not None)
    return min(counted.items(), key=lambda item: (-item[1], item[0]), default=(None, None))


def wilson(hits: int, of: int) -> tuple[float | None, float | None, float | None]:
    if of == 0:
        return None, None, None
    share = hits / of
    middle = (share + _Z**2 / (2 * of)) / (1 + _Z**2 / of)
    half = _Z / (1 + _Z**2 / of) * math.sqrt(share * (1 - share) / of + _Z**2 / (4 * of**2))
    return share, middle - half, middle + half


def by_hour(rows: Rows, asked: Asked) -> Expected:
    hours = piles(chosen(rows, asked), lambda row: row.opened_at.replace(minute=0, second=0, microsecond=0))
    return [(hour, len(found), *mix(found)) for hour, found in sorted(hours.items(), reverse=True)]


def by_day(rows: Rows, asked: Asked, zone: str = "UTC") -> Expected:
    info = ZoneInfo(zone)
    days = piles(chosen(rows, asked), lambda row: row.opened_at.astimezone(info).date())
    return [(day, len(found), *mix(found)) for day, found in sorted(days.items(), reverse=True)]


def by_agent(rows: Rows, asked: Asked) -> Expected:
    agents = piles(chosen(rows, asked), lambda row: row.agent)
    return sorted(
        ((agent, len(found), *mix(found)) for agent, found in agents.items()),
        key=lambda each: (-each[1], last(each[0])),
    )


def by_version(rows: Rows, asked: Asked) -> Expected:
    versions = piles(chosen(rows, asked), lambda row: (row.agent, row.agent_version))
    made = [(agent, version, len(found), *mix(found)) for (agent, version), found in versions.items()]
    return sorted(made, key=lambda each: (last(each[0]), -each[2], last(each[1])))


def versions(rows: Rows, asked: Asked) -> Expected:
    made: Expected = []
    for (agent, version), found in piles(chosen(rows, asked), lambda row: (row.agent, row.agent_version)).items():
        ended = [row for row in found if row.verdict is not None and row.verdict not in _WAITING]
        good = sum(row.verdict == "VERIFIED_COMPLETE" for row in ended)
        bad = sum(
            row.verdict in ("FAILED", "STUCK")
            or (row.verdict == "FALSE_COMPLETE" and row.reason not in ("no_contract", "receipt_pending"))
            for row in ended
        )
        first = min(row.opened_at for row in found) if version else None
        shares = (*wilson(good, len(ended)), *wilson(bad, len(ended)))
        made.append((agent, version, first, len(found), len(ended), *shares, *mix(found)))
    return sorted(made, key=lambda each: (last(each[0]), -each[2].timestamp() if each[2] else 0, last(each[1])))


def stop_causes(rows: Rows, asked: Asked) -> Expected:
    found = chosen(rows, asked)
    made: Expected = []
    for cause, mine in piles(found, lambda row: row.stop_cause).items():
        agents = {row.agent for row in mine if row.agent is not None}
        made.append((cause, len(mine), len(mine) / len(found), len(agents), *most_of(row.agent for row in mine)))
    return sorted(made, key=lambda each: (-each[1], last(each[0])))


def attention(rows: Rows, asked: Asked) -> Expected:
    every = chosen(rows, asked, however_old=True)
    memory = asked.since - timedelta(days=30) if asked.since > DAY_ONE else DAY_ONE
    bounded = {
        row.fingerprint for row in every if row.verdict == "BOUNDED_STOP" and memory <= row.opened_at < asked.since
    }
    anything = any(row.opened_at < asked.since for row in rows)
    groups: dict[tuple[int, str], Rows] = defaultdict(list)
    for row in every:
        if place := needs(row, asked, bounded if anything else None):
            groups[place, row.fingerprint].append(row)
    made = [attention_row(place, found) for (place, _), found in groups.items()]
    return sorted(made, key=lambda each: (each[0], -each[8].timestamp(), each[1]))


def needs(row: VerdictRow, asked: Asked, seen: set[str] | None) -> int:
    """The place of a row in the order of the plan; 0 where it needs nobody."""
    if row.verdict == "WAITING_UNROUTED":
        young = NOW - timedelta(minutes=2) < (row.stopped_at or row.last_at) <= NOW
        return 0 if young else 1
    if row.opened_at < asked.since:
        return 0
    if row.verdict == "FALSE_COMPLETE":
        if row.stage == "observe" or row.reason == "receipt_pending":
            return 0
        return 2 if row.reason == "receipt_refuted" else 5 if row.contract else 0
    if row.verdict == "BOUNDED_STOP":
        return 7 if seen is not None and row.fingerprint not in seen else 0
    return {"STUCK": 3, "FAILED": 4, "UNCERTAIN": 6}.get(row.verdict or "", 0)


def attention_row(place: int, found: Rows) -> tuple[Any, ...]:
    newest = max(found, key=lambda row: (row.last_at, row.run_id))
    first = min(row.stopped_at or row.last_at for row in found)
    said = (newest.verdict, newest.agent, newest.environment, newest.reason, len(found), first, newest.last_at)
    more = (newest.owner, newest.stage, newest.detail, list(newest.missing), place == 7, newest.run_id)
    return (place, newest.fingerprint, *said, *more)


def open_waits(rows: Rows, asked: Asked) -> Iterator[tuple[VerdictRow, StoredWait, datetime]]:
    for row in chosen(rows, asked, however_old=True):
        if row.verdict in _WAITING and row.reason != "answered":
            for wait in row.waits:
                if wait.resolution is None:
                    yield row, wait, wait.since or row.stopped_at or row.last_at


def wait_row(row: VerdictRow, wait: StoredWait) -> tuple[Any, ...]:
    what = (wait.tool or wait.kind, wait.kind, wait.tool, wait.owner)
    return (wait.approval_id, row.run_id, row.agent, row.environment, row.verdict, *what)


def waiting(rows: Rows, asked: Asked) -> Expected:
    made: Expected = []
    for row, wait, since in open_waits(rows, asked):
        until = min((at for at in (wait.due, wait.expires_at) if at), default=None)
        old = max((NOW - since).total_seconds(), 0.0)
        made.append((*wait_row(row, wait), since, old, until, wait.due, wait.expires_at, list(wait.missing)))
    never = datetime(9999, 1, 1, tzinfo=UTC)
    return sorted(made, key=lambda each: (not each[14], each[11] or never, each[9], each[1]))


def overdue(rows: Rows, asked: Asked) -> Expected:
    made: Expected = []
    for row, wait, since in open_waits(rows, asked):
        if "overdue" in wait.missing and wait.due:
            late = max((NOW - wait.due).total_seconds(), 0.0)
            made.append((*wait_row(row, wait), since, wait.due, late, wait.expires_at))
    return sorted(made, key=lambda each: (-each[11], each[1]))


def wait_times(rows: Rows, asked: Asked) -> Expected:
    took: dict[str, list[float | None]] = defaultdict(list)
    had_due, in_time = Counter[str](), Counter[str]()
    for row in chosen(rows, asked):
        for wait in row.waits:
            if wait.resolution is not None:
                since = wait.since or row.stopped_at or row.last_at
                took[wait.resolution].append(
                    max((wait.ended_at - since).total_seconds(), 0.0) if wait.ended_at else None
                )
                had_due[wait.resolution] += wait.due is not None and wait.ended_at is not None
                in_time[wait.resolution] += bool(wait.due and wait.ended_at and wait.ended_at <= wait.due)
    for _row, wait, since in open_waits(rows, asked):
        took["open"].append(max((NOW - since).total_seconds(), 0.0))
        had_due["open"] += bool(wait.due and wait.due <= NOW)
    made = []
    for name, found in took.items():
        known = [each for each in found if each is not None]
        spread = (quantile(known, 0.5), quantile(known, 0.95), max(known, default=None))
        made.append((name, len(found), len(known), *spread, had_due[name], in_time[name]))
    return sorted(made, key=lambda each: (each[0] != "open", -each[1], each[0]))


def false_completion(rows: Rows, asked: Asked) -> Expected:
    finished = [row for row in chosen(rows, asked) if row.verdict in ("VERIFIED_COMPLETE", "FALSE_COMPLETE")]
    false = [row for row in finished if row.verdict == "FALSE_COMPLETE"]
    made: Expected = []
    for reason, found in piles(false, lambda row: row.reason).items():
        shares = (len(found) / len(false), len(found) / len(finished))
        agents = {row.agent for row in found if row.agent is not None}
        enforced = sum(row.stage == "enforce" for row in found)
        top, _ = most_of(row.agent for row in found)
        made.append((reason, len(found), *shares, enforced, len(agents), top))
    return sorted(made, key=lambda each: (-each[1], each[0]))


def uncertain_by_hook(rows: Rows, asked: Asked) -> Expected:
    made: Expected = []
    for hook, found in piles(chosen(rows, asked), lambda row: (row.adapter, row.adapter_version)).items():
        why = [row.reason for row in found if row.verdict == "UNCERTAIN"]
        made.append((*hook, len(found), len(why), len(why) / len(found), *most_of(why)))
    return sorted(made, key=lambda each: (-each[4], -each[2], last(each[0]), last(each[1])))


def agui_rules(rows: Rows, asked: Asked) -> Expected:
    made: Expected = []
    seen = [row for row in chosen(rows, asked) if row.adapter == "stopcause.agui"]
    for (name, version), found in piles(seen, lambda row: (row.framework or "ag-ui", row.framework_version)).items():
        for card in CARDS:
            for contract, mode in (("1.0", Mode.SPEC), ("before", Mode.LEGACY_OUTCOME)):
                broke = [
                    row
                    for row in found
                    if card.name in codes(row) and ("NO_VERSION" in codes(row)) is (mode is not Mode.SPEC)
                ]
                if broke and card.level_in(mode) is not Level.NOTE:
                    newest = max(broke, key=lambda row: (row.last_at, row.run_id))
                    told = (card.rule, card.name, str(card.side), str(card.level_in(mode)), contract)
                    made.append(
                        (name, version, *told, len(broke), len(broke) / len(found), newest.last_at, newest.run_id)
                    )
    sides, weights = [str(side) for side in Side], [str(level) for level in Level]
    return sorted(
        made,
        key=lambda each: (
            sides.index(each[4]),
            weights.index(each[5]),
            -each[7],
            each[0],
            last(each[1]),
            each[3],
            each[6],
        ),
    )


def codes(row: VerdictRow) -> set[str]:
    return {each.partition("=")[0].upper() for each in row.findings}


def limits(rows: Rows, asked: Asked) -> Expected:
    shares: dict[tuple[str | None, str], list[tuple[float | None, bool]]] = defaultdict(list)
    for row in chosen(rows, asked):
        tokens = None
        if row.input_tokens is not None or row.output_tokens is not None:
            tokens = (row.input_tokens or 0) + (row.output_tokens or 0)
        for kind, bound, used, cause in (
            ("steps", row.step_limit, row.steps, "step_limit"),
            ("tokens", row.token_limit, tokens, "token_budget"),
            ("cost", row.cost_limit, row.cost_usd, "cost_budget"),
            ("time", row.time_limit, row.duration_s, "time_limit"),
        ):
            if bound is not None:
                share = used / bound if bound and used is not None else None
                shares[row.agent, kind].append((share, row.stop_cause == cause))
    made: Expected = []
    for (agent, kind), found in shares.items():
        known = [share for share, _ in found if share is not None]
        near = sum(share >= 0.8 for share in known)
        fired = sum(did for _, did in found)
        made.append((agent, kind, len(found), len(known), quantile(known, 0.5), quantile(known, 0.95), near, fired))
    return sorted(made, key=lambda each: (last(each[0]), each[1]))


def costs(rows: Rows, asked: Asked) -> Expected:
    found = chosen(rows, asked)
    everything = math.fsum(row.cost_usd for row in found if row.cost_usd is not None)
    made: Expected = []
    for (owner, verdict), mine in piles(found, lambda row: (row.owner, row.verdict)).items():
        known = [row.cost_usd for row in mine if row.cost_usd is not None]
        total = math.fsum(known)
        money = (total, total / everything, total / len(known)) if known else (None, None, None)
        made.append((owner, verdict, len(mine), len(known), *money))
    return sorted(made, key=lambda each: (each[4] is None, -(each[4] or 0), -each[2], last(each[0]), last(each[1])))


def unbounded(rows: Rows, asked: Asked) -> Expected:
    made: Expected = []
    for who, found in piles(chosen(rows, asked), lambda row: (row.agent, row.environment, row.owner)).items():
        mine = [row for row in found if "unbounded" in row.findings]
        known = [row.cost_usd for row in mine if row.cost_usd is not None]
        if mine:
            made.append((*who, len(found), len(mine), len(mine) / len(found), math.fsum(known) if known else None))
    return sorted(made, key=lambda each: (-each[4], *map(last, each[:3])))


def on_bound_missing(rows: Rows, asked: Asked) -> Expected:
    no_bound = {"approval_denied", "approval_expired", "user_abort", "caller_abort", "platform_abort"}
    stopped = [row for row in chosen(rows, asked) if row.verdict == "BOUNDED_STOP" and row.reason not in no_bound]
    bare = [row for row in stopped if not row.has_on_bound]
    made: Expected = []
    for who, found in piles(bare, lambda row: (row.agent, row.environment, row.stop_cause, row.owner)).items():
        known = [row.cost_usd for row in found if row.cost_usd is not None]
        made.append((*who, len(found), math.fsum(known) if known else None))
    return sorted(made, key=lambda each: (-each[4], *map(last, each[:4])))


def silent_services(rows: Rows, asked: Asked) -> Expected:
    """All of them: the tests ask with `times` next to nothing."""
    lately = [row for row in chosen(rows, asked) if row.opened_at <= NOW and (row.service or row.agent)]
    made: Expected = []
    for service, found in piles(lately, lambda row: row.service or row.agent).items():
        steps = sorted({int(row.opened_at.timestamp()) // 300 for row in found})
        gaps = sorted(later - earlier for earlier, later in itertools.pairwise(steps))
        ends = [row.last_at for row in found if row.last_at <= NOW]
        if len(found) < 4 or not ends:
            continue
        usual = next((gap for n, gap in enumerate(gaps, 1) if 2 * sum(gaps[:n]) >= sum(gaps)), 1) * 300.0
        silent = (NOW - max(ends)).total_seconds()
        longest = max(gaps) * 300.0 if gaps else None
        made.append((service, max(ends), usual, silent / usual, longest, len(found)))
    return sorted(made, key=lambda each: (-each[3], each[0]))


def new_groups(rows: Rows, asked: Asked, version: str = "newest") -> Expected:
    made: Expected = []
    for found in piles(chosen(rows, asked), lambda row: row.agent).values():
        firsts = {v: min(r.opened_at for r in mine) for v, mine in piles(found, lambda row: row.agent_version).items()}
        known = {v: at for v, at in firsts.items() if v is not None and version in ("newest", v)}
        if not known:
            continue
        wanted, came = max(known.items(), key=lambda item: (item[1], item[0]))
        if came <= min(firsts.values()):
            continue
        wrong = [row for row in found if row.verdict not in (None, "VERIFIED_COMPLETE")]
        for mine in piles(wrong, lambda row: row.fingerprint).values():
            of_it = sum(row.agent_version == wanted for row in mine)
            if min(row.opened_at for row in mine) >= came and of_it:
                newest = max(mine, key=lambda row: (row.last_at, row.run_id))
                who = (newest.fingerprint, newest.agent, newest.environment, newest.verdict, newest.reason)
                when = (min(row.opened_at for row in mine), newest.last_at, newest.run_id)
                made.append((*who, newest.detail, wanted, len(mine), of_it, *when))
    return sorted(made, key=lambda each: (-each[7], each[0]))


BY_HAND: Mapping[str, Callable[[Rows, Asked], Expected]] = {
    "agui-rules": agui_rules,
    "attention": attention,
    "costs": costs,
    "false-completion": false_completion,
    "limits": limits,
    "new-groups": new_groups,
    "on-bound-missing": on_bound_missing,
    "overdue": overdue,
    "silent-services": silent_services,
    "stop-causes": stop_causes,
    "unbounded": unbounded,
    "uncertain-by-hook": uncertain_by_hook,
    "verdicts-by-agent": by_agent,
    "verdicts-by-day": by_day,
    "verdicts-by-hour": by_hour,
    "verdicts-by-version": by_version,
    "versions": versions,
    "wait-times": wait_times,
    "waiting": waiting,
}
ALSO: Mapping[str, dict[str, str]] = {"verdicts-by-day": {"zone": "UTC"}, "silent-services": {"times": "0.000000001"}}
