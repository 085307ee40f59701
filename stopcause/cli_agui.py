"""`stopcause agui`: what AG-UI streams say about why runs stopped, and whether a resume may be sent."""
# ruff: noqa: PLC0415 - help takes 0.1 s; what a command needs is imported inside it

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause import cli_shared as shared
from stopcause.errors import InputError
from stopcause.render import options
from stopcause.render.caller import Hint
from stopcause.render.door import Command, Group, complain
from stopcause.render.options import FailOn, Now, Output, PolicyPath, Utc

if TYPE_CHECKING:  # what commands import for themselves
    from datetime import datetime

    from stopcause.agui.verdicts import ThreadVerdict
    from stopcause.agui.words import Mode
    from stopcause.classifier.policy import Policy
    from stopcause.pipeline.agui import Audit, How

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read AG-UI streams: why runs stopped, and what threads wait for.",
)
_PIPED = "standard input"
_NAMED = 8  # lines of a file that cannot be read
_MODES = "Held against this contract, whatever a stream declares."


@app.command("audit", cls=Command)
def audit(  # noqa: PLR0913 - one argument an option
    files: Annotated[list[str], typer.Argument(metavar="FILE", hidden=True)],
    policy: PolicyPath = None,
    now: Now = None,
    output: Output = None,
    *,
    mode: Annotated[str | None, typer.Option("--mode", metavar="MODE", help=_MODES)] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every run of a thread, not only the last 20.")] = False,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """Say how each run of AG-UI streams ended, and what each thread waits for.

    FILE is an event stream, NDJSON, or a recording of inputs and events; - is standard input. Each FILE is a history
    of its own. Exit code 1 where somebody broke a rule that they must keep.

    MODE is the contract that all of it is held against, in place of the one that each stream declares: spec-1.0,
    legacy-outcome or legacy-custom. An answer is late, or not, by when it was sent; where nothing tells that, --now.
    """
    from stopcause.agui.words import Level
    from stopcause.pipeline.agui_views import audit_file_view
    from stopcause.render import agui as screens

    said = options.time_of(now)
    judged_by, at, contract = shared.policy_of(policy), said or shared.clock(), _mode_of(mode)
    audits, faults = _audits(files, judged_by, at, {"mode": contract, "sent_at": said})
    views = [audit_file_view(_PIPED if name == "-" else name, each) for name, each in audits.items()]
    screen = shared.screen_for(output, utc=utc)
    screen.show(
        lambda pen: screens.audit_screen(views, at, pen, everything=everything, held_against=contract),
        lambda: screens.audit_objects(views),
    )
    screen.hint(*_checks(audits), *_broken(audits))
    for fault in faults:
        complain(f"stopcause: {fault}")
    if faults:
        raise typer.Exit(InputError.exit_code)
    shared.fail_on(fail_on, [thread.verdict for each in audits.values() for thread in each.threads])
    shared.exit_unless(not any(each.level is Level.MUST for found in audits.values() for each in found.findings))


@app.command("check", cls=Command)
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", hidden=True)],
    given: Annotated[
        str, typer.Option("--input", metavar="INPUT", help="The RunAgentInput to be sent; - is piped in.")
    ],
    now: Now = None,
    output: Output = None,
) -> None:
    """Say whether an input may be sent to a thread, given what its streams said before.

    FILEs are one history, in this order. Exit code 1 where the input is refused.
    """
    from stopcause.pipeline.agui_check import check_files
    from stopcause.pipeline.agui_views import check_view
    from stopcause.pipeline.cases import read_bytes
    from stopcause.render import agui as screens

    at = options.time_of(now) or shared.clock()
    content = shared.standard_input("agui check --input").read() if given == "-" else read_bytes(Path(given))
    checked = check_files(files, _PIPED if given == "-" else given, content, at)
    view = check_view(checked)
    screen = shared.screen_for(output)
    screen.show(lambda pen: screens.check_screen(view, pen), lambda: [screens.check_object(view)])
    shared.exit_unless(not view.refused)


def _mode_of(name: str | None) -> Mode | None:
    from stopcause.agui.words import Mode

    if name is not None and name not in set(Mode):
        raise typer.BadParameter(f"one of {', '.join(Mode)}", param_hint="--mode")
    return None if name is None else Mode(name)


def _audits(files: Sequence[str], policy: Policy | None, now: datetime, how: How) -> tuple[dict[str, Audit], list[str]]:
    """The files that can be read, by name, and what is wrong with the others."""
    audits: dict[str, Audit] = {}
    faults: list[str] = []
    for name in dict.fromkeys(files):
        try:
            audits[name] = _audit(name, policy, now, how)
        except InputError as error:
            faults.append(str(error))
            continue
        broken = audits[name].broken_lines
        faults += [f"{name}: line {number}: no whole exchange; it is passed over" for number in broken[:_NAMED]]
        if len(broken) > _NAMED:
            faults.append(f"{name}: {len(broken) - _NAMED} more of these")
        if not audits[name].runs:
            complain(f"{name}: no run of AG-UI in it; for a file of records there is `classify`")
    return audits, faults


def _checks(audits: Mapping[str, Audit]) -> list[Hint]:
    """What to do next where something can be answered: the first such file."""
    whole = {name: each for name, each in audits.items() if name != "-" and not each.broken_lines}
    waiting = (name for name, each in whole.items() if any(map(_is_asked, each.threads)))
    found = next(waiting, None)
    check_it = ("agui", "check", Path(found or ""), "--input", "INPUT.json")
    return [Hint(check_it, "whether that may be sent next")] if found else []


def _is_asked(thread: ThreadVerdict) -> bool:
    from stopcause.agui.words import State

    return any(wait.state != State.LOST for wait in thread.open)


def _broken(audits: Mapping[str, Audit]) -> list[Hint]:
    """Where to read the rule that somebody had to keep: one that decides a verdict, where there is one."""
    from stopcause.agui.cards import BY_NAME
    from stopcause.agui.words import Effect, Level

    broken = [each.name for found in audits.values() for each in found.findings if each.level is Level.MUST]
    name = min(broken, key=lambda each: BY_NAME[each].effect in (Effect.NONE, Effect.STAYS_OPEN), default=None)
    return [Hint(("rules", "--agui", name), "the rule that was broken")] if name else []


def _audit(name: str, policy: Policy | None, now: datetime, how: How) -> Audit:
    from stopcause.pipeline.agui import audit_file, audit_stream

    if name == "-":
        return audit_stream(shared.standard_input("agui audit"), _PIPED, policy, now, **how)
    return audit_file(Path(name), policy, now, **how)


def add_to(program: typer.Typer) -> None:
    """Registers this group of commands."""
    program.add_typer(app, name="agui", rich_help_panel=shared.FILES)
