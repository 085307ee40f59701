"""What one run of the OpenAI Agents SDK does while it goes on, as its `RunHooks` tell.

Here: counts, calls in flight, and where the loop stands; no cause is decided (`openai_agents`). A run takes one
`RunHooks` object, so ours stands before the host's and passes every callback on: the same arguments, order and
exceptions. Of a response only types, statuses and token counts are read.
"""

from __future__ import annotations

import contextlib
import functools
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.causes import Rank
from stopcause.receipts.vocabulary import Boundary, Finish, FinishSource, OutputShape, Sign, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

MAX_TURNS = "max_turns"
FAILURE = "maybe_invoke_function_tool_failure_error_function"  # in `agents.tool`

# Responses items that the SDK itself executes or passes on; other `*_call` items have run at the provider.
_LOCAL_CALLS = frozenset(
    {
        "function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call",
    }
)  # fmt: skip


class Call(NamedTuple):
    """A tool that runs: its name, and when it began, in seconds of the event loop's clock."""

    tool: str | None
    began: float


class Watch:
    """One run while it goes on. Methods are called by the framework's callbacks, inside a guard."""

    def __init__(self, hook: Hook, run: Run, agent: str | None, outer: Watch | None) -> None:
        self.hook = hook
        self.run = run
        self.agent = agent  # the framework's own name for it; the receipt may have the host's
        self.outer = outer  # the run of this framework that it is inside of
        self.max_turns: int | None = None
        self.turns_before = 0  # of the run that it resumes: the limit counts on
        self.metadata: dict[str, Any] = {}
        self.session: object = None
        self.cap_of_run: int | None = None
        self.approved: frozenset[str] = frozenset()
        self.is_asking = False  # the model has been asked and has not answered
        self.is_call = False  # its last answer asked for tools
        self.is_done = False  # an agent gave its final output
        self.began_since = 0  # tools that began after its last answer
        self.in_flight: dict[object, Call] = {}
        self.failed: set[object] = set()  # of those, whose exception was made an answer
        self.host_error: BaseException | None = None  # what a callback of the host's raised
        self.nested_error: BaseException | None = None  # what left a run inside this one

    @property
    def turns(self) -> int:
        """Completed turns as `max_turns` counts them."""
        return self.turns_before + (self.run.steps or 0)

    def reached_limit(self) -> None:
        """`max_turns` fired."""
        self.run.bounded(
            StopCause.STEP_LIMIT, MAX_TURNS, "steps", limit=self.max_turns, observed=self.turns or self.max_turns
        )

    def name_thread(self, *others: object) -> None:
        """By the session, else by these. A session at the provider has its id only after its first turn, and raises."""
        session = None
        with contextlib.suppress(Exception):
            session = getattr(self.session, "session_id", None)
        found = (each for each in (session, *others) if isinstance(each, str) and each)
        self.run.thread_id = self.run.thread_id or next(found, None)

    def asked(self, _context: object, agent: object, *_: object) -> None:
        """`on_llm_start`."""
        self.is_asking = True
        self.run.model_calls = (self.run.model_calls or 0) + 1
        cap = self.cap_of_run or getattr(getattr(agent, "model_settings", None), "max_tokens", None)
        self.run.output_cap = cap if type(cap) is int else None

    def answered(self, _context: object, _agent: object, response: Any, *_: object) -> None:  # noqa: ANN401
        """`on_llm_end`: a turn has its answer. Hosted tools have run by now; the provider reports them in it."""
        run = self.run
        self.is_asking, self.began_since = False, 0
        run.steps = (run.steps or 0) + 1
        kinds = [kind_of(item) for item in response.output]
        self.is_call = any(kind in _LOCAL_CALLS for kind in kinds)
        hosted = [kind for kind in kinds if kind.endswith("_call") and kind not in _LOCAL_CALLS]
        run.tool_calls = (run.tool_calls or 0) + len(hosted)
        if hosted:
            run.progress(Sign.TOOL_RESULT)
        self._executed(_of(item, "approval_request_id") for item in response.output)
        used = getattr(response.usage, "output_tokens", None)
        run.add_usage(getattr(response.usage, "input_tokens", None), used)
        run.finish, run.finish_raw = finish_of(response.output, used, run.output_cap)
        run.finish_source = FinishSource.DERIVED

    def began(self, context: object, _agent: object, tool: object, *_: object) -> None:
        """`on_tool_start`: a tool of the agent's, just before it runs."""
        self.began_since += 1
        self.run.tool_calls = (self.run.tool_calls or 0) + 1
        self.in_flight[_key(context, tool)] = Call(_name(tool), time.monotonic())

    def ended(self, context: object, _agent: object, tool: object, *_: object) -> None:
        """`on_tool_end`: it returned, or the SDK made an answer of its error."""
        key = _key(context, tool)
        call = self.in_flight.pop(key, None)
        if key in self.failed or _has_failed() or (call is not None and _timed_out(tool, call.began)):
            self.failed.discard(key)
            self.run.tool_errors_recovered += 1
        else:
            self.run.progress(Sign.TOOL_RESULT)
        self._executed((getattr(context, "tool_call_id", None),))

    def goes_on_inside(self, outer: Watch) -> None:
        """A paused inner run goes on. Its tool began in the run before, so no callback tells the outer one."""
        outer.began_since += 1
        outer.run.tool_calls = (outer.run.tool_calls or 0) + 1
        outer.in_flight[self] = Call(None, time.monotonic())

    def finished(self, *_: object) -> None:
        """`on_agent_end`: the loop has a final output."""
        self.is_done = True

    def _executed(self, call_ids: Iterable[object]) -> None:
        for call_id in call_ids:
            if isinstance(call_id, str) and call_id in self.approved:
                self.run.executed(call_id)


