"""What a tap leaves behind is what a recording of the same stream says, whatever the chunks and the side."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from stopcause.agui import told
from stopcause.agui.given import read_given
from stopcause.agui.ledger import Ledger
from stopcause.agui.lifecycle import Watch
from stopcause.agui.scene import Request
from stopcause.agui.tap_asgi import AguiMiddleware
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.agui.values import Begun
from stopcause.receipts import capture, mending, process
from stopcause.receipts.testing import recorded
from tests.agui.tapped import NDJSON, RECORDINGS, SSE, playing, recorded_exchanges, served
from tests.support.laws import IS_THOROUGH

Json = Any
Record = dict[str, Json]
AGENT = "clerk"
ROUTE = {"owner": "team:pay", "due_s": 60.0}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*")
_OWN = ("record_id", "seq")
PATHS = sorted(RECORDINGS.glob("*.json"))
WAYS = [(path, size, media) for path in PATHS for size, media in ((997, SSE), (0, NDJSON))]
WAYS += [(path, 1, SSE) for path in (PATHS if IS_THOROUGH else PATHS[-2:])]


@pytest.mark.parametrize(("path", "size", "media"), WAYS, ids=[f"{path.stem}-{size}" for path, size, _ in WAYS])
def test_both_taps_tell_what_the_recording_tells(path: Path, size: int, media: str) -> None:
    exchanges = recorded_exchanges(path)
    expected = _as_recorded(exchanges, is_home=False)
    with served(playing(exchanges, size, media)) as url, recorded(route=ROUTE) as receipts:
        with httpx.Client(transport=AguiTransport(agent=AGENT)) as client:
            _play(client, url, exchanges)
        assert _lines(receipts.lines) == expected
    tapped = AguiMiddleware(playing(exchanges, size, media), AGENT)
    with recorded(route=ROUTE) as receipts, served(tapped) as url:
        with httpx.Client() as client:
            _play(client, url, exchanges)
        assert _lines(receipts.lines) == _as_recorded(exchanges, is_home=True)
    assert {line["kind"] for line in expected} >= {"run.started", "run.stopped"}


def _play(client: httpx.Client, url: str, exchanges: Sequence[Mapping[str, Json]]) -> None:
    for each in exchanges:
        client.post(url, json=each["input"])


def _as_recorded(exchanges: Sequence[Mapping[str, Json]], *, is_home: bool) -> list[Record]:
    """The records of these exchanges, without a tap."""
    with recorded(route=ROUTE):
        ledger, drafts, now = Ledger(), [], capture.configured_now()
        source = told.Source(
            agent=AGENT, lease_s=now.lease_s, route_of=now.route_of, process=process.identity() if is_home else None
        )
    for each in exchanges:
        moment, given = datetime.now(UTC), read_given(each["input"])
        assert given is not None
        watch, request = Watch(given.input, http_status=each.get("http_status")), Request(given.payloads)
        seen = [run for event in each["events"] for run in watch.take(event, moment)]
        for run in (*seen, *watch.close(moment)):
            if isinstance(run, Begun):
                drafts += told.begun_records(run, ledger.begun(run, request), source)
            else:
                drafts += told.ended_records(run, ledger.ended(run, request), source)
    return _lines([line for draft in drafts if (line := mending.line_of(draft)) is not None])


def _lines(lines: Sequence[bytes]) -> list[Record]:
    """Records without what is another each time."""
    return [{key: _same(key, value) for key, value in json.loads(line).items() if key not in _OWN} for line in lines]


def _same(key: str, value: Json) -> Json:
    if isinstance(value, dict):
        return {inner: _same(inner, each) for inner, each in value.items()}
    if isinstance(value, list):
        return [_same(key, each) for each in value]
    is_time = key == "duration_s" or (isinstance(value, str) and _TIME.fullmatch(value))
    return "a time" if is_time else value
