"""What is known of inputs, runs, interrupts and threads. Frozen; all ids are as the wire gives them.

`given` ids and schemas stay in memory and in the guard's own file. What leaves this room goes through `ids.safe`.
Times are aware datetimes in UTC, None where nobody says.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from stopcause.agui.findings import Finding
from stopcause.agui.words import Channel, Ending, Mode, State
from stopcause.receipts.vocabulary import ApprovalKind, Decision, StopCause

Json = Any  # what a JSON document holds: checked when it is read
NOTHING: Mapping[str, Any] = {}
UNNAMED = "unnamed"  # a thread or a run of which nobody says what it is called: any number of them


class Interrupt(NamedTuple):
    """One thing that a run asks for.

    Attributes:
        id: As the producer wrote it; unique in its run at best.
        kind: Of the approval that it is.
        channel: By what it was told.
        tool_call_id: The gated call, where it names one.
        tool: That call's tool, where a call by that id was seen.
        raised_by: The subagent that asks (`subagentRunId`).
        expires_at: Hard, the producer's.
        is_expiry_unreadable: It has an `expiresAt` that is no time: then it does not expire.
        owner: Of `metadata.stopcause`.
        due: The same; soft, ours. One that counts from the run's end is `due_in_s`, in seconds.
        schema: `responseSchema` without what people read in it; None where it has none.
        schema_digest: Of the whole schema.
    """

    id: str
    kind: ApprovalKind
    channel: Channel = Channel.OUTCOME
    tool_call_id: str | None = None
    tool: str | None = None
    raised_by: str | None = None
    expires_at: datetime | None = None
    is_expiry_unreadable: bool = False
    owner: str | None = None
    due: datetime | None = None
    due_in_s: float | None = None
    schema: Json = None
    schema_digest: str | None = None


class Entry(NamedTuple):
    """One answer of an input's `resume`, without the answer itself.

    Attributes:
        id: The interrupt that it names.
        status: `resolved` or `cancelled`, or what else stands there.
        digest: Of the canonical payload; one that is absent and one that is null differ.
        has_payload: Whether there is one.
        approved: The payload's `approved`, where that is a boolean.
        bare: The payload itself, where that is a boolean.
        is_edited: The payload has `editedArgs`.
    """

    id: str
    status: str
    digest: str
    has_payload: bool = False
    approved: bool | None = None
    bare: bool | None = None
    is_edited: bool = False


class Input(NamedTuple):
    """A RunAgentInput, without content.

    Attributes:
        resume: The answers; None where there is no list, empty where the list is.
        legacy_answers: What `forwardedProps.command.resume` brings, the channel before `resume`: one without an id,
            which answers everything, or a map's, by id.
        tools: Names of the client's own tools.
        calls: Tool calls in its messages that have no result there: id -> tool, or None where it has no fit name.
        answered: Ids of tool calls that have one.
        has_messages: Whether there is a list of messages, be it empty; an echo's may lack some, and counts as none.
        is_echo: It is not what was sent, but what the stream says that was.
    """

    thread_id: str
    run_id: str
    parent_run_id: str | None = None
    protocol_version: str | None = None
    resume: tuple[Entry, ...] | None = None
    legacy_answers: tuple[Entry, ...] = ()
    tools: frozenset[str] = frozenset()
    calls: Mapping[str, str | None] = NOTHING
    answered: frozenset[str] = frozenset()
    has_messages: bool = False
    is_echo: bool = False
    findings: tuple[Finding, ...] = ()  # about its own shape


class Result(NamedTuple):
    """That a tool call came back: an event of its own, or a message in a snapshot. `message_id` tells repeats."""

    tool_call_id: str
    message_id: str | None = None
    is_event: bool = True


class Usage(NamedTuple):
    """What the run says that it used."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    provider: str | None = None


class Subagents(NamedTuple):
    """How many invocations were announced, by how they ended. Those that a RUN_ERROR ends are open."""

    open: int = 0
    failed: int = 0
    suspended: int = 0


class Begun(NamedTuple):
    """A run whose RUN_STARTED was seen (or whose first event was RUN_ERROR)."""

    thread_id: str
    run_id: str
    mode: Mode
    input: Input | None
    at: datetime | None