current_watch: ContextVar[Watch | None] = ContextVar("stopcause_openai_agents", default=None)

_NOTES: dict[str, Callable[..., None]] = {
    "on_llm_start": Watch.asked,
    "on_llm_end": Watch.answered,
    "on_tool_start": Watch.began,
    "on_tool_end": Watch.ended,
    "on_agent_end": Watch.finished,
}


def listener(base: type) -> type:
    """A subclass of the SDK's `RunHooksBase` that notes and passes on every callback that this version has."""

    def init(self: Any, watch: Watch, host: Any) -> None:  # noqa: ANN401
        self.watch, self.host = watch, base() if host is None else host

    names = [name for name in dir(base) if name.startswith("on_")]
    return type("Listener", (base,), {"__init__": init, **{name: _callback(name) for name in names}})


def _callback(name: str) -> Callable[..., Any]:
    note = _NOTES.get(name)

    async def callback(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the framework calls it
        watch: Watch = self.watch
        if note is not None:
            with watch.hook.guard(name):
                note(watch, *args, *kwargs.values())  # named or not, they come in the order of the signature
        try:
            return await getattr(self.host, name)(*args, **kwargs)
        except BaseException as error:
            watch.host_error = error
            raise

    callback.__name__ = name
    return callback


def told_of(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """The SDK's function that makes an answer of a tool's exception, which tells when it has: None is none.

    The span around the tool has the error too, but only where the host traces.
    """

    @functools.wraps(theirs)
    async def failed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as theirs
        watch, context, tool = current_watch.get(), kwargs.get("context"), kwargs.get("function_tool")
        asking = theirs(*args, **kwargs)
        args, kwargs = (), {}  # as in `openai_agents._run`
        answer = await asking
        if watch is not None and answer is not None:
            with watch.hook.guard("tool_failed"):
                watch.failed.add(_key(context, tool))
        return answer

    return failed


def heard(watch: Watch, handlers: object) -> object:
    """The host's `error_handlers`, each of which tells that it was asked before it answers.

    A result that a handler made looks like any other (`run_internal/error_handlers.py`), so this is the only sign.
    """
    if not isinstance(handlers, dict):
        return handlers
    return {kind: _heard(watch, kind, handler) if callable(handler) else handler for kind, handler in handlers.items()}


def _heard(watch: Watch, kind: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(handler)
    def asked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the handler's own
        with watch.hook.guard("error_handlers"):
            _HANDLED.get(kind, _nothing)(watch)
        return handler(*args, **kwargs)

    return asked


def _wrapped_up(watch: Watch) -> None:
    watch.reached_limit()
    watch.run.forced_wrapup = True


def _refused(watch: Watch) -> None:
    """The handler only words it: the model declined, and the work is not there."""
    watch.run.say(StopCause.REFUSAL, Rank.SIGNAL, Boundary.CALLBACK)


def _mended(watch: Watch) -> None:
    """The model's final output did not fit its type, and the host made another of it."""
    watch.run.model_errors_recovered += 1


def _nothing(_watch: Watch) -> None:
    pass


_HANDLED = {MAX_TURNS: _wrapped_up, "model_refusal": _refused, "invalid_final_output": _mended}


def finish_of(output: Iterable[object], used: object, cap: int | None) -> tuple[Finish | None, str | None]:
    """What the items of a response tell of how it ended, and the word for it. The SDK keeps no finish reason.

    A message that is `incomplete` was cut, by the limit or by a filter: which one, only the token count can say. A Chat
    Completions answer that was cut has no mark at all but that it is as long as it may be.
    """
    messages = [item for item in output if kind_of(item) == "message"]
    if any(kind_of(part) == "refusal" for message in messages for part in _parts(message)):
        return Finish.REFUSAL, "refusal"
    is_full = cap is not None and type(used) is int and used >= cap
    if any(_of(message, "status") == "incomplete" for message in messages):
        return (Finish.LENGTH if is_full else Finish.OTHER), "incomplete"
    return (Finish.LENGTH, None) if is_full else (None, None)


def shape_of(output: object) -> OutputShape:
    """A final output by its type, and whether there is anything at all."""
    if output is None or (isinstance(output, str) and not output):
        return OutputShape.NONE
    return OutputShape.TEXT if isinstance(output, str) else OutputShape.STRUCTURED


def kind_of(item: object) -> str:
    """The `type` of a Responses item, which is a model or a dict."""
    kind = _of(item, "type")
    return kind if isinstance(kind, str) else ""


def _parts(message: object) -> Iterable[object]:
    parts = _of(message, "content")
    return parts if isinstance(parts, list | tuple) else ()


def _of(item: object, name: str) -> object:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _has_failed() -> bool:
    """Whether the tool that just ended failed, by the error on the span around it (`FunctionSpanData`).

    Tools that are no functions have only this; where the host has turned tracing off, nothing tells of them.
    """
    from agents.tracing import get_current_span

    span = get_current_span()
    return span is not None and span.error is not None and span.span_data.type == "function"


def _timed_out(tool: object, began: float) -> bool:
    """Whether a tool has had all its time: the SDK makes an answer of that by itself (`timeout_behavior`), unmarked."""
    most = getattr(tool, "timeout_seconds", None)
    return isinstance(most, int | float) and time.monotonic() - began >= most


def _key(context: object, tool: object) -> object:
    """A call by its id; of tools that are called without one, by the tool."""
    return getattr(context, "tool_call_id", None) or id(tool)


def _name(tool: object) -> str | None:
    name = getattr(tool, "name", None)
    return name if isinstance(name, str) else None
