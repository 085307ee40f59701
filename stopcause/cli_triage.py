"""`stopcause triage`: what people say about groups. It hides them for a while or gives them an owner.

The verdicts stay what they are. Groups are named, or chosen by a filter; then what is chosen is shown first, and asked.
"""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from stopcause import cli_shared as shared
from stopcause.errors import InputError
from stopcause.render import options
from stopcause.render.caller import Hint
from stopcause.render.door import Command, complain
from stopcause.render.door import Group as CommandGroup
from stopcause.render.options import Output, StorePath, Utc, Verdicts

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.pipeline.keeper import Keeper
    from stopcause.pipeline.triage import Order, Told
    from stopcause.receipts.vocabulary import TriageAction
    from stopcause.render.screen import Screen
    from stopcause.render.views import Group


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Acknowledge, snooze, resolve or assign groups.",
)

Groups = Annotated[list[str] | None, typer.Argument(metavar="GROUP", hidden=True)]
Agent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Groups of such agents: crawl-*.")]
Since = Annotated[str, typer.Option("--since", metavar="AGE", help="With a filter: runs of the last 30m, 24h, 7d.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="CODE", help="Why, in one word: known_cause.")]
Ticket = Annotated[str | None, typer.Option("--ticket", metavar="ID", help="Where it is worked on.")]
Actor = Annotated[str | None, typer.Option("--actor", metavar="WHO", help="Who says so; else your login name.")]
Yes = Annotated[bool, typer.Option("--yes", help="With a filter: do not ask.")]


class _Chosen(NamedTuple):
    """Which groups a command is about, and how it prints."""

    groups: Sequence[str]
    verdict: str | None
    agent: str | None
    since: str
    store: Path | None
    screen: Screen
    yes: bool

    @property
    def by_filter(self) -> bool:
        """Whether groups are chosen and not named."""
        return bool(self.verdict or self.agent)


@app.command(cls=Command)
def ack(  # noqa: PLR0913 - one argument an option
    groups: Groups = None,
    *,
    reason: Reason = None,
    ticket: Ticket = None,
    reopen: Annotated[bool, typer.Option("--reopen", help="Take back what was said of them, but the owner.")] = False,
    verdict: Verdicts = None,
    agent: Agent = None,
    since: Since = "24h",
    yes: Yes = False,
    actor: Actor = None,
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
) -> None:
    """Acknowledge groups: out of sight for 7 days.

    Sooner in sight again where a group gets worse: it escalates or regresses, or one of its waits is due.
    """
    from stopcause.pipeline.triage import Order
    from stopcause.receipts.vocabulary import TriageAction

    action = TriageAction.REOPENED if reopen else TriageAction.ACKNOWLEDGED
    if not reopen:
        _demand_reason(reason)
    chosen = _Chosen(groups or (), verdict, agent, since, store, shared.screen_for(output, store, utc=utc), yes)
    _say(chosen, Order(action, shared.actor_of(actor), reason=reason, ticket=ticket))


@app.command(cls=Command)
def snooze(  # noqa: PLR0913 - one argument an option
    groups: Groups = None,
    *,
    until: Annotated[str | None, typer.Option("--until", metavar="AGE|TIME", help="For 4h, 2d, or to a time.")] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, metavar="N", help="Until N more runs.")] = None,
    reason: Reason = None,
    ticket: Ticket = None,
    verdict: Verdicts = None,
    agent: Agent = None,
    since: Since = "24h",
    yes: Yes = False,
    actor: Actor = None,
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
) -> None:
    """Hide groups until a time, or until so many more runs.

    At most for 30 days, and never past the moment at which one of their waits is due.
    """
    from stopcause.pipeline.triage import Order
    from stopcause.receipts.vocabulary import TriageAction

    if until is None and count is None:
        raise typer.BadParameter("nothing is hidden for ever: say --until 4h, or --count 10", param_hint="--until")
    _demand_reason(reason)
    end = _end(until, shared.clock()) if until else None
    chosen = _Chosen(groups or (), verdict, agent, since, store, shared.screen_for(output, store, utc=utc), yes)
    _say(chosen, Order(TriageAction.SNOOZED, shared.actor_of(actor), end, count, reason=reason, ticket=ticket))


@app.command(cls=Command)
def resolve(  # noqa: PLR0913 - one argument an option
    groups: Groups = None,
    *,
    in_version: Annotated[str | None, typer.Option("--in-version", metavar="V", help="The agent's mended one.")] = None,
    unreleased: Annotated[bool, typer.Option("--unreleased", help="No run has had that version yet.")] = False,
    reason: Reason = None,
    ticket: Ticket = None,
    verdict: Verdicts = None,
    agent: Agent = None,
    since: Since = "24h",
    yes: Yes = False,
    actor: Actor = None,
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
) -> None:
    """Say that groups are mended, until they come back.

    Without --in-version, any run that starts from now on brings its group back. With it, a run of that version or of
    one that is new since; runs of the versions before it may still end so, for up to 30 days.
    """
    from stopcause.pipeline.triage import Order
    from stopcause.receipts.vocabulary import TriageAction

    if not (in_version or reason or ticket):
        raise typer.BadParameter("say what mended it: --in-version, --ticket or --reason", param_hint="--in-version")
    if unreleased and not in_version:
        raise typer.BadParameter("only beside --in-version", param_hint="--unreleased")
    chosen = _Chosen(groups or (), verdict, agent, since, store, shared.screen_for(output, store, utc=utc), yes)
    order = Order(TriageAction.RESOLVED, shared.actor_of(actor), in_version=in_version, reason=reason, ticket=ticket)
    _say(chosen, order, unreleased=unreleased)


