"""Events -> runs: the state machine of a stream (spec 1.0, events/lifecycle). Nothing of what a run said is kept.

    start -> active by RUN_STARTED, or failed by RUN_ERROR
    active -> closed by RUN_FINISHED, or failed by RUN_ERROR
    closed -> failed by a late RUN_ERROR;  closed, failed -> active by RUN_STARTED

A run is told at its end, at once. It is told again where its stream goes on about it: as failed by a late RUN_ERROR, as
rejected by anything else that comes after its end. A later telling replaces the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from stopcause.agui import closing
from stopcause.agui.course import UNRECOGNISED, Course, End, Moment
from stopcause.agui.findings import MOST_IDS
from stopcause.agui.frames import Event, Unreadable
from stopcause.agui.inputs import read_input
from stopcause.agui.modes import read_version
from stopcause.agui.shapes import EVENTS
from stopcause.agui.values import UNNAMED, Begun, Input, RunSeen
from stopcause.agui.words import Ending, Mode

Said: TypeAlias = tuple[Begun | RunSeen, ...]
_HTTP_OK = range(200, 300)
_GATEWAY = frozenset({502, 504})  # said by what stands in front of the agent, which lost it: it may have run
_ENDS = frozenset({"RUN_FINISHED", "RUN_ERROR"})
_NO_EVENT = Unreadable("FRAME_UNREADABLE")
# Large frames of these types may be passed over without a loss for what is open.
_HARMLESS = frozenset(
    {"RAW", "CUSTOM", "STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"}
    | {"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "TOOL_CALL_RESULT", "REASONING_MESSAGE_CONTENT"}
)


def _never(_tool: str) -> bool:
    return False


class Watch:
    """One stream, any number of runs.

    Args:
        given: The input that asked for the stream, where it is known.
        http_status: What the request was answered with; one that is not 2xx has no stream.
        waits: Whether a call to this tool of the client's own is a wait.
        mode: By which contract it is read, in place of what it declares.
    """

    def __init__(
        self,
        given: Input | None = None,
        *,
        http_status: int | None = None,
        waits: Callable[[str], bool] = _never,
        mode: Mode | None = None,
    ) -> None:
        self._given, self._http_status, self._waits, self._mode = given, http_status, waits, mode
        self._thread_id = given.thread_id if given is not None else None
        self._course: Course | None = None
        self._runs = 0  # that began
        self._strays, self._stray_types = 0, set[str]()  # events of unknown types before any run
        self._is_over = False
        self._is_answered = False  # the requested run was told of

    def take(self, event: Event, at: datetime | None = None) -> Said:
        """One event, or what stands for a frame that could not be read.

        Args:
            event: As the reader gives it.
            at: When it came, where a clock saw that; else its own `timestamp` counts.

        Returns:
            What can be said now: a run that begins, and runs that are over.
        """
        if not isinstance(event, dict):
            return self._take_unreadable(event if isinstance(event, Unreadable) else _NO_EVENT, at)
        kind = event.get("type")
        if not isinstance(kind, str):
            return self._take_unreadable(_NO_EVENT, at)
        if kind not in EVENTS:
            return self._take_unknown(kind, event, at)
        if kind == "RUN_STARTED":
            return self._start(event, at)
        if kind == "RUN_FINISHED" or kind == "RUN_ERROR":  # noqa: PLR1714 - the hot path makes no set
            return self._end(kind, event, at)
        course = self._course if self._course is not None else self._imply(event, kind)
        course.saw(kind, event, at)
        if course.end is None:
            course.take(kind, event)
        else:
            course.blame("EVENT_AFTER_CLOSE", kind)
            course.is_due = True
        return ()

    def close(self, at: datetime | None = None, *, left_by_reader: bool = False) -> tuple[RunSeen, ...]:
        """The stream is over. `left_by_reader`: because its reader went away."""
        if self._is_over:
            return ()
        self._is_over = True
        course = self._course
        if course is None:
            return self._close_empty(at, left_by_reader=left_by_reader)
        if self._is_held(course):
            course.given = self._given
            course.blame("RUN_ID_MISMATCH", course.run_id)
            course.is_due = True
        if course.end is None:
            course.end = closing.truncate(course, at, left_by_reader=left_by_reader)
            course.is_due = True
        return (*self._tell(course), *self._unheard(course, at, left_by_reader=left_by_reader))

    def _unheard(self, last: Course, at: datetime | None, *, left_by_reader: bool) -> tuple[RunSeen, ...]:
        """The requested run, where several others were told and not that one: replayed runs, and then it broke off.

        The requested run is a stream's last (spec 1.0, basic/run-input). A late RUN_ERROR may have been about it.
        """
        is_error = last.end is not None and last.end.ending is Ending.ERROR
        if self._given is None or self._is_answered or self._runs < 2 or is_error:  # noqa: PLR2004 - one is wrong
            return ()
        course = self._imply({}, None)
        course.end, course.is_due = closing.truncate(course, at, left_by_reader=left_by_reader), True
        return self._tell(course)

    # Runs begin ----------------------------------------------------------------------------------------------------

    def _start(self, event: Mapping[str, Any], at: datetime | None) -> Said:
        before = self._course
        if before is None or (before.end is None and not before.is_begun):
            return (self._begun(self._begin(before, event, at)),)
        if before.end is None:
            before.blame("NESTED_RUN", self._name(event, "runId"))
            if event.get("runId") == before.run_id:
                return ()  # the same run once more: it goes on
            before.end, before.is_due = closing.overtaken(before), True
        return (*self._tell(before), self._begun(self._begin(None, event, at)))

    def _begin(self, implied: Course | None, event: Mapping[str, Any], at: datetime | None) -> Course:
        """A run of this name, or the one that events before their RUN_STARTED were taken for."""
        thread_id, run_id = self._name(event, "threadId"), self._name(event, "runId")
        self._runs += 1
        self._is_answered = self._is_answered or (self._given is not None and self._given.run_id == run_id)
        given = self._input_of(run_id, event.get("input"))
        course = implied or self._new(thread_id, run_id, given)
        course.thread_id, course.run_id, course.given = thread_id, run_id, given
        self._course, course.is_begun = course, True
        course.saw("RUN_STARTED", event, at)
        course.began = Moment(at, event.get("timestamp"))
        course.is_sound(event, EVENTS["RUN_STARTED"], "RUN_STARTED")
        self._declare(course, event)
        self._same_thread(course, event.get("threadId"))
        course.restate_all(event.get("input"))
        return course

    def _declare(self, course: Course, event: Mapping[str, Any]) -> None:
        course.declared = read_version(event.get("protocolVersion"))
        if not course.declared.is_there:
            course.blame("NO_VERSION")
        elif not course.declared.is_readable:
            course.blame("VERSION_UNREADABLE")

    def _same_thread(self, course: Course, thread_id: Any) -> None:  # noqa: ANN401 - any JSON value
        """The input's thread, else that of the first run, is the stream's (spec 1.0, basic/run-input)."""
        if not isinstance(thread_id, str):
            return
        if self._thread_id is None:
            self._thread_id = thread_id
        elif thread_id != self._thread_id:
            course.blame("THREAD_ID_MISMATCH", thread_id)

    def _input_of(self, run_id: str, echo: Any) -> Input | None:  # noqa: ANN401 - any JSON value
        """The input of a run: the given one, where it is for this run; else what its RUN_STARTED echoes.

        An echo may lack messages that the thread has (spec 1.0, events/lifecycle): that they are missing says nothing.
        """
        if self._given is not None and self._given.run_id == run_id:
            return self._given
        said = read_input(echo) if isinstance(echo, dict) else None
        return None if said is None else said._replace(is_echo=True, has_messages=False)

    def _name(self, event: Mapping[str, Any], field: str) -> str:
        said = event.get(field)
        if isinstance(said, str):
            return said
        known = {"threadId": self._thread_id, "runId": self._given.run_id if self._given is not None else None}
        return known[field] or UNNAMED

    def _new(self, thread_id: str, run_id: str, given: Input | None) -> Course:
        known = self._given if self._given is not None else given
        course = Course(thread_id, run_id, given, known.tools if known is not None else frozenset(), self._mode)
        if self._strays:
            course.counts[UNRECOGNISED] = self._strays
            course.blame("UNRECOGNISED", *self._stray_types)
        self._strays, self._stray_types = 0, set()
        return course

    def _imply(self, event: Mapping[str, Any], kind: str | None) -> Course:
        """A run that did not say that it starts. Only an error may come before (spec 1.0, events/lifecycle)."""
        course = self._new(self._name(event, "threadId"), self._name(event, "runId"), self._given)
        self._course = course
        if kind is not None and kind != "RUN_ERROR":
            course.blame("FIRST_EVENT", kind)
        return course

    def _begun(self, course: Course) -> Begun:
        return Begun(course.thread_id, course.run_id, course.mode, course.given, course.began.time)

    # Runs end ------------------------------------------------------------------------------------------------------

    def _end(self, kind: str, event: Mapping[str, Any] | None, at: datetime | None) -> Said:
        """RUN_FINISHED or RUN_ERROR. `event` None: it was too large to be read."""
        seen = event or {}
        moment, course = Moment(at, seen.get("timestamp")), self._course
        begun: Said = ()
        if course is None:
            course = self._imply(seen, kind)
            begun = self._begin_failed(course, moment) if kind == "RUN_ERROR" else ()
        course.saw(kind, seen, at)
        course.is_due = True
        if course.end is not None and (kind != "RUN_ERROR" or course.end.ending is Ending.ERROR):
            course.blame("SECOND_TERMINAL", course.run_id)
            return ()
        course.end = closing.unseen(course, kind, moment) if event is None else self._ended(course, kind, event, moment)
        return (*begun, *(() if self._is_held(course) else self._tell(course)))

    def _ended(self, course: Course, kind: str, event: Mapping[str, Any], moment: Moment) -> End:
        course.is_sound(event, EVENTS[kind], kind)
        if kind == "RUN_ERROR":
            return closing.fail(course, event, moment)
        self._same_run(course, event)
        return closing.finish(course, event, moment, self._waits)

    def _begin_failed(self, course: Course, moment: Moment) -> Said:
        """A stream may open with RUN_ERROR: a run that failed before it began."""
        self._runs += 1
        course.is_begun, course.began = True, moment
        return (self._begun(course),)

    def _same_run(self, course: Course, event: Mapping[str, Any]) -> None:
        """The two events that name a run have to name the same one."""
        for field, own, name in (
            ("runId", course.run_id, "RUN_ID_MISMATCH"),
            ("threadId", course.thread_id, "THREAD_ID_MISMATCH"),
        ):
            said = event.get(field)
            if course.is_begun and isinstance(said, str) and said != own:
                course.blame(name, said)

    def _is_held(self, course: Course) -> bool:
        """Whether the first run is not the requested one: a replayed run if another follows, else the wrong run.

        A replayed run keeps its own id, and the requested run is a stream's last (spec 1.0, basic/run-input).
        """
        return self._given is not None and self._runs == 1 and course.is_begun and course.run_id != self._given.run_id

    def _tell(self, course: Course) -> tuple[RunSeen, ...]:
        if not course.is_due or course.end is None:
            return ()
        seen = closing.seen(course, course.end, self._http_status)._replace(is_more=course.is_told)
        course.is_due, course.is_told = False, True
        return (seen,)

    def _close_empty(self, at: datetime | None, *, left_by_reader: bool) -> tuple[RunSeen, ...]:
        """No event at all: the request was refused, or its stream broke off before it began."""
        refused = self._refused
        if self._given is None and refused is None:
            return ()
        course = self._imply({}, None)
        if refused is None:
            course.end = closing.truncate(course, at, left_by_reader=left_by_reader)
        elif refused in _GATEWAY:
            course.end = closing.truncate(course, at, left_by_reader=False)._replace(reason=f"http_{refused}")
        else:
            course.end = closing.refuse(course, refused, at)
        course.is_due = True
        return self._tell(course)

    @property
    def _refused(self) -> int | None:
        """The HTTP status, where it says that there is no stream."""
        return None if self._http_status is None or self._http_status in _HTTP_OK else self._http_status

    # What is no event ----------------------------------------------------------------------------------------------

    def _take_unknown(self, kind: str, event: Mapping[str, Any], at: datetime | None) -> Said:
        """An event of another version, which is passed over wherever it comes."""
        if self._course is not None:
            self._course.saw(UNRECOGNISED, event, at)
            self._course.blame("UNRECOGNISED", kind)
            return ()
        self._strays += 1
        if len(self._stray_types) < MOST_IDS:
            self._stray_types.add(kind)
        return ()

    def _take_unreadable(self, frame: Unreadable, at: datetime | None) -> Said:
        """A frame that gave no event. What the end of the stream cut off says nothing, nor does a refusal's body."""
        course = self._course
        if frame.is_tail or (course is None and self._refused is not None):
            return ()
        told: Said = ()
        if course is None or (course.end is not None and frame.type == "RUN_STARTED"):
            told = self._tell(course) if course is not None else ()
            course = self._imply({}, None)
        course.blame(frame.name)
        if frame.name == "FRAME_TOO_LARGE":
            return (*told, *self._take_unseen(course, frame.type, at))
        course.is_due = course.is_due or course.end is not None
        return told

    def _take_unseen(self, course: Course, kind: str | None, at: datetime | None) -> Said:
        """An event that was too large to be read: of it only the type is known, if that."""
        if kind in _ENDS:
            return self._end(kind, None, at)
        if kind not in _HARMLESS:
            course.blind()
        if course.end is not None:
            course.is_due = True
            if kind is not None and kind in EVENTS:
                course.blame("EVENT_AFTER_CLOSE", kind)
        return ()
