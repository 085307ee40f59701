"""The core hook: `configure` once, then `run`, `tracked` or `wrap_stream` around an agent.

    with stopcause.run("invoice-agent", thread_id=thread) as run:
        ...
        run.step(tool_calls=1)

Nothing here knows a framework; hooks (`stopcause.receipts.hooks`) stand on the same functions through `begin`. Nothing
here raises into the host but `configure`, which is called while the program starts.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from stopcause import settings
from stopcause.receipts import configuration, streams
from stopcause.receipts.configuration import Configuration, Sink, Validator
from stopcause.receipts.records import Draft
from stopcause.receipts.run import Run, current
from stopcause.receipts.writer import Writer, flush_all

_F = TypeVar("_F", bound=Callable[..., Any])

_lock = threading.Lock()
_config = Configuration()
_writer: Writer | None = None
_ambient: list[Callable[[], Run | None]] = []
EVERYTHING = frozenset({"1", "true", "yes", "all"})  # words that turn every hook off


def configure(  # noqa: PLR0913 - one parameter for each thing that a host may say
    *,
    sink: Sink | None = None,
    service: str | None = None,
    environment: str | None = None,
    labels: Mapping[str, str] | None = None,
    label_keys: Iterable[str] = (),
    route: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    approval_keys: Mapping[str, str] | None = None,
    validators: Mapping[str, Validator] | None = None,
    loop_policy: str | None = None,
    lease_s: float = 300.0,
    queue_max: int = 50_000,
) -> None:
    """Says once, for all runs from here on, what they cannot know themselves.

    Args:
        sink: Where records go: `stopcause.receipts.sinks`, or anything with `write(lines)` and `close()`. The spool.
        service: The service that these agents are part of.
        environment: Where it runs, as `prod`.
        labels: Up to 8 fixed labels of every run.
        label_keys: Keys of a framework's metadata, or of `run(labels=...)`, that may become labels.
        route: Who answers waits: `{"owner": ..., "due_s": ..., "expires_s": ...}`, or a list of them with `agent`,
            `kind` and `tool` patterns; the first that matches counts.
        approval_keys: `{"owner": key}` and so on: what may be read out of a framework's metadata of a wait.
        validators: By contract, a function of `Finished` that looks at the destination and returns True, False or None.
        loop_policy: The name of the application's policy for its loop.
        lease_s: Seconds of silence after which an open run counts as stuck.
        queue_max: Records that may wait in memory.

    Raises:
        ConfigurationError: A value is wrong; the message names it.
    """
    checked = configuration.checked(
        sink=sink, service=service, environment=environment, labels=labels, label_keys=label_keys, route=route,
        approval_keys=approval_keys, validators=validators, loop_policy=loop_policy, lease_s=lease_s,
        queue_max=queue_max,
    )  # fmt: skip
    _become(checked, None)


@contextlib.contextmanager
def configured(**options: Any) -> Iterator[None]:  # noqa: ANN401 - those of `configure`
    """`configure` for a block; afterwards what held before holds again."""
    global _writer
    before, _writer = (_config, _writer), None
    try:
        configure(**options)
        yield
    finally:
        if _writer is not None:  # only its own: another's sink may never take what it was given
            _writer.flush(5.0)
        _become(*before)


def _become(config: Configuration, writer: Writer | None) -> None:
    """Another configuration holds. Runs that are open go on with the one that they began with."""
    global _config, _writer
    with _lock:
        old, _config, _writer = _writer, config, writer
    if old is not None and old is not writer:
        old.retire()


def writer() -> Writer | None:
    """The writer of this process, made when it is first needed; None where hooks are off."""
    if _writer is None and not is_off():
        _make_writer()
    return _writer


def _make_writer() -> None:
    global _writer  # noqa: PLW0603 - the one writer of this process
    made = Writer(_config)  # outside: what a collection ends meanwhile may come here again
    with _lock:
        _writer = _writer or made


def is_off(hook: str | None = None) -> bool:
    """Whether STOPCAUSE_DISABLED turns everything off, or this hook."""
    words = disabled()
    return not EVERYTHING.isdisjoint(words) or hook in words


def disabled() -> frozenset[str]:
    """The words of STOPCAUSE_DISABLED, as hooks are called in Python."""
    return _words(settings.setting("STOPCAUSE_DISABLED") or "")


@functools.lru_cache(maxsize=8)
def _words(said: str) -> frozenset[str]:
    return frozenset(said.lower().replace(",", " ").replace("-", "_").split())


def flush(timeout: float | None = 5.0) -> bool:
    """Waits until all that happened so far is with the sink (durable, where that is the spool), and has been looked at.

    Validators look at a run after it is over; this waits for them too.

    Returns:
        False where it is not after `timeout` seconds.
    """
    return flush_all(timeout)


def run(  # noqa: PLR0913 - the ids of a run
    agent: str | None = None,
    *,
    run_id: str | None = None,
    attempt: int = 1,
    thread_id: str | None = None,
    parent_run_id: str | None = None,
    resumes: str | None = None,
    answers: Mapping[str, str | None] | Iterable[str] = (),
    agent_version: str | None = None,
    model: str | None = None,
    provider: str | None = None,
    labels: Mapping[str, str] | None = None,
    contract: str | None = None,
    subject: str | None = None,
    step_unit: str | None = None,
) -> Run:
    """A run of an agent, as a sync or async context manager. A framework's hook inside it adds to the same receipt.

    Args:
        agent: What it is called.
        run_id: Its id, where the application has one.
        attempt: Which execution of the run, from 1.
        thread_id: What runs that continue each other share.
        parent_run_id: The run that started it; inside another run's block that one, unless said.
        resumes: The run that it resumes.
        answers: The approvals of that run that it answers, with decisions (`approved`, `denied`, ...) if known.
        agent_version: Its version.
        model: The model's name.
        provider: The model's provider.
        labels: Of these, the keys that `configure(label_keys=...)` allows.
        contract: What has to be true when it is done.
        subject: A digest of what it is about.
        step_unit: What a step is; `step` unless said.
    """
    made = Run(writer(), _config, agent, attempt)
    if (parent := current_run()) is not None:
        made.be_child_of(parent)
    made.told(
        {
            "run_id": run_id, "thread_id": thread_id, "parent_run_id": parent_run_id, "resumes": resumes,
            "answers": answers, "agent_version": agent_version, "model": model, "provider": provider, "labels": labels,
            "contract": contract, "subject": subject, "step_unit": step_unit,
        }
    )  # fmt: skip
    return made


def begin(
    adapter: str, framework: str, version: str | None, agent: str | None = None, *, parent: Run | None = None
) -> Run:
    """A framework's run, not started yet: the host's own where its block is open and has none, else a new one.

    The hook sets what it knows, calls `start` (nothing happens where the host's has), and `end` once.

    Args:
        adapter: The hook, as `stopcause.langgraph`.
        framework: The framework's name.
        version: Its version.
        agent: What the framework calls the agent; the host's own word counts before it.
        parent: The run that it is inside of, where the hook knows; else the context says.
    """
    outer = current_run() if parent is None or parent.is_closed else parent
    if outer is not None and parent is None and outer.adopt():
        made = outer
        made.agent = made.agent or agent
    else:
        is_silent = outer is not None and outer.writer is None  # nothing is recorded of it, nor of what is inside
        made = Run(None if is_silent else writer(), _config, agent)
        if outer is not None:
            outer.went_on()
            made.be_child_of(outer)
    made.adapter, made.framework, made.framework_version = adapter, framework, version
    return made


def tell(drafts: list[Draft], *, is_receipt: bool = False) -> None:
    """Hands over records of a run that is watched from outside, as mappings in the wire format. They now belong here.

    What the wire does not take is mended behind, as in a run's own records. Nothing happens where hooks are off.
    """
    if (to := writer()) is not None:
        to.told(drafts, is_receipt=is_receipt)


def configured_now() -> Configuration:
    """What holds for a run that begins now."""
    return _config


def current_run() -> Run | None:
    """The innermost run that is open here: of a block in this context, or of a framework that scopes its own."""
    found = current.get()
    if _ambient:
        runs = [each for each in (found, *(_found(find) for find in _ambient)) if each is not None]
        found = max(runs, key=lambda each: (not each.is_closed, each.started_mono), default=None)
    return None if found is None or found.is_closed else found


def ambient(find: Callable[[], Run | None]) -> Callable[[], None]:
    """For a hook whose framework has a context of its own that can be relied on: how its open run is found there.

    Returns:
        A function that undoes it.
    """
    _ambient.append(find)
    return lambda: _ambient.remove(find)


def _found(find: Callable[[], Run | None]) -> Run | None:
    try:
        return find()
    except Exception:  # noqa: BLE001 - a framework that has changed; its run is then nobody's parent
        return None


@overload
def tracked(function: _F, /) -> _F: ...
@overload
def tracked(*, agent: str | None = None, **ids: Any) -> Callable[[_F], _F]: ...  # noqa: ANN401 - as `run` takes them
def tracked(function: Any = None, /, *, agent: str | None = None, **ids: Any) -> Any:
    """Makes each call of a function, coroutine function, generator or async generator a run.

    Where a plain function returns a coroutine or a generator, the run ends with that.

    Args:
        function: What runs the agent.
        agent: What it is called; the function's name without it.
        ids: As `run` takes them.
    """
    if function is None:
        return functools.partial(_tracked, agent=agent, ids=ids)
    return _tracked(function, agent=agent, ids=ids)


def _tracked(function: Callable[..., Any], *, agent: str | None, ids: Mapping[str, Any]) -> Callable[..., Any]:
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_tracked(function.__func__, agent=agent, ids=ids))
    inspect.signature(run).bind(agent, **ids)  # a name that is none fails here and not in the agent
    name = agent or getattr(function, "__name__", None)
    if inspect.isasyncgenfunction(function):
        return streams.async_generator_function(function, lambda stream: streams.AsyncStream(stream, run(name, **ids)))
    if inspect.isgeneratorfunction(function):
        return streams.generator_function(function, lambda stream: streams.Stream(stream, run(name, **ids)))
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            with run(name, **ids) as made:
                result = await function(*args, **kwargs)
                made.keep(result)
                return result

        return coroutine

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with run(name, **ids) as made:
            result = function(*args, **kwargs)
            if streams.goes_on(result):
                return streams.going_on(result, made)
            made.keep(result)
            return result

    return plain


def wrap_stream(stream: Any, agent: str | None = None, **ids: Any) -> Any:  # noqa: ANN401 - any iterator, given back
    """An iterator or async iterator that is a run: it begins with the first item that is asked for.

    It ends with the stream: whole, with an exception, closed by its reader, or dropped.
    """
    made = run(agent, **ids)
    if hasattr(stream, "__aiter__") or hasattr(stream, "__anext__"):
        items = stream if hasattr(stream, "__anext__") else aiter(stream)
        return streams.AsyncStream(items, made, stream)
    return streams.Stream(iter(stream), made, stream)
