"""The command line: parse, one call, print. What a command needs is imported inside it, so that help does not wait.

Tables on a terminal, JSON lines in a pipe; hints, progress and freshness on stderr. Exit codes: 0, also for lists that
are empty; 1 where something falls short or a line was set aside; 2 for usage and for what cannot be read.
"""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from stopcause import __version__, settings
from stopcause.errors import InputError, NotFoundError, PolicyError, StopcauseError

if TYPE_CHECKING:
    import click

    from stopcause.classifier.policy import Policy
    from stopcause.classifier.verdict import VerdictName
    from stopcause.pipeline.cases import Input
    from stopcause.pipeline.keeper import Keeper
    from stopcause.render.hints import Caller, Hint
    from stopcause.render.pen import Pen
    from stopcause.render.views import Window

_RUNS_SHOWN = 40
_INTERRUPTED, _PIPE_CLOSED = 130, 141  # what a shell expects of a program that Ctrl-C or a closed pipe ended


class _Door(TyperGroup):
    """Errors of ours become one line; Ctrl-C and a closed pipe end quietly."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as typer has it
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except PolicyError as error:
            _say(f"stopcause: {problem.place}: {problem.message}" for problem in error.problems)
            raise typer.Exit(error.exit_code) from None
        except StopcauseError as error:
            _say([f"stopcause: {error}"])
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
            raise typer.Exit(_PIPE_CLOSED) from None
        return result


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


Store = Annotated[Path | None, typer.Option("--store", help="The store; else STOPCAUSE_STORE, else the user's own.")]
PolicyFile = Annotated[Path | None, typer.Option("--policy", help="A policy file, or a folder of them.")]
Output = Annotated[Format | None, typer.Option("--format", "-o", help="Else a table on a terminal, jsonl in a pipe.")]
NoteOutput = Annotated[NoteFormat | None, typer.Option("--format", "-o", help="md is a note for a channel.")]
Utc = Annotated[bool, typer.Option("--utc", help="Times in UTC instead of the local zone.")]
FailOn = Annotated[str | None, typer.Option("--fail-on", help="Exit 1 where one has such a verdict: VERDICT,...")]
Now = Annotated[str | None, typer.Option("--now", help="Judge as of this time: 2026-11-28T08:00:00Z.")]


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a name with letters that the terminal does not have is no error
    app()


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it
    if asked:
        typer.echo(f"stopcause {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version_asked: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it.")] = False,
) -> None:
    pass


# Commands without a store ---------------------------------------------------------------------------------------------


@app.command()
def demo(utc: Utc = False) -> None:
    """Judge the published cases and 17 recorded runs, and explain one. Needs no network and no model."""
    from stopcause.render.pen import Pen

    pen = Pen(_colour(), UTC if utc else None)
    for store in _demo_stores():
        with contextlib.suppress(OSError):
            return _run_demo(store, pen)
    raise InputError("no folder can be written for the demo's store; set STOPCAUSE_DATA to one that can")


@app.command()
def replay(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="[PATH]...", show_default=False)] = None,
    policy: PolicyFile = None,
    output: Output = None,
) -> None:
    """Judge cases offline and hold them against what they must get. Without a PATH: the 11 published ones."""
    from stopcause.pipeline.replay import replay as run_replay
    from stopcause.render import lines, tables

    result = run_replay(paths or [_published()], _policy_or_none(policy))
    screen = _Screen(output)
    screen.show(lambda pen: tables.replay_screen(result, pen, published=not paths), lambda: lines.replay_objects(result))
    bad = [case for case in result.cases if not case.ok] or list(result.cases[1:2])
    screen.hint(*(("explain " + screen.path(case.path), "one of them, explained") for case in bad[:1]), ("rules", ""))
    _exit_unless(result.ok)


@app.command()
def classify(
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", show_default=False)] = "-",
    policy: PolicyFile = None,
    now: Now = None,
    output: Output = None,
    fail_on: FailOn = None,
) -> None:
    """Judge the runs of a file of records or of a case file; nothing is kept."""
    from stopcause.pipeline import cases
    from stopcause.render import lines, tables

    given = _read_input(file)
    verdicts = list(cases.judge_input(given, _policy_or_none(policy), _time(now)))
    screen = _Screen(output)
    screen.show(lambda pen: tables.verdicts_table(verdicts, pen), lambda: map(lines.verdict_object, verdicts))
    if file != "-":
        screen.hint((f"explain {screen.path(Path(file))}", "its first run, explained"))
    _fail_on(fail_on, [verdict.verdict for verdict in verdicts])
    _exit_unless(not given.errors)


@app.command()
def rules(output: Output = None) -> None:
    """The eight rules, in the order in which they are tried."""
    from stopcause.render import lines, tables

    screen = _Screen(output)
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
    store: Store = None,
    output: Output = None,
) -> None:
    """Find what is wrong or never reached in a policy file or folder."""
    from stopcause.pipeline.policy_file import check_policy
    from stopcause.render import policy as policy_screen

    path = settings.policy_path(settings.store_path(store), file)
    if path is None:
        _say(["No policy: none beside the store, no STOPCAUSE_POLICY. The built-in defaults hold."])
        return
    policy, faults = check_policy(path)
    screen = _Screen(output)
    screen.show(
        lambda pen: policy_screen.check_screen(str(path), policy, faults, pen),
        lambda: policy_screen.fault_objects(faults),
    )
    _exit_unless(policy is not None)


# Commands with a store ------------------------------------------------------------------------------------------------


@app.command()
def ingest(
    sources: Annotated[list[str], typer.Argument(metavar="PATH...|-", show_default=False)],
    store: Store = None,
    output: Output = None,
) -> None:
    """Take records and case files into the store. Twice is once; bad lines are set aside and named."""
    from stopcause.pipeline.ingest import ingest as run_ingest
    from stopcause.pipeline.keeper import Keeper
    from stopcause.render import ingest as ingest_screen

    path, now = settings.store_path(store), _now()
    opened = [_standard_input() if source == "-" else Path(source) for source in sources]
    with Keeper.open(path, _policy_of(path), now) as keeper, _progress() as progress:
        report = run_ingest(opened, keeper, now, progress=progress)
    screen = _Screen(output, store)
    screen.show(lambda _pen: ingest_screen.report_screen(report), lambda: [ingest_screen.report_object(report)])
    _say(ingest_screen.error_lines(report))
    screen.hint(("runs --attention", "what needs somebody"), ("waiting", "what waits for an answer"))
    _exit_unless(not report.set_aside)


@app.command()
def runs(
    attention: Annotated[bool, typer.Option("--attention", help="Only what needs somebody, grouped.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="From the first record on, and nothing left out.")] = False,
    verdict: Annotated[str | None, typer.Option("--verdict", help="Only these: VERDICT,...")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent's.")] = None,
    since: Annotated[str, typer.Option("--since", help="How far back: 30m, 24h, 7d.")] = "24h",
    store: Store = None,
    output: Output = None,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """The runs of the store with their verdicts; with --attention, what needs somebody."""
    screen = _Screen(output, store, utc=utc)
    names = _verdicts(verdict)
    with _reading(store, screen) as (keeper, now):
        scope = _window(keeper, now, since)
        show = _show_attention if attention else _show_runs
        found = show(screen, keeper, scope, _Wanted(agent, names, everything))
        screen.fresh(scope)
    _fail_on(fail_on, found)


@app.command()
def waiting(store: Store = None, output: Output = None, utc: Utc = False, fail_on: FailOn = None) -> None:
    """What waits for an answer, what it lacks, and until when."""
    from stopcause.pipeline import attention
    from stopcause.render import lines, tables

    screen = _Screen(output, store, utc=utc)
    with _reading(store, screen) as (keeper, now):
        waits = attention.wait_lines_of(keeper, now)
        scope = attention.window(now, now - now, "", keeper.store.newest_at())
        screen.show(lambda pen: tables.waiting_table(waits, scope, pen), lambda: map(lines.wait_object, waits))
        screen.hint(*((f"explain {wait.run_id[-6:]}", "why it waits, and since when") for wait in waits[:1]))
        screen.fresh(scope)
    _fail_on(fail_on, [wait.verdict for wait in waits])


@app.command()
def explain(
    name: Annotated[str, typer.Argument(metavar="RUN|GROUP|FILE", show_default=False)],
    store: Store = None,
    policy: PolicyFile = None,
    output: NoteOutput = None,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """Why a run got its verdict: the rules tried, the evidence, what is missing, what to do."""
