"""Is the store well? A function for each check, from the outside in: files first, then what is in the store.

Nothing is changed but by opening the store, which any command does. A check that cannot be made is a line, and costs
no other. Not here: files and folders (`doctor_files`), the spool (`doctor_spool`), waiting for a first record
(`doctor_wait`), screens.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from stopcause import __version__
from stopcause.classifier.policy import DEFAULT_POLICY, Policy
from stopcause.classifier.verdict import CLASSIFIER_VERSION
from stopcause.errors import InputError, PolicyError, StoreError, StoreInUseError
from stopcause.pipeline import doctor_files as files
from stopcause.pipeline.doctor_spool import check_spool
from stopcause.pipeline.policy_file import load_policy
from stopcause.pipeline.report import run_report
from stopcause.receipts import model
from stopcause.render.caller import Hint
from stopcause.render.doctor import Check, State, Visit
from stopcause.render.pen import age, count, pasted
from stopcause.store.columns import naive
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.lock import read_holder
from stopcause.store.migrations import MIGRATIONS
from stopcause.store.queries import text

_DAYS = 7
_MOST_LINES = 500_000  # records whose lines are read
_SILENT = "silent-services"
_NAMED = 3
_LATE = timedelta(hours=1)

Inside = Callable[[DuckStore, Policy, datetime], Check]


def visit(store: Path, spool: Path, policy: Path | None, now: datetime) -> Visit:
    """Makes all checks.

    Args:
        store: The database file; it need not exist, and is not made.
        spool: Where hooks leave their records.
        policy: The policy in force, a file or folder; None are the built-in defaults.
        now: The present time.
    """
    loaded, said = check_policy(policy)
    checks = [check_versions(), said, files.check_disk(store, spool)]
    if files.is_there(store):
        checks += _open_and_look(store, loaded, now)
    else:
        checks.append(files.check_missing(store))
    checks += [files.check_leftovers(store), files.check_set_aside(store, spool), check_spool(spool, store, now)]
    return Visit(store, spool, now, tuple(checks))


def _open_and_look(store: Path, policy: Policy | None, now: datetime) -> Iterator[Check]:
    """The store's own checks; from outside only, where another process owns it or it cannot be opened."""
    if (refused := files.check_access(store)) is not None:
        yield refused
        return
    had_log = files.has_log(store)
    try:
        opened = DuckStore.open(store)
    except StoreInUseError as error:
        yield _in_use(store, error)
        yield files.check_journal(store, None)
        return
    except StoreError as error:
        yield Check("store", State.BAD, f"cannot be opened. {error}", files.way_out(store))
        yield files.check_journal(store, None)
        return
    with opened:
        yield from _look_inside(opened, store, policy, now, had_log=had_log)


def _look_inside(
    opened: DuckStore, store: Path, policy: Policy | None, now: datetime, *, had_log: bool
) -> Iterator[Check]:
    checks: list[tuple[str, Callable[[], Check]]] = [
        ("store", lambda: check_store(opened, store, had_log=had_log)),
        ("journal", lambda: files.check_journal(store, opened.position() or (0, 0))),
    ]
    if policy is not None:
        checks.append(("verdicts", lambda: check_stale(opened, policy)))
    for name, check in _INSIDE:
        checks.append((name, lambda check=check: check(opened, policy or DEFAULT_POLICY, now)))  # type: ignore[misc]
    for name, look in checks:
        try:
            yield look()
        except StoreError as error:
            yield Check(name, State.BAD, f"cannot be read. {error}", files.way_out(store))
        except OSError as error:
            yield Check(name, State.BAD, f"{error.filename}: {error.strerror}", files.listed(store.parent))


def _in_use(store: Path, error: StoreInUseError) -> Check:
    """Another process owns it: ours is how it should be with a service, another tool is not."""
    holder = read_holder(store)
    if holder is None or not files.lock_is_held(store):
        return Check("store", State.BAD, str(error))
    where = f", answers at {holder.endpoint}" if holder.endpoint else ""
    owner = f"process {holder.pid} (since {holder.started}{where})"
    return Check("store", State.LOOK, f"is in use by {owner}; what is in it was not looked at", f"ps -fp {holder.pid}")


# Versions and policy --------------------------------------------------------------------------------------------------


def check_versions() -> Check:
    """What runs here."""
    ours = f"stopcause {__version__}, classifier {CLASSIFIER_VERSION}"
    return Check("versions", State.OK, f"{ours}, DuckDB {duckdb.__version__}, Python {platform.python_version()}")


