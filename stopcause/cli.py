"""The command line: parse, one call, print. What a command needs is imported inside it, so that help does not wait.

Tables on a terminal, JSON lines in a pipe; hints, progress and freshness on stderr. Exit codes: 0, also for lists that
are empty; 1 where something falls short or a line was set aside; 2 for usage and for what cannot be read.
"""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from typer.core import TyperGroup

from stopcause import __version__, settings
from stopcause.errors import InputError, NotFoundError, PolicyError, StopcauseError

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.classifier.policy import Policy
    from stopcause.classifier.verdict import VerdictName
    from stopcause.pipeline.attention import Scope
    from stopcause.pipeline.cases import Input
    from stopcause.pipeline.keeper import Keeper
    from stopcause.render.screen import Screen
    from stopcause.render.views import Explained, Window

_RUNS_SHOWN = 40
_INTERRUPTED, _PIPE_CLOSED = 130, 141  # what a shell expects of a program that Ctrl-C or a closed pipe ended


class _Door(TyperGroup):
    """Errors of ours become one line; Ctrl-C and a closed pipe end quietly."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer's own click, whose types are private
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except StopcauseError as error:
            _complain(error)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
            raise typer.Exit(_PIPE_CLOSED) from None
        return result


def _complain(error: StopcauseError) -> None:
    problems = error.problems if isinstance(error, PolicyError) else ()
    for message in [f"{each.place}: {each.message}" for each in problems] or [str(error)]:
        typer.echo(f"stopcause: {message}", err=True)


app = typer.Typer(
    cls=_Door,
    name="stopcause",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Why did the agent stop, and is the work there?",
)
policy_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at a policy.")
app.add_typer(policy_app, name="policy")


class Format(StrEnum):
    """How to print a list."""

    TABLE = "table"
    JSONL = "jsonl"


class NoteFormat(StrEnum):
    """How to print one run."""

    TABLE = "table"
    JSONL = "jsonl"
    MD = "md"


def _checked(context: typer.Context, parameter: typer.CallbackParam, text: str | None) -> str | None:
    """A list of verdicts that are none is told before anything is read."""
    del context
    _verdicts(text, parameter.opts[0])
    return text


StorePath = Annotated[Path | None, typer.Option("--store", help="The store; else STOPCAUSE_STORE, else your own.")]
PolicyPath = Annotated[Path | None, typer.Option("--policy", help="A policy file, or a folder of them.")]
Output = Annotated[Format | None, typer.Option("--format", "-o", help="Else a table on a terminal, jsonl in a pipe.")]
NoteOutput = Annotated[NoteFormat | None, typer.Option("--format", "-o", help="md is a note for a channel.")]
Utc = Annotated[bool, typer.Option("--utc", help="Times in UTC instead of the local zone.")]
FailOn = Annotated[
    str | None, typer.Option("--fail-on", callback=_checked, help="Exit 1 if a run has one of these: VERDICT,...")
]
Now = Annotated[str | None, typer.Option("--now", help="Judge as of this time: 2026-11-28T08:00:00Z.")]


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a name with letters that the terminal does not have is no error
    app()


def _show_version(asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if asked:
        typer.echo(f"stopcause {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which one it is.")
    ] = False,
) -> None:
    del version


# Commands without a store ---------------------------------------------------------------------------------------------


@app.command()
def demo(*, utc: Utc = False) -> None:
    """Judge the published cases and 17 recorded runs, and explain one. No network, no model."""
    from stopcause.pipeline.demo import new_store, run_demo
    from stopcause.render import screen as screens

    screen = screens.screen("table", utc=utc)
    for part in run_demo(new_store(), screen.pen, screen.caller.program):
        screens.write([*part, ""])


@app.command()
def replay(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="[PATH]...", show_default=False)] = None,
    policy: PolicyPath = None,
    output: Output = None,
) -> None:
    """Judge cases and hold them against what they must get. Without a PATH: the 11 published ones."""
    from stopcause.pipeline.replay import replay_files
    from stopcause.render import lines, tables
    from stopcause.resources import data_folder

    article = data_folder("fixtures") / "article"
    published = [path.resolve() for path in paths or [article]] == [article.resolve()]
    result = replay_files(paths or [article], _policy(policy))
    screen = _screen(output)
    screen.show(
        lambda pen: tables.replay_screen(result, pen, published=published), lambda: lines.replay_objects(result)
    )
    bad = [screen.path(case.path) for case in result.cases if not case.ok]
    screen.hint(*((f"explain {path}", "why it got that") for path in bad[:2]), ("rules", "how it is judged"))
    _exit_unless(result.ok)


@app.command()
def classify(
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", show_default=False)] = "-",
    policy: PolicyPath = None,
    now: Now = None,
    output: Output = None,
    fail_on: FailOn = None,
) -> None:
    """Judge the runs of a file of records or of a case file. Nothing is kept."""
    from stopcause.pipeline import cases
    from stopcause.render import lines, tables

    given = _read(file)
    verdicts = list(cases.judge_input(given, _policy(policy), _time(now)))
    screen = _screen(output)
    screen.show(lambda pen: tables.verdicts_table(verdicts, pen), lambda: map(lines.verdict_object, verdicts))
    if file != "-":
        path = screen.path(Path(file))
        screen.hint((f"explain {path}", "its first run"), (f"ingest {path}", "keep it"))
    _fail_on(fail_on, [verdict.verdict for verdict in verdicts])
    _exit_unless(not given.errors)


@app.command()
def rules(output: Output = None) -> None:
    """The eight rules in the order in which they are tried."""
    from stopcause.render import lines, tables

    screen = _screen(output)
    screen.show(tables.rules_screen, lines.rule_objects)
    screen.hint(("replay", "each of them on a published case"))


@app.command()
def schema() -> None:
    """The wire format as JSON Schema."""
    import json

    from stopcause.render.schema import wire_schema

    typer.echo(json.dumps(wire_schema(), indent=2))


@policy_app.command("check")
def policy_check(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", show_default=False)] = None,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Find what is wrong, or never reached, in a policy file or folder."""
    from stopcause.pipeline.policy_file import check_policy
    from stopcause.render import reports

    path = settings.policy_path(settings.store_path(store), file)
    if path is None:
        typer.echo("No policy beside the store and no STOPCAUSE_POLICY: the built-in defaults hold.", err=True)
        return
    policy, faults = check_policy(path)
    _screen(output).show(
        lambda pen: reports.policy_screen(str(path), policy, faults, pen), lambda: reports.fault_objects(faults)
    )
    _exit_unless(policy is not None)


