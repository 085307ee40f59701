"""What each table and column of a store means, in one line each, and queries to begin with.

A test holds it against a real store: no column without a meaning, no meaning without a column. `runs` is a view with
the columns of `verdicts`. Times are UTC. Not here: how it is printed (`render.sql`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stopcause.store.queries import text

_SHAPE = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY column_index"

TABLES: Final[Mapping[str, str]] = {
    "runs": "view: one row a run, its latest attempt as judged now; the columns of verdicts",
    "verdicts": "every verdict ever given; sum(sign) counts current rows, is_latest one attempt a run",
    "records": "every record as it came in; line is the whole of it as JSON",
    "policies": "every policy that a verdict was given by, with its text",
    "journal_position": "how far into the journal this store reaches",
    "forgettings": "when which days were forgotten",
    "schema_migrations": "which steps made the shape of this store",
}

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "verdicts": {
        "run_id": "the run",
        "attempt": "which execution of the run; a supervisor's retries count up",
        "opened_at": "when the run's first record was made; never changes",
        "hour": "opened_at in hours since 1970; filter by it first, it is what is fastest",
        "revision": "counts the verdicts on this attempt up from 1",
        "sign": "1, or -1 where a newer revision took the row back",
        "is_latest": "this attempt is the run's latest",
        "thread_id": "runs that continue each other",
        "parent_run_id": "the run that started this one",
        "resumes_run_id": "the run that this one takes up",
        "agent": "the agent's name",
        "agent_version": "its version",
        "service": "the service that it runs in",
        "environment": "prod, staging, ...",
        "model": "the model's name",
        "provider": "who serves the model",
        "framework": "langgraph, ai-sdk, ...",
        "framework_version": "its version",
        "adapter": "the hook or reader that made the record",
        "adapter_version": "its version",
        "contract": "what had to be true at the destination",
        "owner": "who owns the agent, as the policy says",
        "stage": "observe or enforce, as the policy says",
        "has_on_bound": "the policy says what to do when a bound fires",
        "verdict": "what to believe; null while the run goes on",
        "reason": "which case of that verdict",
        "rule": "the rule that matched; `rules` shows them",
        "stop_cause": "why control flow ended",
        "detail": "what a group shares beside reason and agent: tool, error type, condition, contract",
        "evidence": "names of the fields that decided",
        "findings": "facts worth saying that did not decide: code or code=where",
        "missing": "what a wait lacks",
        "retry": "resume, no, later, safe or check_first",
        "fingerprint": "the group; its last letters are the name on screens",
        "settled": "nothing more is due for the run",
        "judge_again_at": "when the verdict may change without a new record",
        "resolved_by": "the run that took up this wait",
        "policy_version": "the policy's own version",
        "policy_digest": "the policy's text; see policies",
        "classifier_version": "the version of the rules",
        "as_of": "the time that it was judged for",
        "started_at": "when the attempt began",
        "stopped_at": "when it stopped",
        "last_at": "its newest record",
        "duration_s": "how long it ran, in seconds",
        "steps": "steps taken",
        "step_limit": "steps allowed",
        "token_limit": "tokens allowed",
        "cost_limit": "cost allowed",
        "time_limit": "seconds allowed",
        "tool_calls": "tool calls made",
        "input_tokens": "tokens read",
        "output_tokens": "tokens written",
        "cost_usd": "what it cost, in US dollars",
        "waits": "its approvals: approval_id, kind, tool, owner, since, due, expires_at, ended_at, resolution, missing",
    },
    "records": {
        "record_id": "the record",
        "kind": "run.started, run.progress, run.stopped, approval.updated, outcome.recorded, run.died, ...",
        "run_id": "the run that it is about",
        "attempt": "which execution of the run",
        "event_at": "when it happened, by the writer's clock",
        "opened_at": "when the run's first record was made",
        "hour": "opened_at in hours since 1970",
        "resumes_run_id": "the run that this one takes up",
        "line": "the record as JSON: line->>'$.stop_cause'",
    },
    "policies": {
        "digest": "of the text, as verdicts name it",
        "id": "the policy's name",
        "version": "its version",
        "source": "its whole text",
        "first_used_at": "when a verdict was first given by it",
    },
    "forgettings": {
        "before_at": "runs that opened before this day went",
        "done_at": "when that was done",
    },
    "journal_position": {
        "segment": "the number of the segment",
        "byte_offset": "the byte in it that the store reaches",
    },
    "schema_migrations": {
        "name": "the step",
        "applied_at": "when it was applied",
    },
}


class Column(NamedTuple):
    """A column with its type, as the engine calls it, and its meaning."""

    table: str
    name: str
    type: str
    meaning: str


class Example(NamedTuple):
    """A query, and what it answers."""

    about: str
    sql: str


def columns() -> list[Column]:
    """Every column of a store of this version, table by table; the view has those of `verdicts`, and is left out."""
    from stopcause.store.duckdb_store import DuckStore  # noqa: PLC0415 - only this needs the engine

    with DuckStore.open(None) as store:
        shape = store.ask(_SHAPE).rows
    return [
        Column(table, name, kind, COLUMNS.get(table, {}).get(name, ""))
        for wanted in TABLES
        for table, name, kind in shape
        if table == wanted != "runs"
    ]


def examples() -> list[Example]:
    """Queries that answer something on any store."""
    parts = (part.strip() for part in text("sql_examples").split(";"))
    split = (part.removeprefix("-- ").partition("\n") for part in parts if part)
    return [Example(about, sql) for about, _, sql in split]
