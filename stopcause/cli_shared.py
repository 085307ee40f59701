"""What the commands of every `cli*.py` share: the clock, the screen, the policy, input, and the store to read from.

Parse, one call, print: what is here is only the way in and out. Each command imports what it needs inside itself.
"""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from stopcause import settings
from stopcause.errors import InputError, NotFoundError
from stopcause.render import options
from stopcause.render.caller import Argument, Hint
from stopcause.render.door import PANELS, complain

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.classifier.policy import Policy
    from stopcause.pipeline.cases import Input
    from stopcause.pipeline.keeper import Keeper
    from stopcause.pipeline.spool import TakenIn
    from stopcause.render.screen import Screen
    from stopcause.render.spool import FromSpool
    from stopcause.render.views import Window

_NO_LETTER = re.compile(r"[^A-Za-z0-9._:/@#+=~-]+")  # of an identifier
_PATIENCE_S = 2.0  # with who has the store
_NAMED = 5  # runs that could not be judged
START, STORED, TOLD, FILES, KEPT, REFERENCE = PANELS


def clock() -> datetime:
    """The present time, the only place that asks for it."""
    return datetime.now(UTC)


def screen_for(output: str | None, store: Path | None = None, *, utc: bool = False) -> Screen:
    """How this call prints: a table on a terminal or where it is asked for, else JSON lines."""
    from stopcause.render.screen import screen

    return screen(output, utc=utc, store=store)


def same_policy(policy: Path | None) -> tuple[Argument, ...]:
    """The policy that a command was given, for a hint that has to judge by the same."""
    return ("--policy", policy) if policy else ()


def policy_of(path: Path | None) -> Policy | None:
    """The policy that a command was given, if any."""
    return loaded_policy(path) if path else None


def loaded_policy(path: Path | None) -> Policy:
    """The policy of a file or folder; the built-in defaults where there is none."""
    from stopcause.pipeline.policy_file import load_policy

    return load_policy(path)


def fail_on(text: str | None, found: Sequence[str | None]) -> None:
    """Exit with 1 where one of the verdicts is there."""
    wanted = options.verdicts_of(text)
    exit_unless(not (text and any(name in found for name in wanted)))


def exit_unless(fine: bool) -> None:  # noqa: FBT001 - reads as a sentence
    """Exit with 1 where something falls short."""
    if not fine:
        raise typer.Exit(1)


def actor_of(named: str | None) -> str:
    """Who says it: as named, else who is logged in here, whatever that name is made of."""
    import os
    import pwd

    if named:
        return named
    try:
        login = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a user that this machine does not know, as in many containers
        login = f"uid-{os.geteuid()}"
    return f"user:{_NO_LETTER.sub('_', login)}"


# Input ----------------------------------------------------------------------------------------------------------------


