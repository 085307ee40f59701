"""`stopcause policy`: what the operator's policy says, what another would say, and putting it in force."""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause import cli_shared as shared
from stopcause import settings
from stopcause.errors import InputError, PolicyError, StopcauseError
from stopcause.render import options
from stopcause.render.caller import Hint
from stopcause.render.door import Command, Group, complain
from stopcause.render.options import FailOn, NoteFormat, Now, Output, PolicyPath, StorePath, Utc

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.classifier.policy import Policy
    from stopcause.pipeline.keeper import Keeper
    from stopcause.pipeline.policy_file import Checked
    from stopcause.pipeline.policy_init import Found
    from stopcause.pipeline.policy_sources import Trial
    from stopcause.render.policy import Applied
    from stopcause.render.policy_diff import Diff
    from stopcause.render.screen import Screen
    from stopcause.render.views import Fault

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check a policy, try it on history, put it in force.",
)
_DiffOutput = Annotated[
    NoteFormat | None, typer.Option("--format", "-o", help="md is a comment for a pull request; jsonl in a pipe.")
]
_OfRun = Annotated[str | None, typer.Option(metavar="NAME", help="As the run says it.")]
_OfApproval = Annotated[str | None, typer.Option(metavar="NAME", help="As the approval says it.")]


@app.command("init", cls=Command)
def init(store: StorePath = None) -> None:
    """Print a starter policy, made from the agents and approvals that the store has seen.

    Stage observe, with owners, contracts and deadlines commented out: it changes no verdict as it stands.
    """
    from stopcause.pipeline import policy_init
    from stopcause.render.hints import hint_lines
    from stopcause.render.pen import count
    from stopcause.render.screen import caller, say, write

    path, now = settings.store_path(store), shared.clock()
    found = _seen_in(path, now)
    write(policy_init.starter(found, now).splitlines())
    if found.runs:
        of = f"{count(found.runs, 'run')} of {count(len(found.agents), 'agent entry', 'agent entries')}"
        say([f"Made from {of} and {count(found.approvals, 'approval')} in {path}."])
    else:
        say([f"No runs in {path} yet, so this is the smallest starter."])
    check_it = Hint(("policy", "check", Path("policy.toml")), "once it is in that file")
    say(hint_lines(caller(store), [check_it, Hint(("policy", "diff", Path("policy.toml")), "what it would change")]))