def check_policy(path: Path | None) -> tuple[Policy | None, Check]:
    """The policy that runs are judged by now; None where it cannot be used."""
    try:
        policy = load_policy(path)
    except PolicyError as error:
        said = f"{path} cannot be used: {count(len(error.problems), 'fault')}. No command can judge by it"
        return None, Check("policy", State.BAD, said, Hint(("policy", "check")))
    except InputError as error:
        return None, Check("policy", State.BAD, str(error), Hint(("policy", "check")))
    where = path or "built in; there is none beside the store"
    return policy, Check("policy", State.OK, f"{policy.id} {policy.version}, digest {policy.digest} ({where})")


# In the store ---------------------------------------------------------------------------------------------------------


def check_store(opened: DuckStore, store: Path, *, had_log: bool) -> Check:
    """That it opens, what shape it has, and how much is in it."""
    counts = opened.counts()
    version = opened.ask("SELECT tags['storage_version'] FROM duckdb_databases() WHERE NOT internal").rows[0][0]
    steps = opened.ask("SELECT count(*) FROM schema_migrations").rows[0][0]
    size = files.megabytes(store.stat().st_size)
    said = f"opens: {size}, {count(counts.records, 'record')} of {count(counts.runs, 'run')}"
    said += f"; step {steps} of {len(MIGRATIONS)}, storage {version}"
    if had_log:
        return Check("store", State.LOOK, f"{said}. Its last owner ended without closing it; nothing is lost by that")
    return Check("store", State.OK, said)


def check_stale(opened: DuckStore, policy: Policy) -> Check:
    """Verdicts that another policy or another version of the rules gave."""
    stale = sum(hour.rows for hour in opened.stale(policy.digest, CLASSIFIER_VERSION))
    if not stale:
        return Check("verdicts", State.OK, "all are by the policy in force and this version of the rules")
    said = f"{count(stale, 'verdict')} by another policy or other rules; the next reading command judges them anew"
    return Check("verdicts", State.LOOK, said, Hint(("runs",)))


def check_lost(opened: DuckStore, _policy: Policy, now: datetime) -> Check:
    """Records that writers say they lost, and numbers that are missing in between."""
    first, span = _lines_since(opened, now)
    row = _row(opened, "doctor_lost", hour=first)
    if not row["dropped"] and not row["missing"]:
        return Check("gaps", State.OK, f"no record of {span} is missing")
    said, run = [], row["dropped_in"] or row["hole_in"]
    if row["dropped"]:
        said.append(f"writers lost {count(row['dropped'], 'record')}: their queue was full or their disk was")
    if row["missing"]:
        runs = count(row["runs_with_holes"], "run")
        said.append(f"{count(row['missing'], 'number')} missing between the records of {runs}")
    return Check("gaps", State.BAD, f"{span}: {'; '.join(said)}", Hint(("explain",), "", pasted(run)))


def check_open(opened: DuckStore, _policy: Policy, now: datetime) -> Check:
    """Runs without an end whose lease is over, or that never had one."""
    row = _row(opened, "doctor_open", hour=_hour(now, _DAYS), now=naive(now))
    if not row["over"] and not row["unknown"]:
        return Check("open", State.OK, f"no run of the last {_DAYS}d is without an end beyond its lease")
    said = [f"{count(row['over'], 'run')} without an end beyond the lease"] if row["over"] else []
    said += [f"{count(row['unknown'], 'run')} without an end or a lease"] if row["unknown"] else []
    newest = Hint(("explain",), "", pasted(row["newest"]))
    return Check("open", State.LOOK, f"last {_DAYS}d: {', '.join(said)}", newest)


def check_kinds(opened: DuckStore, _policy: Policy, _now: datetime) -> Check:
    """Records of kinds that this version does not know, in the store and in what a newer one put into the journal."""
    unknown = {kind: number for kind, number in opened.counts().kinds.items() if kind not in model.MODELS}
    unread = files.unread_lines(opened.path) if opened.path else 0
    if not unknown and not unread:
        return Check("kinds", State.OK, "every record is of a kind that this version knows")
    said = [f"{count(sum(unknown.values()), 'record')} of kinds that this version does not know"] if unknown else []
    said += [f"{count(unread, 'line')} of the journal's end that this version cannot read"] if unread else []
    upgrade = "pip install -U 'stopcause[server]'"
    return Check("kinds", State.LOOK, f"{', '.join(said)}: kept, and not judged", upgrade)


