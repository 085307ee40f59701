"""Of what is said in a real run nothing comes out: not in records, findings or screens, and not in a line of a log."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from datetime import UTC, datetime

import pytest

from stopcause.agui.tap_asgi import AguiMiddleware
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.pipeline.agui_views import audit_file_view
from stopcause.receipts.testing import recorded
from stopcause.render.agui import audit_objects, audit_screen
from stopcause.render.pen import Pen
from tests.agui.stories import Story, told
from tests.frameworks.ag_ui_langgraph.service import CONFIGURATIONS, MARK, clerk, serving
from tests.frameworks.ag_ui_langgraph.test_faults import EACH


@EACH
def test_nothing_of_it_comes_out(fault: Story, caplog: pytest.LogCaptureFixture) -> None:
    """Both taps are in the way, and what asks says all that it can."""
    app = AguiMiddleware(clerk(*fault.calls, **CONFIGURATIONS["both"]), "clerk")
    with recorded() as receipts, caplog.at_level(logging.DEBUG, "stopcause"):
        with serving(app, AguiTransport(agent="clerk")) as client:
            audit = told(client, fault).audited()
        lines = receipts.lines
    view, now = audit_file_view("recording", audit), datetime.now(UTC)
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("stopcause")]
    screens = [json.dumps([*audit_objects([view])], default=str), *audit_screen([view], now, Pen(), everything=True)]
    assert MARK.encode() not in b"\n".join(lines)
    assert MARK not in "\n".join([repr(audit), *screens, *ours])
    assert len(lines) > 1


@EACH
def test_what_was_said_is_full_of_it(fault: Story) -> None:
    """Prompts, arguments, questions and answers; results, where there are any."""
    with serving(clerk(*fault.calls, **CONFIGURATIONS["both"])) as client:
        exchanges = told(client, fault).exchanges
    answers = [entry.get("payload", MARK) for each in exchanges for entry in each["input"].get("resume", ())]
    said = defaultdict[str, str](str)
    for event in (event for each in exchanges for event in each["events"]):
        said[event["type"]] += json.dumps(event)
    for kind in ("TOOL_CALL_ARGS", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "CUSTOM", "RUN_FINISHED"):
        assert MARK in said[kind]
    assert not said["TOOL_CALL_RESULT"] or MARK in said["TOOL_CALL_RESULT"]
    assert all(MARK in json.dumps(each) for each in answers)