# Commands with a store ------------------------------------------------------------------------------------------------


@app.command()
def ingest(
    sources: Annotated[list[str], typer.Argument(metavar="PATH...|-", show_default=False)],
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Take records and case files into the store. Bad lines are set aside and named; twice is once."""
    from stopcause.pipeline.ingest import ingest as run_ingest
    from stopcause.pipeline.keeper import Keeper
    from stopcause.render import reports
    from stopcause.render.screen import progress

    path, now = settings.store_path(store), _now()
    opened = [_standard_input("ingest") if source == "-" else Path(source) for source in sources]
    with Keeper.open(path, _loaded(settings.policy_path(path)), now) as keeper, progress() as watch:
        report = run_ingest(opened, keeper, now, progress=watch)
    taken = reports.Taken(*(getattr(report, field) for field in reports.Taken._fields))
    screen = _screen(output, store)
    screen.show(lambda _pen: reports.ingest_screen(taken, now), lambda: [reports.ingest_object(taken)])
    for line in reports.set_aside_lines(taken):
        typer.echo(line, err=True)
    screen.hint(("runs --attention", "what needs somebody"), ("waiting", "what waits for an answer"))
    _exit_unless(not report.set_aside)


@app.command()
def runs(  # noqa: PLR0913 - one argument an option
    *,
    attention: Annotated[bool, typer.Option("--attention", help="Only what needs somebody, in groups.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Since the first record, and nothing left out.")] = False,
    verdict: Annotated[str | None, typer.Option("--verdict", callback=_checked, help="Only these: VERDICT,...")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent's.")] = None,
    since: Annotated[str, typer.Option("--since", help="How far back: 30m, 24h, 7d.")] = "24h",
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """The runs of the store with their verdicts, or what of them needs somebody."""
    from stopcause.pipeline.attention import Scope

    screen, names = _screen(output, store, utc=utc), _verdicts(verdict)
    with _reading(store, screen) as (keeper, now):
        window = _window(keeper, now, since, everything=everything)
        show = _show_attention if attention else _show_runs
        found = show(screen, keeper, Scope(window, agent, names, everything))
        screen.fresh(window)
    _fail_on(fail_on, found)


@app.command()
def waiting(store: StorePath = None, output: Output = None, *, utc: Utc = False, fail_on: FailOn = None) -> None:
    """What waits for an answer, what it lacks, and until when."""
    from stopcause.pipeline import attention
    from stopcause.render import lines, tables
    from stopcause.render.pen import pasted

    screen = _screen(output, store, utc=utc)
    with _reading(store, screen) as (keeper, now):
        waits = attention.wait_lines_of(keeper, now)
        window = _window(keeper, now, "24h", everything=True)
        screen.show(lambda pen: tables.waiting_table(waits, window, pen), lambda: map(lines.wait_object, waits))
        screen.hint(*((f"explain {pasted(wait.run_id)}", "the first of them") for wait in waits[:1]))
        screen.fresh(window)
    _fail_on(fail_on, [wait.verdict for wait in waits])


@app.command()
def explain(
    name: Annotated[str, typer.Argument(metavar="RUN|GROUP|FILE", show_default=False)],
    store: StorePath = None,
    policy: PolicyPath = None,
    output: NoteOutput = None,
    *,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """Why a run got its verdict: rules, evidence, what to do."""
    screen = _screen(output, store, utc=utc)
    if policy and not _is_file(name):
        raise typer.BadParameter("only for a FILE; a run of the store has the policy beside it", param_hint="--policy")
    it = _explained_file(name, policy) if _is_file(name) else _explained_run(name, store, screen)
    _show_explained(screen, it, as_note=output is NoteFormat.MD)
    screen.hint((f"explain {shlex.quote(name)} --format md", "the same for a channel"), ("rules", "how it is judged"))
    _fail_on(fail_on, [it.verdict.verdict])


# What commands share --------------------------------------------------------------------------------------------------


def _now() -> datetime:
    return datetime.now(UTC)


def _screen(output: Format | NoteFormat | None, store: Path | None = None, *, utc: bool = False) -> Screen:
    from stopcause.render.screen import screen

    return screen(output, utc=utc, store=store)


def _policy(path: Path | None) -> Policy | None:
    """The policy that a command was given, if any."""
    return _loaded(path) if path else None


def _loaded(path: Path | None) -> Policy:
    from stopcause.pipeline.policy_file import load_policy

    return load_policy(path)


def _time(text: str | None) -> datetime | None:
    from stopcause.receipts.model import parse_time

    try:
        return parse_time(text) if text else None
    except ValueError:
        raise typer.BadParameter("give a time with offset, as 2026-11-28T08:00:00Z", param_hint="--now") from None


def _verdicts(text: str | None, option: str = "") -> tuple[VerdictName | None, ...]:
    """A list of verdicts; RUNNING is a run that has none yet."""
    from stopcause.classifier.verdict import VerdictName

    known: dict[str, VerdictName | None] = {**{str(name): name for name in VerdictName}, "RUNNING": None}
    words = [word.strip().upper() for word in text.split(",")] if text else []
    if unknown := [word for word in words if word not in known]:
        raise typer.BadParameter(f"no verdict is called {unknown[0]!r}; one of {', '.join(known)}", param_hint=option)
    return tuple(known[word] for word in words)


def _fail_on(text: str | None, found: Sequence[str | None]) -> None:
    """Exit with 1 where one of the verdicts is there."""
    wanted = _verdicts(text)
    _exit_unless(not (text and any(name in found for name in wanted)))


def _exit_unless(fine: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not fine:
        raise typer.Exit(1)


# Input ----------------------------------------------------------------------------------------------------------------


def _standard_input(command: str) -> BinaryIO:
    if sys.stdin.isatty():
        raise InputError(f"nothing is piped in; write `{command} FILE`, or `... | {command} -`")
    return sys.stdin.buffer


def _read(name: str) -> Input:
    """A file, or what is piped in. Bad lines are named on stderr; only where nothing is left is that an error."""
    from stopcause.pipeline import cases

    path = Path("stdin" if name == "-" else name)
    given = cases.read_input(path, _standard_input("classify").read() if name == "-" else cases.read_bytes(path))
    for error in given.errors:
        typer.echo(f"{path}: {error}", err=True)
    if not given.cases and not given.records:
        fault = "no line of it is a record" if given.errors else "it is empty"
        raise InputError(f"{path}: {fault}; `schema` shows what a record is")
    return given


def _is_file(name: str) -> bool:
    return name == "-" or Path(name).is_file()


def _explained_file(name: str, policy: Path | None) -> Explained:
    from stopcause.pipeline import cases

    it = cases.explain_input(_read(name), _policy(policy), None)
    if it is None:
        raise InputError(f"{name}: no run in it; a run begins with run.started or run.stopped")
    return it


# The store ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reading(store: Path | None, screen: Screen, wanted: str = "") -> Iterator[tuple[Keeper, datetime]]:
    """The store, settled as of now and judged by its present policy. Where it has no run, says what to do and ends."""
    from stopcause.pipeline.keeper import Keeper

    path, now = settings.store_path(store), _now()
    if not path.exists():
        _nothing_yet(screen, wanted)
    with Keeper.open(path, _loaded(settings.policy_path(path)), now) as keeper:
        if keeper.store.is_empty():
            _nothing_yet(screen, wanted)
        if stale := keeper.stale_policy():
            typer.echo(f"The policy has changed: judging {stale} verdicts anew.", err=True)
            keeper.rejudge(now)
        keeper.settle(now)
        yield keeper, now


def _nothing_yet(screen: Screen, wanted: str) -> None:
    """An empty store is no error, unless a run of it was asked for: exit 0, and the way on."""
    if wanted:
        raise NotFoundError(f"No run {wanted!r}: this store has no records yet. `ingest` some first.")
    typer.echo("No runs yet: nothing has reported to this store.", err=not screen.is_table)
    screen.hint(("ingest runs.jsonl", "takes in records from a file"), ("demo", "shows it on recorded runs"))
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
    newest = [(f"explain {pasted(row.run_id)}", "the newest of them") for row in rows[:1]]
    screen.hint(*newest, ("runs --attention", "what needs somebody"))
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

    with _reading(store, screen, name) as (keeper, now):
        return attention.explained(keeper, name, now)


def _show_explained(screen: Screen, it: Explained, *, as_note: bool) -> None:
    from stopcause.render import lines
    from stopcause.render.explain import explain_note, explain_screen

    form = explain_note if as_note else explain_screen
    screen.show(lambda pen: form(it, pen), lambda: [lines.verdict_object(it.verdict)])
