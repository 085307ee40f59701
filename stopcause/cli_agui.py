"""`stopcause agui`: what AG-UI streams say about why runs stopped, and whether a resume may be sent."""
# ruff: noqa: PLC0415 - help takes 0.1 s; what a command needs is imported inside it

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause import cli_shared as shared
from stopcause.render import options
from stopcause.render.caller import Hint
from stopcause.render.door import Command, Group
from stopcause.render.options import FailOn, Now, Output, PolicyPath, Utc

if TYPE_CHECKING:  # what commands import for themselves
    from datetime import datetime

    from stopcause.classifier.policy import Policy
    from stopcause.pipeline.agui import Audit

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read AG-UI streams: why runs stopped, and what threads wait for.",
)


@app.command("audit", cls=Command)
def audit(
    files: Annotated[list[str], typer.Argument(metavar="FILE", hidden=True)],
    policy: PolicyPath = None,
    now: Now = None,
    output: Output = None,
    *,
    utc: Utc = False,
    fail_on: FailOn = None,
) -> None:
    """Say how each run of AG-UI streams ended, and what each thread waits for.

    FILE is an event stream, NDJSON, or a recording of inputs and events; - is standard input. Each FILE is a history
    of its own. Exit code 1 where somebody broke a rule that they must keep.
    """
    from stopcause.agui.words import Level
    from stopcause.pipeline.agui_views import audit_file_view
    from stopcause.render import agui as screens

    judged_by, at = shared.policy_of(policy), options.time_of(now) or shared.clock()
    audits = [(name, _audit(name, judged_by, at)) for name in files]
    views = [audit_file_view(name, each) for name, each in audits]
    screen = shared.screen_for(output, utc=utc)
    screen.show(lambda pen: screens.audit_screen(views, at, pen), lambda: screens.audit_objects(views))
    if files[0] != "-":
        check_it = ("agui", "check", Path(files[0]), "--input", "INPUT.json")
        screen.hint(Hint(check_it, "whether that may be sent next"))
    shared.fail_on(fail_on, [thread.verdict for _name, each in audits for thread in each.threads])
    shared.exit_unless(not any(each.level is Level.MUST for _name, found in audits for each in found.findings))


@app.command("check", cls=Command)
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", hidden=True)],
    given: Annotated[Path, typer.Option("--input", metavar="INPUT.json", help="The RunAgentInput to be sent.")],
    now: Now = None,
    output: Output = None,
) -> None:
    """Say whether an input may be sent to a thread, given what its streams said before.

    FILEs are one history, in this order. Exit code 1 where the input is refused.
    """
    from stopcause.pipeline.agui_check import check_files
    from stopcause.pipeline.agui_views import check_view
    from stopcause.render import agui as screens

    checked = check_files(files, given, options.time_of(now) or shared.clock())
    view = check_view(checked)
    screen = shared.screen_for(output)
    screen.show(lambda pen: screens.check_screen(view, pen), lambda: [screens.check_object(view)])
    shared.exit_unless(not view.refused)


def _audit(name: str, policy: Policy | None, now: datetime) -> Audit:
    from stopcause.pipeline.agui import audit_file, audit_stream

    if name == "-":
        return audit_stream(shared.standard_input("agui audit"), "standard input", policy, now)
    return audit_file(Path(name), policy, now)


def add_to(program: typer.Typer) -> None:
    """Registers this group of commands."""
    program.add_typer(app, name="agui", rich_help_panel=shared.FILES)
