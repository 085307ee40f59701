"""The command line: parse, one call, print. What a command needs is imported inside it, so that help does not wait.

Tables on a terminal, JSON lines in a pipe; hints, progress and freshness on stderr. Exit codes: 0, also for lists that
are empty; 1 where something falls short or a line was set aside; 2 for usage and for what cannot be read.
"""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from stopcause import __version__, settings
from stopcause.errors import InputError, NotFoundError
from stopcause.render import options
from stopcause.render.caller import Argument, Hint
from stopcause.render.door import Command, Door, Group, complain, open_streams
from stopcause.render.options import FailOn, NoteFormat, NoteOutput, Now, Output, PolicyPath, StorePath, Utc, Verdicts

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.classifier.policy import Policy
    from stopcause.pipeline.attention import Scope
    from stopcause.pipeline.cases import Input
    from stopcause.pipeline.keeper import Keeper
    from stopcause.render.screen import Screen
    from stopcause.render.views import Explained, Window

_RUNS_SHOWN = 40
_NAMED = 5  # runs that could not be judged
_ATTENTION = Hint(("runs", "--attention"), "what needs somebody")
_RULES = Hint(("rules",), "how it is judged")
_FILES_OF_RECORDS = (".json", ".jsonl", ".ndjson")
_FIRST, _STORED, _FILES, _REFERENCE = "Start here", "Your runs", "Files, nothing is kept", "Reference"

app = typer.Typer(
    cls=Door,
    name="stopcause",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Why did the agent stop, and is the work there?",
)
policy_app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check a policy: who owns what, and what done means.",
)
app.add_typer(policy_app, name="policy", rich_help_panel=_REFERENCE)


def main() -> None:
    """Run the command line."""
    open_streams()
    app()


def _show_version(asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if asked:
        typer.echo(f"stopcause {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version of stopcause and end."
        ),
    ] = False,
) -> None:
    del version


@app.command(cls=Command, rich_help_panel=_FIRST)
def demo(*, utc: Utc = False) -> None:
    """Judge published cases and recorded runs, and explain one.

    No network, no model. Its store is its own and is made anew each time.
    """
    from stopcause.pipeline.demo import new_store, run_demo
    from stopcause.render import screen as screens

    screen = screens.screen("table", utc=utc)
    for part in run_demo(new_store(), screen.pen, screen.caller.program):
        screens.write([*part, ""])


# Commands with a store ------------------------------------------------------------------------------------------------