def standard_input(command: str) -> BinaryIO:
    """What is piped in; an error where nothing is."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(f"nothing is piped in; write `{command} FILE`, or `... | {command} -`")
    return sys.stdin.buffer


def read_file(name: str, command: str) -> Input:
    """A file, or what is piped in. Bad lines are named on stderr; only where nothing is left is that an error."""
    from stopcause.pipeline import cases

    path = Path("stdin" if name == "-" else name)
    given = cases.read_input(path, standard_input(command).read() if name == "-" else cases.read_bytes(path))
    for error in given.errors:
        complain(f"{path}: {error}")
    if not given.cases and not given.records:
        fault = "no line of it is a record" if given.errors else "it is empty"
        raise InputError(f"{path}: {fault}; `schema` shows what a record is")
    return given


def is_file(name: str) -> bool:
    """Whether a name is a file, or standard input; a folder is an error."""
    if "/" in name and Path(name).is_dir():
        raise InputError(f"{name}: is a folder; name one of its files")
    return name == "-" or Path(name).is_file()


# The store ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def reading(store: Path | None, screen: Screen, wanted: str = "") -> Iterator[tuple[Keeper, datetime]]:
    """The store, with what hooks left in the spool, settled as of now and judged by its present policy.

    Where it has no run, says what to do and ends.
    """
    from stopcause.pipeline.keeper import journal_folder
    from stopcause.pipeline.spool_files import has_records

    path, now = settings.store_path(store), clock()
    spool = spool_for(path)
    is_there = path.exists() or journal_folder(path).exists()  # a store that is gone is made again from its journal
    if not is_there and not (spool and has_records(spool)):
        complain_of_waiting(path)
        nothing_yet(screen, wanted)
    with _opened(path, now) as keeper:
        if spool:
            take_in_spool(spool, keeper, now)
        if keeper.store.is_empty():
            complain_of_waiting(path)
            nothing_yet(screen, wanted)
        if stale := keeper.stale_policy():
            complain(f"The policy has changed: judging {stale} verdicts anew.")
            keeper.rejudge(now)
        keeper.settle(now)
        complain_of_unjudged(keeper)
        yield keeper, now


def _opened(path: Path, now: datetime) -> Keeper:
    """The store; where another process has it, after a moment: a sidecar lets go of it again and again."""
    import time

    from stopcause.errors import StoreInUseError
    from stopcause.pipeline.keeper import Keeper

    policy, until = loaded_policy(settings.policy_path(path)), time.monotonic() + _PATIENCE_S
    while True:
        try:
            return Keeper.open(path, policy, now)
        except StoreInUseError:
            if time.monotonic() >= until:
                raise
        time.sleep(_PATIENCE_S / 20)


def spool_for(store: Path) -> Path | None:
    """The spool that a command takes in before it reads a store; None where hooks do not report to that one."""
    from stopcause.pipeline.spool_files import is_usual

    return settings.spool_dir() if is_usual(store) else None


def complain_of_waiting(store: Path) -> None:
    """Where a store has nothing because hooks report to another, or this user may not read the spool, that is said."""
    from stopcause.pipeline.spool_files import files_of, has_records, is_usual

    with contextlib.suppress(InputError):  # this user has no spool
        spool = settings.spool_dir()
        try:
            files_of(spool)
        except OSError as error:
            complain(f"stopcause: {spool}: {error.strerror}; what hooks left there stays there")
        if not is_usual(store) and has_records(spool):
            complain(f"stopcause: {spool} has records for {settings.store_path()}, the usual store.")


def take_in_spool(spool: Path, keeper: Keeper, now: datetime) -> None:
    """What hooks left. A disk that is full keeps nobody from reading what is in the store already."""
    from stopcause.errors import StoreFullError
    from stopcause.pipeline.spool import take_in
    from stopcause.render.spool import spool_complaints

    try:
        taken = take_in(spool, keeper, now)
    except StoreFullError as error:
        complain(f"stopcause: {error} What hooks left stays in {spool}.")
        return
    for line in spool_complaints(spool, from_spool(taken)):
        complain(f"stopcause: {line}")


def from_spool(taken: TakenIn) -> FromSpool:
    """What was taken in, as it is shown."""
    from stopcause.render.spool import FromSpool

    return FromSpool(*(getattr(taken, field) for field in FromSpool._fields))


def complain_of_unjudged(keeper: Keeper) -> None:
    """A run that the classifier failed on is kept; that its verdict is missing or old must not pass in silence."""
    for run_id, error in keeper.unjudged[:_NAMED]:
        complain(f"stopcause: run {run_id} could not be judged ({error}); its records are kept. Please report this.")
    if (more := len(keeper.unjudged) - _NAMED) > 0:
        complain(f"stopcause: and {more} more runs")


def nothing_yet(screen: Screen, wanted: str) -> None:
    """An empty store is no error, unless a run of it was asked for: exit 0, and the way on."""
    if wanted:
        raise NotFoundError(f"No run {wanted!r}: this store has no records yet. `ingest` some first.")
    typer.echo("No runs yet: nothing has reported to this store.", err=not screen.is_table)
    screen.hint(
        Hint(("doctor", "--wait"), "waits for the first record and says what it is"),
        Hint(("ingest", "runs.jsonl"), "takes in records from a file"),
        Hint(("demo",), "shows it on recorded runs"),
    )
    raise typer.Exit(0)


def window_of(keeper: Keeper, now: datetime, since: str, *, everything: bool = False) -> Window:
    """What a list covers: `since` back from now, or from the newest record where that is older."""
    from stopcause.classifier.policy import parse_duration
    from stopcause.pipeline.attention import window

    try:
        span = parse_duration(since)
    except ValueError:
        raise typer.BadParameter("write 30m, 24h or 7d", param_hint="--since") from None
    newest = keeper.store.newest_at(now + keeper.policy.defaults.clock_skew)
    return window(now, span, "" if everything else since, newest)
