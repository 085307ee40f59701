"""The command line: parse, one call, print. What a command needs is imported inside it, so that help does not wait.

Tables on a terminal, JSON lines in a pipe; hints, progress and freshness on stderr. Exit codes: 0, also for lists that
are empty; 1 where something falls short or a line was set aside; 2 for usage and for what cannot be read.
"""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause import (
    __version__,
    cli_agui,
    cli_care,
    cli_connect,
    cli_export,
    cli_keep,
    cli_otlp,
    cli_outcome,
    cli_policy,
    cli_report,
    cli_triage,
    settings,
)
from stopcause import cli_shared as shared
from stopcause.errors import InputError, NotFoundError
from stopcause.render import completion, options
from stopcause.render.caller import Hint
from stopcause.render.door import Command, Door, complain, open_streams
from stopcause.render.options import FailOn, NoteFormat, NoteOutput, Now, Output, PolicyPath, StorePath, Utc, Verdicts

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.pipeline.attention import Scope
    from stopcause.pipeline.keeper import Keeper
    from stopcause.render.screen import Screen
    from stopcause.render.views import Explained

_SHOWN = 40  # runs or waits, on a terminal
_ATTENTION = Hint(("runs", "--attention"), "what needs somebody")
_RULES = Hint(("rules",), "how it is judged")
_FILES_OF_RECORDS = (".json", ".jsonl", ".ndjson")

app = typer.Typer(
    cls=Door,
    name="stopcause",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Why did the agent stop, and is the work there?",
)


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


@app.command(cls=Command, rich_help_panel=shared.START)
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


@app.command(cls=Command, rich_help_panel=shared.STORED)
def ingest(
    sources: Annotated[list[str] | None, typer.Argument(metavar="PATH|-", hidden=True)] = None,
    store: StorePath = None,
    output: Output = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Take in a spool until ended.")] = False,
) -> None:
    """Take records and case files into the store.

    Lines that are no records are set aside beside the file, each with its line, field and reason; then the exit code
    is 1. What was taken in before is not counted twice. With --follow, PATH is a spool, or yours; what is taken in of
    it goes once nobody writes it any more. SIGTERM and Ctrl-C end it well.
    """
    if follow:
        _follow(sources or [], store, output)
        return
    if not sources:
        raise typer.BadParameter("name a file, a folder or -", param_hint="PATH")
    from stopcause.pipeline.ingest import ingest as run_ingest
    from stopcause.pipeline.keeper import Keeper
    from stopcause.render import reports
    from stopcause.render.screen import progress

    path, now = settings.store_path(store), shared.clock()
    opened = [shared.standard_input("ingest") if source == "-" else Path(source) for source in sources]
    with Keeper.open(path, shared.loaded_policy(settings.policy_path(path)), now) as keeper, progress() as watch:
        report = run_ingest(opened, keeper, now, progress=watch)
        shared.complain_of_unjudged(keeper)
    taken = reports.Taken(*(getattr(report, field) for field in reports.Taken._fields))
    screen = shared.screen_for(output, store)
    screen.show(lambda _pen: reports.ingest_screen(taken, now), lambda: [reports.ingest_object(taken)])
    for line in reports.set_aside_lines(taken):
        complain(line)
    screen.hint(_ATTENTION, Hint(("waiting",), "what waits for an answer"))
    shared.exit_unless(not report.set_aside)


@app.command(cls=Command, rich_help_panel=shared.STORED)
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

    screen, names = shared.screen_for(output, store, utc=utc), options.verdicts_of(verdict)
    with shared.reading(store, screen) as (keeper, now):
        window = shared.window_of(keeper, now, since, everything=everything)
        show = _show_attention if attention else _show_runs
        found = show(screen, keeper, Scope(window, agent, names, everything))
        screen.fresh(window)
    shared.fail_on(fail_on, found)


