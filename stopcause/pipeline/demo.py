"""The demo: everything that works without a network, over the fixtures, in one go. Yields each part as it is done.

Its store is its own, made anew each time. Every number that it shows was counted or timed in this run.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from stopcause import settings
from stopcause.classifier.policy import Policy
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import InputError
from stopcause.pipeline import attention, cases, groups
from stopcause.pipeline.ingest import ingest
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.policy_file import load_policy
from stopcause.pipeline.replay import replay_files
from stopcause.render import demo as parts
from stopcause.render.caller import Hint, path_words
from stopcause.render.hints import Caller, hint_lines
from stopcause.render.pen import Pen
from stopcause.render.views import Attention, CaseResult, Replay, Window
from stopcause.resources import data_folder

# The policy of the recordings' own case files, but enforced: a test holds it against them.
POLICY = """\
# The policy of the demo's store.
[policy]
id = "recordings"
version = "2026-11-30"

[[agents]]
match = { agent = "*" }
stage = "enforce"
contract = "ticket-updated"

[contracts.ticket-updated]
min_strength = "read_back"
issuers = ["destination:tickets"]
settle = "1m"
"""
_PAIR = ("A01", "A02")
_NEXT = (
    Hint(("ingest", "runs.jsonl"), "records of your own agents"),
    Hint(("connect", "ai-sdk"), "the lines that add the hook to an agent"),
    Hint(("policy", "init"), "a starter policy from the agents that it has seen"),
    Hint(("rules",), "the eight verdicts and why in this order"),
)


def new_store() -> Path:
    """A place for the demo's store, empty: in the user data folder, or in a temporary one where that is not ours."""
    try:
        folder = settings.data_dir() / "demo"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "policy.toml").write_text(POLICY, "utf-8")
    except (OSError, InputError):
        folder = Path(tempfile.mkdtemp(prefix="stopcause-demo-"))
        (folder / "policy.toml").write_text(POLICY, "utf-8")
    return folder / "demo.duckdb"


def run_demo(store: Path, pen: Pen, program: str) -> Iterator[list[str]]:
    """The parts, one after the other.

    Args:
        store: What `new_store` made.
        pen: How to write.
        program: How the reader calls stopcause.

    Raises:
        StopcauseError: The fixtures or the store cannot be used.
    """
    recordings = data_folder("fixtures") / "ai_sdk"
    now = max(case.now for case in cases.load_cases([recordings]))
    yield parts.opening(path_words(store), pen.time(now))
    yield _replay_part(pen)
    policy = load_policy(store.parent / "policy.toml")
    run_id = yield from _store_parts(store, policy, now, pen)
    looks = (Hint(("runs", "--attention")), Hint(("explain",), of=run_id))
    yield ["Look around in this store:", *hint_lines(Caller(program, store), looks)]
    yield ["Next, with your own agents:", *hint_lines(Caller(program), _NEXT)]


def _replay_part(pen: Pen) -> list[str]:
    began = time.perf_counter()
    result = replay_files([data_folder("fixtures") / "article"])
    seconds = time.perf_counter() - began
    return parts.replay_part(result, _pair(result), seconds, pen)


def _pair(result: Replay) -> Sequence[tuple[CaseResult, str]]:
    """Two runs that end alike, each with the strongest thing that its outcomes say."""
    chosen = [case for case in result.cases if case.id in _PAIR]
    return [(case._replace(name=case.name.partition("-")[2]), _strength(case)) for case in chosen]


def _strength(case: CaseResult) -> str:
    records = next(cases.load_cases([case.path])).records
    said = [str(record["outcome"].get("strength")) for record in records if record["kind"] == "outcome.recorded"]
    return said[-1] if said else "nothing"


def _store_parts(store: Path, policy: Policy, now: datetime, pen: Pen) -> Generator[list[str], None, str]:
    """Gives back the run that was explained."""
    with Keeper.open(store, policy, now) as keeper:
        began = time.perf_counter()
        report = ingest([data_folder("fixtures") / "ai_sdk"], keeper, now)
        keeper.settle(now)
        seconds = time.perf_counter() - began
        runs = keeper.store.counts().runs
        yield parts.ingest_part(parts.Taken(runs, report.accepted, report.set_aside), seconds)
        found = attention.attention_of(keeper, attention.Scope(Window(now, "", groups.DAY_ONE)))
        yield parts.attention_part(found, "runs --attention", pen)
        run_id = _claimed_done(found)
        yield parts.why_part(attention.explained(keeper, run_id, now), f"explain {run_id}", pen)
    return run_id


def _claimed_done(found: Attention) -> str:
    """A run that called done and proved nothing; the newest claim where none did."""
    claims = [group for group in found.groups if group.verdict is VerdictName.FALSE_COMPLETE]
    return next((group.run_id for group in claims if "done" in group.run_id), claims[0].run_id)