class RunSeen(NamedTuple):
    """A run whose stream is over, or as good as: a RUN_ERROR that comes late makes another one of it.

    Attributes:
        cause: Why it stopped. `reason` is a code beside it, `error_code` that of RUN_ERROR.
        is_late: It had finished when the RUN_ERROR came.
        is_more: Its stream has gone on about it: it was told before, and this counts instead.
        interrupts: What it asks for, each once, whatever ways it was told.
        calls: Tool calls that began in this run: id -> tool, or None where it has no fit name.
        pending: Those that have no result, in the order of their calls, but for the client's own tools.
        left: Those to the client's own tools that have none: they are left to the client.
        results: Tool calls that came back, of earlier runs too. What the input already had is left out.
        steps: How many STEP_STARTED; None where there was none.
        idle_s: Silence between the last event and the end of the stream, where the clock of both is known.
        counts: Events by type, those of unknown type as `unrecognised`.
        receipt: What the producer's own receipt in `RUN_FINISHED.metadata.stopcause` says: fields of `run.stopped`.
    """

    thread_id: str
    run_id: str
    mode: Mode
    ending: Ending
    cause: StopCause
    reason: str | None = None
    error_code: str | None = None
    is_late: bool = False
    is_more: bool = False
    protocol_version: str | None = None
    http_status: int | None = None
    input: Input | None = None
    interrupts: tuple[Interrupt, ...] = ()
    calls: Mapping[str, str | None] = NOTHING
    pending: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    steps: int | None = None
    subagents: Subagents = Subagents()
    usage: Usage = Usage()
    has_output: bool = False
    began_at: datetime | None = None
    ended_at: datetime | None = None
    last_event_at: datetime | None = None
    progress_at: datetime | None = None
    made_progress: bool = False
    idle_s: float | None = None
    counts: Mapping[str, int] = NOTHING
    receipt: Mapping[str, Any] = NOTHING
    findings: tuple[Finding, ...] = ()


class Raised(NamedTuple):
    """An interrupt in its thread: which run asked, where it stands, and which answer it was given last."""

    run_id: str
    interrupt: Interrupt
    state: State = State.OPEN
    answer: Entry | None = None
    answered_by: str | None = None  # the run that brought the answer


class Thread(NamedTuple):
    """What is known of a thread. Small: it is what the guard keeps.

    Attributes:
        paused_run: The most recent run that asked. Its interrupts, and no others, are what a resume answers.
        raised: The interrupts that may still matter, oldest first: every open or lost one, and those of the last
            runs that asked, with their answers.
        results: Tool calls that came back in it, the newest last; bounded.
        same_set: How many runs in a row ended with the open set of now.
        refusals: How many in a row ended with the same refusal, and that refusal.
        runs: The last runs that ended in it, the newest last; bounded. One that is seen again changes nothing.
        left: Calls that its last run left to the client: the next input's messages have to have their results.
    """

    id: str
    paused_run: str | None = None
    raised: tuple[Raised, ...] = ()
    results: tuple[Result, ...] = ()
    same_set: int = 0
    refusals: tuple[int, str] = (0, "")
    runs: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def open(self) -> tuple[Raised, ...]:
        """What the next input has to cover: the open interrupts of the most recent run that asked."""
        return tuple(each for each in self.raised if self.asks(each) and each.state is State.OPEN)

    def asks(self, raised: Raised) -> bool:
        """Whether it is of the most recent run that asked, wherever it stands."""
        return raised.run_id == self.paused_run


class Decided(NamedTuple):
    """What an input's answer says about an interrupt of an earlier run. `is_fit` None: nobody held it to a schema."""

    run_id: str
    interrupt_id: str
    decision: Decision
    digest: str | None = None
    is_fit: bool | None = None


class Link(NamedTuple):
    """How a run hangs in its thread.

    Attributes:
        resumes_run_id: The run that it takes up; None where it continues nothing.
        answers: The interrupts of that run that it takes over, by answering them or by asking again. Empty: none.
        decided: What its input's answers say, once each.
        executed: Gated calls of earlier runs that ran in this one, as they were allowed to: (run, interrupt).
        bypassed: Those that nobody had allowed.
        lost: Questions of earlier runs that nobody asks for any more: (run, interrupt).
        asked: What it asks, each id once, with what an earlier run said of the same where it says nothing itself.
        findings: About the run in its thread.
    """

    resumes_run_id: str | None = None
    answers: tuple[str, ...] = ()
    decided: tuple[Decided, ...] = ()
    executed: tuple[tuple[str, str], ...] = ()
    bypassed: tuple[tuple[str, str], ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    asked: tuple[Interrupt, ...] = ()