@app.command(cls=Command, rich_help_panel=shared.STORED)
def waiting(
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every wait, not only the first 40.")] = False,
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """List what waits for an answer, what it lacks, and until when."""
    from stopcause.pipeline import attention
    from stopcause.render import lines
    from stopcause.render.pen import pasted
    from stopcause.render.waits import waiting_table

    screen = shared.screen_for(output, store, utc=utc)
    with shared.reading(store, screen) as (keeper, now):
        waits = attention.wait_lines_of(keeper, now)
        window = shared.window_of(keeper, now, "24h", everything=True)
        most = None if everything else _SHOWN
        screen.show(lambda pen: waiting_table(waits, window, pen, most=most), lambda: map(lines.wait_object, waits))
        screen.hint(*(Hint(("explain",), "the first of them", pasted(wait.run_id)) for wait in waits[:1]))
        screen.fresh(window)
    shared.fail_on(fail_on, [wait.verdict for wait in waits])


@app.command(cls=Command, rich_help_panel=shared.STORED)
def explain(
    name: Annotated[str, typer.Argument(metavar="RUN|GROUP|FILE", hidden=True, autocompletion=completion.runs)],
    store: StorePath = None,
    policy: PolicyPath = None,
    output: NoteOutput = None,
    *,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """Say why a run got its verdict, and what to do now.

    RUN is an id or its end, GROUP a name from `runs --attention`, FILE a case file or a file of records: NAME.json,
    NAME.jsonl, ./NAME or - for standard input.
    """
    screen, is_file = shared.screen_for(output, store, utc=utc), _means_file(name)
    if policy and not is_file:
        raise typer.BadParameter("only for a FILE; a run of the store has the policy beside it", param_hint="--policy")
    it = _explained_file(name, policy) if is_file else _explained_run(name, store, screen)
    _show_explained(screen, it, as_note=output is NoteFormat.MD)
    named = Path(name) if is_file else name
    note = Hint(("explain", "--format", "md", *shared.same_policy(policy)), "the same for a channel", named)
    screen.hint(*[note] * (output is not NoteFormat.MD and name != "-"), _RULES)
    shared.fail_on(fail_on, [it.verdict.verdict])


# Commands without a store ---------------------------------------------------------------------------------------------


@app.command(cls=Command, rich_help_panel=shared.FILES)
def replay(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", hidden=True)] = None,
    policy: PolicyPath = None,
    output: Output = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Show many cases whole too, not only the misses.")] = False,
) -> None:
    """Hold cases against the verdicts that they must get.

    Without a PATH it takes the 11 published cases. Exit code 1 where one falls short, 2 where a file cannot be read.
    """
    from stopcause.pipeline.replay import replay_files
    from stopcause.render import lines
    from stopcause.render.replay import replay_screen
    from stopcause.resources import data_folder

    article = data_folder("fixtures") / "article"
    published = [path.resolve() for path in paths or [article]] == [article.resolve()]
    result = replay_files(paths or [article], shared.policy_of(policy))
    screen = shared.screen_for(output)
    screen.show(
        lambda pen: replay_screen(result, pen, published=published, everything=everything),
        lambda: lines.replay_objects(result),
    )
    bad = [case.path for case in result.cases if not case.ok]
    screen.hint(*(Hint(("explain", *shared.same_policy(policy)), "why it got that", path) for path in bad[:2]), _RULES)
    for fault in result.unreadable:
        complain(f"stopcause: {fault}")
    if result.unreadable:
        raise typer.Exit(InputError.exit_code)
    shared.exit_unless(result.ok)


@app.command(cls=Command, rich_help_panel=shared.FILES)
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

    given = shared.read_file(file, "classify")
    verdicts = list(cases.judge_input(given, shared.policy_of(policy), options.time_of(now)))
    screen = shared.screen_for(output)
    screen.show(lambda pen: tables.verdicts_table(verdicts, pen), lambda: map(lines.verdict_object, verdicts))
    if file != "-":
        explain_it = Hint(("explain", *shared.same_policy(policy)), "its first run", Path(file))
        screen.hint(explain_it, Hint(("ingest",), "keep it", Path(file)))
    shared.fail_on(fail_on, [verdict.verdict for verdict in verdicts])
    shared.exit_unless(not given.errors)


@app.command(cls=Command, rich_help_panel=shared.REFERENCE)
def rules(
    name: Annotated[str | None, typer.Argument(metavar="RULE", hidden=True)] = None,
    output: Output = None,
    *,
    agui: Annotated[bool, typer.Option("--agui", help="Those of AG-UI, which `agui audit` holds streams against.")] = (
        False
    ),
) -> None:
    """Show the eight rules in the order in which they are tried.

    With --agui the rules of AG-UI: whose each is, how much it weighs, and what it does to a verdict. RULE is one of
    these, as R71 or ACTION_WITHOUT_ANSWER: then the whole of it.
    """
    from stopcause.render import lines, tables

    screen = shared.screen_for(output)
    if agui:
        _agui_rules(name, screen)
        return
    if name is not None:
        raise typer.BadParameter("the eight rules are shown together; one of AG-UI's is shown with --agui")
    screen.show(tables.rules_screen, lines.rule_objects)
    screen.hint(Hint(("replay",), "each of them on a published case"))


def _agui_rules(name: str | None, screen: Screen) -> None:
    from stopcause.agui.cards import ELSEWHERE
    from stopcause.pipeline import agui_rules
    from stopcause.render import agui_rules as screens

    if name is None:
        groups = agui_rules.groups()
        cards = [card for group in groups for card in group.lines]
        screen.show(lambda pen: screens.rules_screen(groups, ELSEWHERE, pen), lambda: screens.rule_objects(cards))
        screen.hint(Hint(("rules", "--agui", "R71"), "the whole of one"))
        return
    found = agui_rules.lines_of(name)
    screen.show(lambda pen: screens.card_screen(found, pen), lambda: screens.rule_objects(found))
    screen.hint(Hint(("replay",), "the case in which it is found", agui_rules.case_path(found[0])))


@app.command(cls=Command, rich_help_panel=shared.REFERENCE)
def schema() -> None:
    """Print the wire format as JSON Schema."""
    import json

    from stopcause.render.schema import wire_schema

    typer.echo(json.dumps(wire_schema(), indent=2))


def _follow(sources: Sequence[str], store: Path | None, output: str | None) -> None:
    """One spool into one store, for as long as the process lives."""
    from stopcause.pipeline.spool_follow import follow, until_signalled
    from stopcause.render.spool import FollowScreen

    if len(sources) > 1 or "-" in sources:
        raise typer.BadParameter("name one folder, the spool", param_hint="--follow")
    if store is not None and ":/" in str(store):  # as a path has it, of `https://` one slash is left
        raise typer.BadParameter("name the file of a store; a service cannot be named here yet", param_hint="--store")
    spool, path = Path(sources[0]) if sources else settings.spool_dir(), settings.store_path(store)
    screen = FollowScreen(spool, shared.screen_for(output, store), complain)
    screen.begin(path)
    with until_signalled() as wait:
        for each in follow(spool, path, lambda: shared.loaded_policy(settings.policy_path(path)), shared.clock, wait):
            if each.trouble:
                screen.wait(each.trouble)
            else:
                screen.show(each.at, shared.from_spool(each.taken), each.judged)
    screen.end()


def _means_file(name: str) -> bool:
    """A name that is written as a file's is; a bare one is a run, whatever lies about in this folder."""
    return ("/" in name or name == "-" or Path(name).suffix in _FILES_OF_RECORDS) and shared.is_file(name)


def _explained_file(name: str, policy: Path | None) -> Explained:
    from stopcause.pipeline import cases

    given = shared.read_file(name, "explain")
    it = cases.explain_input(given, shared.policy_of(policy), None)
    if it is None:
        raise InputError(f"{name}: no run in it; a run begins with run.started or run.stopped")
    if (others := cases.runs_in(given) - 1) > 0:
        complain(f"{name} has {others} more runs; this is the first, {it.verdict.run_id}. `classify` lists them all.")
    return it


def _show_runs(screen: Screen, keeper: Keeper, scope: Scope) -> Sequence[str | None]:
    from stopcause.pipeline import attention
    from stopcause.render import lines, tables
    from stopcause.render.pen import pasted

    rows = attention.rows_of(keeper, scope, None if scope.everything or not screen.is_table else _SHOWN)
    listed = attention.listed(keeper, scope, rows)
    screen.show(
        lambda pen: tables.runs_screen(listed, scope.window, pen),
        lambda: (lines.row_object(row._asdict()) for row in rows),
    )
    newest = [Hint(("explain",), "the newest of them", pasted(row.run_id)) for row in rows[:1]]
    screen.hint(*newest or [Hint(("runs", "--all"), "every run")], _ATTENTION)
    return list(listed.verdicts)


def _show_attention(screen: Screen, keeper: Keeper, scope: Scope) -> Sequence[str | None]:
    from stopcause.pipeline import attention
    from stopcause.render import attention as screens
    from stopcause.render import lines

    found = attention.attention_of(keeper, scope)
    shown = (*found.groups, *found.hidden) if scope.everything else found.groups
    states = {group.fingerprint: screens.group_state(group) for group in shown}
    screen.show(
        lambda pen: screens.attention_screen(found, scope.window, pen, everything=scope.everything),
        lambda: (
            lines.row_object(row._asdict()) | {"group_state": states[row.fingerprint]}
            for row in attention.rows_behind(keeper, scope, shown)
        ),
    )
    screen.hint(*screens.attention_commands(found))
    return [group.verdict for group in shown]


def _explained_run(name: str, store: Path | None, screen: Screen) -> Explained:
    from stopcause.pipeline import attention

    try:
        with shared.reading(store, screen, name) as (keeper, now):
            return attention.explained(keeper, name, now)
    except NotFoundError:
        if Path(name).suffix in _FILES_OF_RECORDS:
            raise InputError(f"{name}: no such file, and no run is called so") from None
        raise


def _show_explained(screen: Screen, it: Explained, *, as_note: bool) -> None:
    from stopcause.render import lines
    from stopcause.render.explain import explain_note, explain_screen

    form = explain_note if as_note else explain_screen
    screen.show(lambda pen: form(it, pen), lambda: [lines.explained_object(it)])


cli_otlp.add_to(cli_export.export_app)
for _commands in (
    cli_connect, cli_report, cli_triage, cli_outcome, cli_keep, cli_export, cli_care, cli_policy, cli_agui,
):  # fmt: skip
    _commands.add_to(app)