def check_clock(opened: DuckStore, policy: Policy, now: datetime) -> Check:
    """Records of the future, and clocks that were put back."""
    skew = policy.defaults.clock_skew
    row = _row(opened, "doctor_clock", hour=_hour(now, _DAYS), soon=naive(now + skew), skew=skew)
    if row["ahead"]:
        said = f"{count(row['ahead'], 'record')} of the future, up to {age(_aware(row['newest']) - now)} ahead"
        return Check("clock", State.BAD, f"{said}: a writer's clock is wrong, or this one's", _explain(row["ahead_in"]))
    if row["back"]:
        said = (
            f"{count(row['back'], 'time')} a writer's clock went back by more than {skew.total_seconds():g}s in a run"
        )
        return Check("clock", State.LOOK, said, _explain(row["back_in"]))
    return _late(opened, row["newest"])


def _late(opened: DuckStore, newest: datetime | None) -> Check:
    """Whether what was written last is old by its own clock: an import, or a writer whose clock is behind."""
    written = files.journal_written_at(opened.path) if opened.path else None
    if newest is None or written is None or written - _aware(newest) < _LATE:
        return Check("clock", State.OK, "no record is of the future, and none was made before an older one")
    behind = age(written - _aware(newest))
    said = f"the newest record was {behind} old when it came: an import of old files, or a clock that is behind"
    return Check("clock", State.LOOK, said, "date -u")


def check_silent(opened: DuckStore, _policy: Policy, now: datetime) -> Check:
    """Services that say nothing for much longer than they use to: what the report of that name finds."""
    found = run_report(opened, _SILENT, {}, now)
    if not found.rows:
        return Check("silent", State.OK, "no service is silent for longer than it uses to be")
    names = [column.name for column in found.columns]
    silent = [dict(zip(names, row, strict=True)) for row in found.rows]
    named = ", ".join(f"{each['service']} {age(now - each['last_at'])}" for each in silent[:_NAMED])
    more = f" and {len(silent) - _NAMED} more" if len(silent) > _NAMED else ""
    said = f"no record of {named}{more}: much longer than usual"
    return Check("silent", State.LOOK, said, Hint(("report",), "", _SILENT))


def check_judging(opened: DuckStore, _policy: Policy, now: datetime) -> Check:
    """Runs that the classifier failed on."""
    kinds = [str(kind) for kind in model.MODELS]
    row = _row(opened, "doctor_unjudged", hour=_hour(now, _DAYS), kinds=kinds)
    if not row["runs"]:
        return Check("judging", State.OK, f"every run of the last {_DAYS}d has a verdict")
    said = f"{count(row['runs'], 'run')} could not be judged; the records are kept. Please report this"
    return Check("judging", State.BAD, said, _explain(row["one"]))


def check_bounds(opened: DuckStore, _policy: Policy, now: datetime) -> Check:
    """Runs that nothing would have stopped."""
    row = _row(opened, "doctor_unbounded", hour=_hour(now, _DAYS))
    if not row["runs"]:
        return Check("bounds", State.OK, f"every run of the last {_DAYS}d declared a limit")
    agents = count(row["agents"], "agent")
    said = f"{count(row['runs'], 'run')} of {agents} declared no limit of steps, tokens, cost or time"
    return Check("bounds", State.LOOK, f"last {_DAYS}d: {said}", Hint(("report",), "", "unbounded"))


_INSIDE: tuple[tuple[str, Inside], ...] = (
    ("gaps", check_lost),
    ("open", check_open),
    ("judging", check_judging),
    ("kinds", check_kinds),
    ("clock", check_clock),
    ("silent", check_silent),
    ("bounds", check_bounds),
)


def _explain(run_id: str | None) -> Hint | None:
    return Hint(("explain",), "", pasted(run_id)) if run_id else None


def _row(opened: DuckStore, query: str, **parameters: object) -> dict[str, Any]:
    """The only row of a query, by the names of its columns."""
    answer = opened.ask(text(query), parameters)
    return dict(zip(answer.names, answer.rows[0], strict=True))


def _lines_since(opened: DuckStore, now: datetime) -> tuple[int, str]:
    """From which hour on lines are read, so that there are not too many, and how that is called."""
    first, total, hour = _hour(now, _DAYS), 0, 0
    for hour, records in opened.ask(text("doctor_hours"), {"hour": first}).rows:
        total += records
        if total > _MOST_LINES:
            return hour, f"the last {int(now.timestamp() // 3600) - hour + 1}h"
    return first, f"the last {_DAYS}d"


def _hour(now: datetime, days: int) -> int:
    return int((now - timedelta(days=days)).timestamp() // 3600)


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)
