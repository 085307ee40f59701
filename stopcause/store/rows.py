"""One row of the store: a verdict revision, with the facts of its run that reports group and sum by."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class VerdictRow(NamedTuple):
    """A revision of the verdict on one attempt. Closed-list words are plain strings here; times are UTC.

    `opened_at` is the `at` of the run's first accepted record, fixed then, and part of every key. A new revision
    appends the superseded row again with `sign` -1, so that sums over `sign` count every run once.
    """

    run_id: str
    attempt: int
    opened_at: datetime
    revision: int
    sign: int
    thread_id: str | None
    parent_run_id: str | None
    resumes_run_id: str | None
    agent: str | None
    agent_version: str | None
    service: str | None
    environment: str | None
    model: str | None
    provider: str | None
    framework: str | None
    framework_version: str | None
    adapter: str | None
    adapter_version: str | None
    contract: str | None
    verdict: str | None  # None while it runs
    reason: str
    rule: str
    stop_cause: str | None
    detail: str | None  # what the group's fingerprint adds to reason, cause, agent and environment
    evidence: tuple[str, ...]
    findings: tuple[str, ...]  # `code` or `code=where`
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
    started_at: datetime | None
    stopped_at: datetime | None
    last_at: datetime
    duration_s: float | None
    steps: int | None
    step_limit: float | None
    tool_calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
