"""A thread as a row of the guard's file: its JSON, and a seal, so that no flipped bit makes another thread of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from stopcause.agui.values import Entry, Interrupt, Raised, Result, Thread
from stopcause.agui.words import UNSETTLED

_LARGEST = 1 << 20  # bytes of a thread, with its schemas
_THREAD = TypeAdapter(Thread)


class Row(NamedTuple):
    """As the columns of the table `thread` have it."""

    id: bytes
    body: bytes
    seal: bytes
    is_open: int
    at: int

    def is_sealed(self) -> bool:
        """Whether it is as it was written."""
        return self.seal == seal_of(self.id, self.body, self.is_open, self.at)

    def thread(self) -> Thread:
        """The thread that it holds.

        Raises:
            ValueError, TypeError, KeyError, RecursionError: It is not as it was written, or holds none.
        """
        if not self.is_sealed():
            raise ValueError
        return read_thread(self.body)


def row_of(thread: Thread, at: int) -> Row:
    """A thread's row. Where schemas make it large they are left out: their digests say that there were some."""
    body = write_thread(thread)
    if len(body) > _LARGEST:
        bare = (each._replace(interrupt=each.interrupt._replace(schema=None)) for each in thread.raised)
        body = write_thread(thread._replace(raised=tuple(bare)))
    key, is_open = key_of(thread.id), int(any(each.state in UNSETTLED for each in thread.raised))
    return Row(key, body, seal_of(key, body, is_open, at), is_open, at)


def key_of(text: str) -> bytes:
    """Ids are as the wire gives them: half a surrogate pair is one too."""
    return text.encode("utf-8", "surrogatepass")


def seal_of(key: bytes, body: bytes, is_open: int, at: int) -> bytes:
    """What a row of this content is sealed with."""
    return hashlib.blake2b(b"\x00".join((key, body, b"%d %d" % (is_open, at))), digest_size=16).digest()


def write_thread(thread: Thread) -> bytes:
    """A thread as JSON, without what has its default."""
    return json.dumps(_plain(thread), separators=(",", ":")).encode()


def read_thread(text: bytes) -> Thread:
    """What `write_thread` wrote, of this version or a later one: fields that are not known are passed over.

    Raises:
        ValueError, TypeError, KeyError, RecursionError: It is none.
    """
    value = _known(Thread, json.loads(text))
    value["raised"] = [_raised(each) for each in value.get("raised", ())]
    value["results"] = [_known(Result, each) for each in value.get("results", ())]
    return _THREAD.validate_python(value)


def _raised(value: Mapping[str, Any]) -> dict[str, Any]:
    raised = _known(Raised, value)
    raised["interrupt"] = _known(Interrupt, raised["interrupt"])
    if "answer" in raised:
        raised["answer"] = _known(Entry, raised["answer"])
    return raised


def _known(kind: type[tuple[Any, ...]], value: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError  # noqa: TRY004 - as all that is none
    return {name: value[name] for name in kind.__annotations__ if name in value}


def _plain(value: Any) -> Any:  # noqa: ANN401 - any field of a value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        defaults: Mapping[str, Any] = getattr(value, "_field_defaults", {})
        fields = zip(value._fields, value, strict=True)
        return {name: _plain(each) for name, each in fields if name not in defaults or each != defaults[name]}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value
