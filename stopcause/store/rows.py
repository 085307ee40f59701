"""The rows of the store: a record with its line, and a verdict revision with what reports group and sum by."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class RecordRow(NamedTuple):
    """A record: what it is found by, and its canonical line. Rows are deduplicated by (`record_id`, `event_at`).

    `opened_at` is the `at` of its run's first accepted record; of a record without a run, its own `at`.
    """

    record_id: str
    kind: str
    run_id: str | None
    attempt: int
    event_at: datetime
    opened_at: datetime
    resumes_run_id: str | None
    line: bytes


class StoredLine(NamedTuple):
    """A record as it comes back: `line` is what `receipts.codec` reads."""

    run_id: str
    opened_at: datetime
    line: bytes


class Counts(NamedTuple):
    """What a store holds. `kinds`: records by kind. `verdicts`: runs by the verdict on their latest attempt."""

    records: int
    runs: int
    attempts: int
    kinds: dict[str, int]
    verdicts: dict[str | None, int]  # None: running


class StoredWait(NamedTuple):
    """An approval of an attempt. `resolution` is None while it keeps the run waiting, else what closed it.

    `due` is the soft deadline, `expires_at` the producer's hard one; `ended_at` is when it was closed, where that is
    known. A resume token is never in it.
    """

    approval_id: str | None
    kind: str
    tool: str | None
    owner: str | None
    since: datetime | None
    due: datetime | None
    expires_at: datetime | None
    ended_at: datetime | None
    resolution: str | None
    missing: tuple[str, ...]


class VerdictRow(NamedTuple):
    """A revision of the verdict on one attempt. Words of closed lists are strings here; times are UTC.

    `opened_at` is the `at` of the run's first accepted record, fixed then, and part of every key. A new revision
    appends the superseded row again with `sign` -1, so that sums over `sign` count every run once.
    """

    run_id: str
    attempt: int
    opened_at: datetime
    revision: int
    sign: int
    thread_id: str | None
    agent: str | None
    environment: str | None
    verdict: str | None  # None while it runs
    reason: str
    rule: str
    stop_cause: str | None
    evidence: tuple[str, ...]
    missing: tuple[str, ...]
    retry: str
    fingerprint: str  # the group
    settled: bool
    judge_again_at: datetime | None
    resolved_by: str | None
    policy_version: str
    policy_digest: str
    classifier_version: str
    as_of: datetime
    findings: tuple[str, ...]  # `code` or `code=where`
    detail: str | None  # what the group's fingerprint adds to reason, cause, agent and environment
    contract: str | None
    parent_run_id: str | None
    resumes_run_id: str | None
    agent_version: str | None
    service: str | None
    model: str | None
    provider: str | None
    framework: str | None
    framework_version: str | None
    adapter: str | None
    adapter_version: str | None
    started_at: datetime | None
    stopped_at: datetime | None
    last_at: datetime
    step_limit: float | None
    duration_s: float | None
    steps: int | None
    tool_calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    is_latest: bool  # the run's latest attempt: who counts runs counts these
    owner: str | None  # as the policy's entry for the agent says, as are the next two
    stage: str
    has_on_bound: bool
    token_limit: float | None
    cost_limit: float | None
    time_limit: float | None  # seconds
    waits: tuple[StoredWait, ...]