@app.command("check", cls=Command)
def check(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", hidden=True)] = None,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Find what is wrong, never reached, or fits no run, in a policy.

    FILE is a .toml file or a folder of them. Without it, the policy in use. Exit code 1 where it cannot be used.
    """
    from stopcause.pipeline.policy_file import check_policy
    from stopcause.render import reports

    store_path = settings.store_path(store)
    path = settings.policy_path(store_path, file)
    if path is None:
        complain("No policy beside the store and no STOPCAUSE_POLICY: the built-in defaults hold.")
        return
    checked = check_policy(path)
    faults = (*checked.faults, *_fits_nothing(checked, path, store_path))
    shared.screen_for(output).show(
        lambda pen: reports.policy_screen(str(path), checked.policy, faults, pen), lambda: reports.fault_objects(faults)
    )
    shared.exit_unless(checked.policy is not None)


@app.command("explain", cls=Command)
def explain(  # noqa: PLR0913 - one argument an option
    *,
    agent: _OfRun = None,
    environment: _OfRun = None,
    agent_version: _OfRun = None,
    framework: _OfRun = None,
    model: _OfRun = None,
    provider: _OfRun = None,
    service: _OfRun = None,
    kind: _OfApproval = None,
    tool: _OfApproval = None,
    raised_by: _OfApproval = None,
    policy: PolicyPath = None,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Say which entry and route hold for a run, and why those before them do not.

    With --kind, --tool or --raised-by it also says which route an approval gets. What is not given, the run does not
    say; that matches only *.
    """
    from stopcause.classifier.policy import Subject
    from stopcause.pipeline.policy_explain import explanation_of
    from stopcause.render import policy as screens

    subject = Subject(
        agent, agent_version, environment, framework, model, provider, service, kind, tool, raised_by
    )  # in the order of its fields
    it = explanation_of(settings.policy_path(settings.store_path(store), policy), subject)
    shared.screen_for(output).show(lambda pen: screens.explain_screen(it, pen), lambda: [screens.explain_object(it)])


@app.command("diff", cls=Command)
def diff(  # noqa: PLR0913 - one argument an option
    new: Annotated[Path, typer.Argument(metavar="NEW", hidden=True)],
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", hidden=True)] = None,
    *,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="OLD", help="The policy to compare with; else the one in use.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="AGE", help="How far back: 24h, 90d. Of a store: 30d.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every run of the store.")] = False,
    now: Now = None,
    store: StorePath = None,
    output: _DiffOutput = None,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """Judge history by another policy, and say which verdicts change.

    NEW is a policy file or folder. Only runs that a changed section can touch are judged. PATHs are case files, files
    of records or archives in Parquet, in place of the store. With --fail-on, exit code 1 where a changed run gets one
    of those verdicts.
    """
    tried, old = shared.loaded_policy(new), shared.policy_of(against)
    screen = shared.screen_for(output, store, utc=utc)
    if now and not paths:
        raise typer.BadParameter("only for a PATH; the store is judged as of now", param_hint="--now")
    if paths:
        trial = _trial(tried, old, options.time_of(now) or shared.clock(), since, store)
        found = _diff_of_files(paths, trial)
    else:
        found = _diff_of_store(screen, tried, old, store, "" if everything else since or "30d")
    _show_diff(screen, found, as_comment=output is NoteFormat.MD)
    if not paths and not against and found.changes and output is not NoteFormat.MD:
        screen.hint(Hint(("policy", "apply", new), "put it in force"))
    shared.fail_on(fail_on, [each.after.verdict for each in found.changes])


@app.command("apply", cls=Command)
def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE|FOLDER", hidden=True)],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
) -> None:
    """Put a policy in force, and judge the store by it.

    It is written beside the store: to policy.toml, or into policy.d/ where that is in use. What would change is shown
    first. Broken off on the way, the next command that reads the store goes on where it was.
    """
    from stopcause.pipeline import policy_apply

    path, screen = settings.store_path(store), shared.screen_for(output, store, utc=utc)
    target = policy_apply.target_of(path, file)
    new = policy_apply.candidate(file, target)
    if not yes and not (sys.stdin and sys.stdin.isatty()):
        raise InputError("there is no terminal to ask on; look at `policy diff`, then add --yes")
    old = _in_force(path)
    _preview(screen, path, new, old)
    if not yes and not typer.confirm(f"Put it in force as {target}?", err=True):
        complain("Nothing was changed.")
        raise typer.Exit(1)
    if old is not None and policy_apply.in_force(path).digest != old.digest:
        raise InputError("the policy in use was changed meanwhile; look at the difference again")
    if old is None:
        policy_apply.keep_unread(target)
    policy_apply.put(file, target)
    _show_applied(screen, _judged_anew(path, new, target))


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    program.add_typer(app, name="policy", rich_help_panel=shared.TOLD)


# Init and check -------------------------------------------------------------------------------------------------------


def _seen_in(path: Path, now: datetime) -> Found:
    from stopcause.pipeline import policy_init
    from stopcause.pipeline.keeper import Keeper, journal_folder

    if not path.exists() and not journal_folder(path).exists():
        return policy_init.Found()
    with Keeper.open(path, shared.loaded_policy(settings.policy_path(path)), now) as keeper:
        return policy_init.found_in(keeper.store, now)


def _fits_nothing(checked: Checked, path: Path, store: Path) -> Sequence[Fault]:
    """What of a policy fits nothing that the store has seen. A store that cannot be asked is no fault of the policy."""
    from stopcause.pipeline.policy_file import located
    from stopcause.pipeline.policy_seen import fits_nothing, seen_of
    from stopcause.store.duckdb_store import DuckStore

    if checked.policy is None or not store.exists():
        return ()
    try:
        with DuckStore.open(store) as opened:
            seen = seen_of(opened, shared.clock())
    except StopcauseError as error:
        complain(f"not held against the runs of the store: {error}")
        return ()
    return located(fits_nothing(checked.policy, seen), checked, path)


# Diff -----------------------------------------------------------------------------------------------------------------


def _diff_of_store(screen: Screen, new: Policy, old: Policy | None, store: Path | None, span: str) -> Diff:
    from stopcause.pipeline.policy_diff import Question, diff_of
    from stopcause.render.policy import counting

    with shared.reading(store, screen) as (keeper, now), counting("looked at") as watch:
        window = shared.window_of(keeper, now, span or "30d", everything=not span)
        since = window.since if span else None
        question = Question(old or keeper.policy, new, now, keeper.policy, since, span)
        return diff_of(keeper.store, question, watch)


def _trial(new: Policy, old: Policy | None, now: datetime, since: str | None, store: Path | None) -> Trial:
    from stopcause.classifier.policy import parse_duration
    from stopcause.pipeline.policy_sources import Trial

    try:
        first = now - parse_duration(since) if since else None
    except ValueError:
        raise typer.BadParameter("write 30m, 24h or 7d", param_hint="--since") from None
    in_use = shared.loaded_policy(settings.policy_path(settings.store_path(store)))
    return Trial(new, old, in_use, now, first, since or "")


def _diff_of_files(paths: Sequence[Path], trial: Trial) -> Diff:
    from stopcause.pipeline.policy_sources import diff_files
    from stopcause.render.policy import counting

    with counting("looked at") as watch:
        return diff_files(paths, trial, complain, watch)


def _show_diff(screen: Screen, found: Diff, *, as_comment: bool = False) -> None:
    from stopcause.render import policy_diff as screens

    form = (lambda _pen: screens.diff_comment(found)) if as_comment else (lambda pen: screens.diff_screen(found, pen))
    screen.show(form, lambda: screens.diff_objects(found))


# Apply ----------------------------------------------------------------------------------------------------------------


def _in_force(path: Path) -> Policy | None:
    """The policy in use; one that cannot be used judges nothing, and may be what this mends."""
    from stopcause.pipeline.policy_apply import in_force

    try:
        return in_force(path)
    except PolicyError:
        complain("The policy in use has faults, so there is nothing to compare with.")
        return None


def _preview(screen: Screen, path: Path, new: Policy, old: Policy | None) -> None:
    """What would change, before anything is asked; on stderr where stdout is for a program."""
    from stopcause.pipeline.keeper import Keeper
    from stopcause.pipeline.policy_diff import Question, diff_of
    from stopcause.render.policy import counting
    from stopcause.render.policy_diff import diff_screen
    from stopcause.render.screen import say

    if old is None:
        return
    now = shared.clock()
    with Keeper.open(path, old, now) as keeper, counting("looked at") as watch:
        _finish(keeper, now)
        found = diff_of(keeper.store, Question(old, new, now), watch)
    say([*diff_screen(found, screen.pen._replace(colour=False)), ""])


def _finish(keeper: Keeper, now: datetime) -> int:
    """Judges what another policy judged, with progress; then what time has changed."""
    from stopcause.render.policy import counting

    if stale := keeper.stale_policy():
        complain(f"Judging {stale} verdicts anew.")
    with counting("judged") as watch:
        judged = keeper.rejudge(now, (lambda done, _total: watch(done)) if watch else None)
    keeper.settle(now)
    shared.complain_of_unjudged(keeper)
    return judged


def _judged_anew(path: Path, new: Policy, target: Path) -> Applied:
    from stopcause.pipeline.keeper import Keeper
    from stopcause.pipeline.policy_apply import outcome_of
    from stopcause.pipeline.policy_diff import policy_name
    from stopcause.render.policy import Applied

    now = shared.clock()
    try:
        with Keeper.open(path, new, now) as keeper:
            judged = _finish(keeper, now)
            return Applied(policy_name(new), str(target), judged, outcome_of(keeper.store, new))
    except KeyboardInterrupt:
        complain("The policy is in force; the next command that reads the store goes on judging by it.")
        raise


def _show_applied(screen: Screen, it: Applied) -> None:
    from stopcause.render import policy as screens

    screen.show(lambda pen: screens.applied_screen(it, pen), lambda: [screens.applied_object(it)])
    screen.hint(Hint(("runs", "--attention"), "what needs somebody now"))
