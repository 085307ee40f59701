"""The names under which telemetry leaves: one event, one metric, their attributes. Others' dashboards rest on them.

Own names are under `stopcause.`; what OpenTelemetry has a name for keeps that. No word in them is one that scrubbers
redact (`REDACTED`), no name is also the head of another (back ends that store objects refuse that), and nothing under
these names is free text.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from stopcause.classifier.verdict import VerdictName
from stopcause.receipts import attributes
from stopcause.receipts.attributes import Attribute as Receipt
from stopcause.receipts.vocabulary import Word

SCOPE: Final = attributes.SCOPE
SERVICE: Final = "stopcause"
JUDGED: Final = "stopcause.run.judged"
REDACTED: Final = ("auth", "session", "secret", "credential", "cookie")


def _same(name: Receipt) -> tuple[str, str]:
    """An attribute that means here what it means on the receipt's own event."""
    return str(name), name.meaning


class Attribute(Word):
    """An attribute of the event, with what it says."""

    EVENT = _same(Receipt.EVENT)
    VERDICT_ID = "stopcause.verdict.id", "run, attempt and revision: the same verdict sent twice has the same id"
    RUN_ID = _same(Receipt.RUN_ID)
    RUN_ATTEMPT = _same(Receipt.RUN_ATTEMPT)
    VERDICT = "stopcause.verdict.name", "one of the eight verdicts"
    REASON = "stopcause.verdict.reason", "which case of the verdict"
    RULE = "stopcause.verdict.rule", "the rule that matched"
    REVISION = "stopcause.verdict.revision", "from 1; each change of the verdict is one more"
    SETTLED = "stopcause.verdict.settled", "whether nothing more is due for the run"
    EVIDENCE = "stopcause.verdict.evidence", "names of the fields that decided"
    FINDINGS = "stopcause.verdict.findings", "codes of what is worth saying beside it"
    MISSING = "stopcause.verdict.missing", "what a wait lacks"
    GROUP = "stopcause.verdict.group", "verdicts of one kind share it"
    RETRY = "stopcause.verdict.retry", "whether to start the run again"
    PREVIOUS = "stopcause.verdict.previous.name", "the verdict before this one, if any"
    PREVIOUS_REASON = "stopcause.verdict.previous.reason", "and its reason"
    CAUSE = _same(Receipt.CAUSE)
    STEPS = _same(Receipt.STEPS)
    STEP_LIMIT = "stopcause.step.limit", "the least step limit that held"
    TOOL_CALLS = _same(Receipt.TOOL_CALLS)
    DURATION = _same(Receipt.DURATION)
    RUN_SERVICE = _same(Receipt.RUN_SERVICE)
    CONTRACT = _same(Receipt.CONTRACT)
    STAGE = "stopcause.stage", "observe or enforce"
    OWNER = "stopcause.owner", "whose agent it is, as the policy says"
    POLICY_VERSION = "stopcause.policy.version", "the version of the policy that judged it"
    POLICY_DIGEST = "stopcause.policy.digest", "the digest of that policy's text"
    CLASSIFIER = "stopcause.classifier.version", "the version of the rules"
    AGENT = _same(Receipt.AGENT)
    AGENT_VERSION = _same(Receipt.AGENT_VERSION)
    CONVERSATION = _same(Receipt.CONVERSATION)
    OPERATION = _same(Receipt.OPERATION)
    ERROR_TYPE = _same(Receipt.ERROR_TYPE)
    ENVIRONMENT = _same(Receipt.ENVIRONMENT)


class Label(Word):
    """An attribute of the metric. Never an id: each pair of values is a series that somebody pays for."""

    VERDICT = "verdict", "the verdict at settling"
    REASON = "reason", "its reason"
    CAUSE = "cause", "the stop cause; absent where nothing stopped it"
    AGENT = "agent", "the agent; absent where it has no name"
    ENVIRONMENT = "environment", "where it ran; absent where that is not known"


OVERFLOW: Final = "otel.metric.overflow"  # the specification's own mark for what a limit on series folded together
OTHER_AGENTS: Final = "(other)"  # no agent can be called so


class Counter(NamedTuple):
    """A metric that only grows."""

    name: str
    unit: str
    meaning: str

    @property
    def prometheus(self) -> str:
        """What it is called in Prometheus: dots are underscores, a counted unit goes, a counter is a total."""
        return f"{self.name.replace('.', '_')}_total"


RUNS: Final = Counter("stopcause.runs", "{run}", "Runs that are settled, each counted once, when it settled.")

SEVERITY: Final = {
    VerdictName.VERIFIED_COMPLETE: "INFO",
    VerdictName.BOUNDED_STOP: "INFO",
    VerdictName.WAITING: "INFO",
    VerdictName.WAITING_UNROUTED: "WARN",
    VerdictName.FALSE_COMPLETE: "WARN",
    VerdictName.UNCERTAIN: "WARN",
    VerdictName.STUCK: "ERROR",
    VerdictName.FAILED: "ERROR",
}