@app.command(cls=Command, rich_help_panel=_STORED)
def ingest(
    sources: Annotated[list[str], typer.Argument(metavar="PATH|-", hidden=True)],
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Take records and case files into the store.

    Lines that are no records are set aside beside the file, each with its line, field and reason; then the exit code
    is 1. What was taken in before is not counted twice.
    """
    from stopcause.pipeline.ingest import ingest as run_ingest
    from stopcause.pipeline.keeper import Keeper
    from stopcause.render import reports
    from stopcause.render.screen import progress

    path, now = settings.store_path(store), _now()
    opened = [_standard_input("ingest") if source == "-" else Path(source) for source in sources]
    with Keeper.open(path, _loaded(settings.policy_path(path)), now) as keeper, progress() as watch:
        report = run_ingest(opened, keeper, now, progress=watch)
        _complain_of_unjudged(keeper)
    taken = reports.Taken(*(getattr(report, field) for field in reports.Taken._fields))
    screen = _screen(output, store)
    screen.show(lambda _pen: reports.ingest_screen(taken, now), lambda: [reports.ingest_object(taken)])
    for line in reports.set_aside_lines(taken):
        complain(line)
    screen.hint(_ATTENTION, Hint(("waiting",), "what waits for an answer"))
    _exit_unless(not report.set_aside)


@app.command(cls=Command, rich_help_panel=_STORED)
def runs(  # noqa: PLR0913 - one argument an option
    *,
    attention: Annotated[bool, typer.Option("--attention", help="Only what needs somebody, in groups.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Since the first record, and nothing left out.")] = False,
    verdict: Verdicts = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent's.")] = None,
    since: Annotated[str, typer.Option("--since", metavar="AGE", help="How far back: 30m, 24h, 7d.")] = "24h",
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """List runs with their verdicts, or only what needs somebody."""
    from stopcause.pipeline.attention import Scope

    screen, names = _screen(output, store, utc=utc), options.verdicts_of(verdict)
    with _reading(store, screen) as (keeper, now):
        window = _window(keeper, now, since, everything=everything)
        show = _show_attention if attention else _show_runs
        found = show(screen, keeper, Scope(window, agent, names, everything))
        screen.fresh(window)
    _fail_on(fail_on, found)


@app.command(cls=Command, rich_help_panel=_STORED)
def waiting(store: StorePath = None, output: Output = None, *, utc: Utc = False, fail_on: FailOn = None) -> None:
    """List what waits for an answer, what it lacks, and until when."""
    from stopcause.pipeline import attention
    from stopcause.render import lines
    from stopcause.render.pen import pasted
    from stopcause.render.waits import waiting_table

    screen = _screen(output, store, utc=utc)
    with _reading(store, screen) as (keeper, now):
        waits = attention.wait_lines_of(keeper, now)
        window = _window(keeper, now, "24h", everything=True)
        screen.show(lambda pen: waiting_table(waits, window, pen), lambda: map(lines.wait_object, waits))
        screen.hint(*(Hint(("explain",), "the first of them", pasted(wait.run_id)) for wait in waits[:1]))
        screen.fresh(window)
    _fail_on(fail_on, [wait.verdict for wait in waits])


@app.command(cls=Command, rich_help_panel=_STORED)
def explain(
    name: Annotated[str, typer.Argument(metavar="RUN|GROUP|FILE", hidden=True)],
    store: StorePath = None,
    policy: PolicyPath = None,
    output: NoteOutput = None,
    *,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """Say why a run got its verdict, and what to do now.

    RUN is an id or its end, GROUP a name from `runs --attention`, FILE a case file or a file of records.
    """
    screen = _screen(output, store, utc=utc)
    if policy and not _is_file(name):
        raise typer.BadParameter("only for a FILE; a run of the store has the policy beside it", param_hint="--policy")
    it = _explained_file(name, policy) if _is_file(name) else _explained_run(name, store, screen)
    _show_explained(screen, it, as_note=output is NoteFormat.MD)
    named = Path(name) if _is_file(name) else name
    note = Hint(("explain", "--format", "md", *_same(policy)), "the same for a channel", named)
    screen.hint(*[note] * (output is not NoteFormat.MD and name != "-"), _RULES)
    _fail_on(fail_on, [it.verdict.verdict])


# Commands without a store ---------------------------------------------------------------------------------------------


@app.command(cls=Command, rich_help_panel=_FILES)
def replay(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", hidden=True)] = None,
    policy: PolicyPath = None,
    output: Output = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Show many cases whole too, not only the misses.")] = False,
) -> None:
    """Hold cases against the verdicts that they must get.

    Without a PATH it takes the 11 published cases. Exit code 1 where one falls short.
    """
    from stopcause.pipeline.replay import replay_files
    from stopcause.render import lines
    from stopcause.render.replay import replay_screen
    from stopcause.resources import data_folder

    article = data_folder("fixtures") / "article"
    published = [path.resolve() for path in paths or [article]] == [article.resolve()]
    result = replay_files(paths or [article], _policy(policy))
    screen = _screen(output)
    screen.show(
        lambda pen: replay_screen(result, pen, published=published, everything=everything),
        lambda: lines.replay_objects(result),
    )
    bad = [case.path for case in result.cases if not case.ok]
    screen.hint(*(Hint(("explain", *_same(policy)), "why it got that", path) for path in bad[:2]), _RULES)
    _exit_unless(result.ok)


@app.command(cls=Command, rich_help_panel=_FILES)
def classify(
    file: Annotated[str, typer.Argument(metavar="FILE|-", hidden=True)] = "-",
    policy: PolicyPath = None,
    now: Now = None,
    output: Output = None,
    fail_on: FailOn = None,
) -> None:
    """Judge the runs of a file of records or of a case file.

    Nothing is kept. Exit code 1 where lines could not be read; each is named on stderr.
    """
    from stopcause.pipeline import cases
    from stopcause.render import lines, tables

    given = _read(file, "classify")
    verdicts = list(cases.judge_input(given, _policy(policy), options.time_of(now)))
    screen = _screen(output)
    screen.show(lambda pen: tables.verdicts_table(verdicts, pen), lambda: map(lines.verdict_object, verdicts))
    if file != "-":
        explain_it = Hint(("explain", *_same(policy)), "its first run", Path(file))
        screen.hint(explain_it, Hint(("ingest",), "keep it", Path(file)))
    _fail_on(fail_on, [verdict.verdict for verdict in verdicts])
    _exit_unless(not given.errors)


@app.command(cls=Command, rich_help_panel=_REFERENCE)
def rules(output: Output = None) -> None:
    """Show the eight rules in the order in which they are tried."""
    from stopcause.render import lines, tables

    screen = _screen(output)
    screen.show(tables.rules_screen, lines.rule_objects)
    screen.hint(Hint(("replay",), "each of them on a published case"))


@app.command(cls=Command, rich_help_panel=_REFERENCE)
def schema() -> None:
    """Print the wire format as JSON Schema."""
    import json

    from stopcause.render.schema import wire_schema

    typer.echo(json.dumps(wire_schema(), indent=2))


@policy_app.command("check", cls=Command)
def policy_check(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", hidden=True)] = None,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Find what is wrong, or never reached, in a policy.

    FILE is a .toml file or a folder of them. Without it, the policy in use. Exit code 1 where it cannot be used.
    """
    from stopcause.pipeline.policy_file import check_policy
    from stopcause.render import reports

    path = settings.policy_path(settings.store_path(store), file)
    if path is None:
        complain("No policy beside the store and no STOPCAUSE_POLICY: the built-in defaults hold.")
        return
    policy, faults = check_policy(path)
    _screen(output).show(
        lambda pen: reports.policy_screen(str(path), policy, faults, pen), lambda: reports.fault_objects(faults)
    )
    _exit_unless(policy is not None)


# What commands share --------------------------------------------------------------------------------------------------


def _now() -> datetime:
    return datetime.now(UTC)


def _screen(output: str | None, store: Path | None = None, *, utc: bool = False) -> Screen:
    from stopcause.render.screen import screen

    return screen(output, utc=utc, store=store)


def _same(policy: Path | None) -> tuple[Argument, ...]:
    """The policy that a command was given, for a hint that has to judge by the same."""
    return ("--policy", policy) if policy else ()


def _policy(path: Path | None) -> Policy | None:
    """The policy that a command was given, if any."""
    return _loaded(path) if path else None


def _loaded(path: Path | None) -> Policy:
    from stopcause.pipeline.policy_file import load_policy

    return load_policy(path)


def _fail_on(text: str | None, found: Sequence[str | None]) -> None:
    """Exit with 1 where one of the verdicts is there."""
    wanted = options.verdicts_of(text)
    _exit_unless(not (text and any(name in found for name in wanted)))


def _exit_unless(fine: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not fine:
        raise typer.Exit(1)


# Input ----------------------------------------------------------------------------------------------------------------


def _standard_input(command: str) -> BinaryIO:
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(f"nothing is piped in; write `{command} FILE`, or `... | {command} -`")
    return sys.stdin.buffer


def _read(name: str, command: str) -> Input:
    """A file, or what is piped in. Bad lines are named on stderr; only where nothing is left is that an error."""
    from stopcause.pipeline import cases

    path = Path("stdin" if name == "-" else name)
    given = cases.read_input(path, _standard_input(command).read() if name == "-" else cases.read_bytes(path))
    for error in given.errors:
        complain(f"{path}: {error}")
    if not given.cases and not given.records:
        fault = "no line of it is a record" if given.errors else "it is empty"
        raise InputError(f"{path}: {fault}; `schema` shows what a record is")
    return given


def _is_file(name: str) -> bool:
    if "/" in name and Path(name).is_dir():
        raise InputError(f"{name}: is a folder; name one of its files")
    return name == "-" or Path(name).is_file()


def _explained_file(name: str, policy: Path | None) -> Explained:
    from stopcause.pipeline import cases

    it = cases.explain_input(_read(name, "explain"), _policy(policy), None)
    if it is None:
        raise InputError(f"{name}: no run in it; a run begins with run.started or run.stopped")
    return it


# The store ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reading(store: Path | None, screen: Screen, wanted: str = "") -> Iterator[tuple[Keeper, datetime]]:
    """The store, settled as of now and judged by its present policy. Where it has no run, says what to do and ends."""
    from stopcause.pipeline.keeper import Keeper, journal_folder

    path, now = settings.store_path(store), _now()
    if not path.exists() and not journal_folder(path).exists():  # a store that is gone is made again from its journal
        _nothing_yet(screen, wanted)
    with Keeper.open(path, _loaded(settings.policy_path(path)), now) as keeper:
        if keeper.store.is_empty():
            _nothing_yet(screen, wanted)
        if stale := keeper.stale_policy():
            complain(f"The policy has changed: judging {stale} verdicts anew.")
            keeper.rejudge(now)
        keeper.settle(now)
        _complain_of_unjudged(keeper)
        yield keeper, now


def _complain_of_unjudged(keeper: Keeper) -> None:
    """A run that the classifier failed on is kept; that its verdict is missing or old must not pass in silence."""
    for run_id, error in keeper.unjudged[:_NAMED]:
        complain(f"stopcause: run {run_id} could not be judged ({error}); its records are kept. Please report this.")
    if (more := len(keeper.unjudged) - _NAMED) > 0:
        complain(f"stopcause: and {more} more runs")


def _nothing_yet(screen: Screen, wanted: str) -> None:
    """An empty store is no error, unless a run of it was asked for: exit 0, and the way on."""
    if wanted:
        raise NotFoundError(f"No run {wanted!r}: this store has no records yet. `ingest` some first.")
    typer.echo("No runs yet: nothing has reported to this store.", err=not screen.is_table)
    taking = Hint(("ingest", "runs.jsonl"), "takes in records from a file")
    screen.hint(taking, Hint(("demo",), "shows it on recorded runs"))
    raise typer.Exit(0)


def _window(keeper: Keeper, now: datetime, since: str, *, everything: bool = False) -> Window:
    from stopcause.classifier.policy import parse_duration
    from stopcause.pipeline.attention import window

    try:
        span = parse_duration(since)
    except ValueError:
        raise typer.BadParameter("write 30m, 24h or 7d", param_hint="--since") from None
    return window(now, span, "" if everything else since, keeper.store.newest_at())


def _show_runs(screen: Screen, keeper: Keeper, scope: Scope) -> Sequence[str | None]:
    from stopcause.pipeline import attention
    from stopcause.render import lines, tables
    from stopcause.render.pen import pasted

    rows = attention.rows_of(keeper, scope)
    most = None if scope.everything else _RUNS_SHOWN
    screen.show(
        lambda pen: tables.runs_screen(attention.run_lines(rows), scope.window, pen, most=most),
        lambda: (lines.row_object(row._asdict()) for row in rows),
    )
    newest = [Hint(("explain",), "the newest of them", pasted(row.run_id)) for row in rows[:1]]
    screen.hint(*newest or [Hint(("runs", "--all"), "every run")], _ATTENTION)
    return [row.verdict for row in rows]


def _show_attention(screen: Screen, keeper: Keeper, scope: Scope) -> Sequence[str | None]:
    from stopcause.pipeline import attention
    from stopcause.render import lines, tables

    found, rows = attention.attention_of(keeper, scope)
    screen.show(
        lambda pen: tables.attention_screen(found, scope.window, pen),
        lambda: (lines.row_object(row._asdict()) for row in rows),
    )
    screen.hint(*tables.attention_commands(found))
    return [row.verdict for row in rows]


def _explained_run(name: str, store: Path | None, screen: Screen) -> Explained:
    from stopcause.pipeline import attention

    try:
        with _reading(store, screen, name) as (keeper, now):
            return attention.explained(keeper, name, now)
    except NotFoundError:
        if Path(name).suffix in _FILES_OF_RECORDS:
            raise InputError(f"{name}: no such file, and no run is called so") from None
        raise


def _show_explained(screen: Screen, it: Explained, *, as_note: bool) -> None:
    from stopcause.render import lines
    from stopcause.render.explain import explain_note, explain_screen

    form = explain_note if as_note else explain_screen
    screen.show(lambda pen: form(it, pen), lambda: [lines.verdict_object(it.verdict)])
