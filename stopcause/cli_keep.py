"""`stopcause backup`, `restore` and `forget`: copies of a store, and its end by the day."""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause import cli_shared as shared
from stopcause import settings
from stopcause.errors import InputError, NotFoundError
from stopcause.render.caller import Hint
from stopcause.render.door import Command, complain
from stopcause.render.options import Output, StorePath

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.pipeline.backup_manifest import Manifest
    from stopcause.pipeline.retention import Plan
    from stopcause.render.keep import Copied, Leaving


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Put the store, its journal and the policy beside it into one file.

    FILE is a tar file with resume tokens in it: keep it as you keep the store. An earlier backup is replaced in one
    step.
    """
    from stopcause.pipeline.backup import check_target, write_backup
    from stopcause.pipeline.keeper import Keeper, journal_folder
    from stopcause.render import keep

    path, now = settings.store_path(store), shared.clock()
    check_target(file)
    if not path.exists() and not journal_folder(path).exists():
        raise NotFoundError(f"{path}: no store there, so there is nothing to back up. Name one: --store PATH")
    with Keeper.open(path, shared.loaded_policy(settings.policy_path(path)), now) as keeper:
        made = write_backup(keeper, file, now)
    copied = _copied(file, made.bytes, made.manifest)
    screen = shared.screen_for(output, store)
    screen.show(lambda _pen: keep.copied_screen("Backed up in", copied, now), lambda: [keep.copied_object(copied)])
    screen.hint(Hint(("restore",), "brings it back where the store is gone", file))


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Bring back the store, the journal and the policy of a backup.

    Everything is checked before anything gets its name. A store that is not empty is left alone.
    """
    from stopcause.pipeline.backup import restore as bring_back
    from stopcause.render import keep

    path, now = settings.store_path(store), shared.clock()
    found = bring_back(file, path)
    copied = _copied(path, path.stat().st_size, found.manifest)
    screen = shared.screen_for(output, store)
    screen.show(
        lambda pen: keep.restored_screen(copied, found.kept_policies, now, pen),
        lambda: [keep.copied_object(copied) | {"policies_left": [str(each) for each in found.kept_policies]}],
    )
    screen.hint(Hint(("runs", "--all"), "what is in it"))


def forget(
    *,
    before: Annotated[
        str, typer.Option("--before", metavar="DAY", help="Runs that opened before this UTC day: DATE, or 30d.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Remove old runs with all of their records, by whole days.

    A run counts by the day on which it opened. Runs that wait, run or are not settled stay. There is no way back but a
    backup.
    """
    from stopcause.pipeline import retention
    from stopcause.pipeline.keeper import owned
    from stopcause.render import keep

    screen, path = shared.screen_for(output, store), settings.store_path(store)
    day = retention.first_day(before, shared.clock())
    with shared.reading(store, screen) as (keeper, _):
        leaving = _leaving(retention.plan(keeper.store, day))
    if dry_run or not leaving.runs:
        screen.show(lambda _pen: keep.leaving_screen(leaving), lambda: [keep.leaving_object(leaving)])
        return
    for line in keep.leaving_screen(leaving):
        complain(line)
    _ask(yes=yes)
    size = path.stat().st_size
    with owned(path) as (opened, spool):
        gone = retention.forget(opened, spool, day)
    left, freed = _leaving(gone.plan)._replace(done=(gone.lines, gone.bytes, gone.segments)), size - path.stat().st_size
    screen.show(lambda _pen: keep.gone_screen(left, freed), lambda: [keep.leaving_object(left)])


def _ask(*, yes: bool) -> None:
    """Asks a person; without one it must have been said beforehand."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError("nobody is there to ask. Say --yes, or --dry-run to only look.")
    if not typer.confirm("Forget them?", err=True):
        complain("Nothing was forgotten.")
        raise typer.Exit(1)


def _leaving(planned: Plan) -> Leaving:
    from stopcause.render.keep import Leaving

    return Leaving(**planned._asdict())


def _copied(path: Path, size: int, manifest: Manifest) -> Copied:
    from stopcause.render.keep import Copied

    return Copied(
        path, size, manifest.records, manifest.runs, manifest.newest_at, manifest.digest, taken_at=manifest.taken_at
    )


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    for command in (backup, restore, forget):
        program.command(cls=Command, rich_help_panel=shared.KEPT)(command)