@app.command(cls=Command)
def assign(  # noqa: PLR0913 - one argument an option
    groups: Groups = None,
    *,
    owner: Annotated[str, typer.Option("--owner", metavar="WHO", help="Who has it from now on: team:data.")],
    reason: Reason = None,
    ticket: Ticket = None,
    verdict: Verdicts = None,
    agent: Agent = None,
    since: Since = "24h",
    yes: Yes = False,
    actor: Actor = None,
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
) -> None:
    """Give groups an owner, in place of the policy's."""
    from stopcause.pipeline.triage import Order
    from stopcause.receipts.vocabulary import TriageAction

    chosen = _Chosen(groups or (), verdict, agent, since, store, shared.screen_for(output, store, utc=utc), yes)
    _say(chosen, Order(TriageAction.ASSIGNED, shared.actor_of(actor), owner=owner, reason=reason, ticket=ticket))


# What is said ---------------------------------------------------------------------------------------------------------


def _demand_reason(reason: str | None) -> None:
    if not reason:
        raise typer.BadParameter("say why, in one word: --reason known_cause", param_hint="--reason")


def _end(text: str, now: datetime) -> datetime:
    """When a snooze ends: after a duration, or at a time."""
    from stopcause.classifier.policy import parse_duration
    from stopcause.pipeline.triage import LONGEST
    from stopcause.receipts.model import parse_time

    try:
        end = now + parse_duration(text) if re.fullmatch(r"\d+[smhd]", text) else parse_time(text)
    except ValueError:
        fault = "write 30m, 4h or 2d, or a time with offset as 2026-11-28T08:00:00Z"
        raise typer.BadParameter(fault, param_hint="--until") from None
    if not timedelta() < end - now <= LONGEST:
        fault = "is over already" if end <= now else f"at most {LONGEST.days} days: nothing is hidden for ever"
        raise typer.BadParameter(fault, param_hint="--until")
    return end


# Whom it is said of ---------------------------------------------------------------------------------------------------


def _say(chosen: _Chosen, order: Order, *, unreleased: bool = False) -> None:
    if bool(chosen.groups) == chosen.by_filter:
        fault = "either name groups, or choose them by --verdict and --agent" if chosen.groups else "name a group"
        raise typer.BadParameter(f"{fault}; `runs --attention` lists them", param_hint="GROUP")
    fingerprints = _confirmed(chosen, order.action) if chosen.by_filter else None
    wanted = chosen.groups[0] if chosen.groups else ""
    with shared.reading(chosen.store, chosen.screen, wanted) as (keeper, now):
        told = _told(keeper, chosen, fingerprints, order, now, unreleased=unreleased)
    _show(chosen.screen, told, now)


def _told(
    keeper: Keeper,
    chosen: _Chosen,
    fingerprints: Sequence[str] | None,
    order: Order,
    now: datetime,
    *,
    unreleased: bool,
) -> list[Told]:
    from stopcause.pipeline import groups, triage

    if fingerprints is None:
        fingerprints = list(dict.fromkeys(groups.named(keeper, name, now) for name in chosen.groups))
    about = list(groups.facts_of(keeper, fingerprints, now).values())
    if order.in_version and not unreleased:
        triage.check_version(keeper, about, order.in_version)
    return triage.tell(keeper, about, order, now)


def _confirmed(chosen: _Chosen, action: TriageAction) -> Sequence[str]:
    """The groups of a filter, once somebody has seen them and said yes. The store is not held while they think."""
    from stopcause.render import triage as screens
    from stopcause.render.screen import say

    if not chosen.yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError("nobody is here to be asked: say --yes beside a filter, or name the groups. Nothing was done.")
    found = _filtered(chosen, action)
    if not found:
        complain("No group matches; `runs --attention` lists those that there are.")
        raise typer.Exit(0)
    if not chosen.yes:
        say(screens.preview(found, chosen.screen.pen))
        if not _is_yes(screens.question(found, action)):
            complain("Nothing was done.")
            raise typer.Exit(1)
    return [each.fingerprint for each in found]


def _is_yes(question: str) -> bool:
    """What somebody answers. Typer's own question leaves a space on stdout, which may be a pipe."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _filtered(chosen: _Chosen, action: TriageAction) -> list[Group]:
    from stopcause.pipeline import attention
    from stopcause.receipts.vocabulary import TriageAction

    hidden = action not in (TriageAction.ACKNOWLEDGED, TriageAction.SNOOZED)
    with shared.reading(chosen.store, chosen.screen) as (keeper, now):
        window = shared.window_of(keeper, now, chosen.since)
        scope = attention.Scope(window, None, options.verdicts_of(chosen.verdict))
        return attention.chosen(keeper, scope, chosen.agent, hidden=hidden)


def _show(screen: Screen, told: Sequence[Told], now: datetime) -> None:
    from stopcause.pipeline import triage
    from stopcause.render.triage import triage_screen

    screen.show(
        lambda pen: triage_screen(triage.lines_of(told), now, pen), lambda: [triage.told_object(each) for each in told]
    )
    everything = Hint(("runs", "--attention", "--all"), "with what is hidden, and what was said")
    screen.hint(Hint(("runs", "--attention"), "what is left"), everything)


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    program.add_typer(app, name="triage", rich_help_panel=shared.TOLD)
