"""`stopcause policy`: what the operator's policy says, and what another would say."""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stopcause import cli_shared as shared
from stopcause import settings
from stopcause.render.door import Command, Group, complain
from stopcause.render.options import Output, StorePath

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check a policy: who owns what, and what done means.",
)


@app.command("check", cls=Command)
def check(
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
    shared.screen_for(output).show(
        lambda pen: reports.policy_screen(str(path), policy, faults, pen), lambda: reports.fault_objects(faults)
    )
    shared.exit_unless(policy is not None)


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    program.add_typer(app, name="policy", rich_help_panel=shared.REFERENCE)
