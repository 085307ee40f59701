"""The generated parts of docs/ai-sdk.md: options from the package's types, records and paths from the recorded runs.

What people type here (what a finding means, what spans say) is held against the package's source and the recordings:
a name that is missing on either side ends the run of cog, and so `make check`.
"""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from tables import ROOT, table

from stopcause.receipts.model import Approval, Condition, RunStarted

SOURCES = ROOT / "ai-sdk" / "src"
RECORDED = ROOT / "fixtures" / "ai_sdk"

_INTERFACE = re.compile(r"^export interface (\w+)[^{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"(?:/\*\*((?:(?!\*/).)*)\*/\s*)?^  (\w+)\??: ([^;]+);", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\nexport (?:type|interface) (\w+)", re.DOTALL)
_CODE = re.compile(r"code: '([a-z_]+)'")

# What the hook itself finds worth saying, in a record's `findings`.
FINDINGS = {
    "approvals_cut": "it waits for more than 500 answers; the first 500 are in the receipt",
    "clock_jump": "the wall clock jumped by more than 5 s; the duration is by the monotonic one",
    "default_stop_condition": "the SDK's own default ended the loop: the application chose no bound",
    "interruption_swallowed": "an abort or a time-out cut a tool off, and the SDK returned as if nothing had happened",
    "late_tool_result": "a tool that did not heed the abort came back after the stop",
    "option_dropped": "an option had a value that no record can carry; `where` names the option",
    "personal_dropped": "a value that names a person was left out, because there was no key to hash it with",
    "personal_value_replaced": "a value that names a person was replaced by a hash",
    "resumed_run_unknown": "it brings answers to a run that this process does not know: say `resumes`",
    "receipt_incomplete": "the receipt could not be made whole; what is left says that the run is over",
    "usage_not_a_number": "the provider's token counts were no numbers; what was left out of the sums is not known",
    "usage_partial": "the provider counted the tokens of some steps only; the sums are too small",
}

# Options that their types say nothing of, and that are no field of a record by the same name.
SAID_HERE = {
    "fetch": "in place of the runtime's own",
    "headers": "sent with each request",
    "traceContext": "the trace that the records belong to",
}
_FIELDS = {field.name for kind in (RunStarted, Approval, Condition) for field in fields(kind)}


class Option(NamedTuple):
    """One option of an interface of the types: its name, what it takes, what is said of it there."""

    name: str
    takes: str
    said: str


@functools.cache
def _source() -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(SOURCES.glob("*.js")))


@functools.cache
def _types() -> str:
    return (SOURCES / "index.d.ts").read_text("utf-8")


def _sentence(comment: str) -> str:
    return re.sub(r"\s*\n\s*\*\s*|\s+", " ", comment).strip().removesuffix(".")


def _options(interface: str) -> list[Option]:
    body = dict(_INTERFACE.findall(_types()))[interface]
    return [
        Option(name, _takes(takes), _sentence(said) or _told_elsewhere(name, takes))
        for said, name, takes in _OPTION.findall(body)
    ]


def _takes(written: str) -> str:
    return re.sub(r"\s+", " ", written).removesuffix(" | undefined").strip()


def _told_elsewhere(name: str, takes: str) -> str:
    """What is said of its type; else here; else the field of a record that it fills."""
    of_types = {each: _sentence(said) for said, each in _TYPE.findall(_types())}
    said = [of_types[each] for each in re.findall(r"\w+", takes) if each in of_types]
    field = re.sub(r"(?=[A-Z])", "_", name).lower()
    if not said and name not in SAID_HERE and field not in _FIELDS:
        raise ValueError(f"nothing is said of the option {name}")
    return said[0] if said else SAID_HERE.get(name, f"`{field}` of the records")


def options(*interfaces: str) -> str:
    """A table of options, each of which the package's source reads."""
    rows = [option for interface in interfaces for option in _options(interface)]
    if unread := [row.name for row in rows if not re.search(rf"\b{row.name}\b", _source())]:
        raise ValueError(f"no source of ai-sdk/src reads {', '.join(unread)}")
    return table(("option", "takes", "what it says"), ((f"`{o.name}`", _cell(o.takes), o.said) for o in rows))


def _cell(code: str) -> str:
    return f"`{code}`".replace("|", "\\|")


def lines() -> str:
    """The lines that add it, from the file that a test runs."""
    return f"```js\n{(ROOT / 'docs' / 'connect' / 'ai-sdk.js').read_text('utf-8').rstrip()}\n```"


@functools.cache
def _case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))
    return found


def _judged(case: dict[str, Any]) -> dict[str, Any]:
    """The receipt of the run that the case judges."""
    stops = [each for each in case["records"] if each["kind"] == "run.stopped"]
    wanted = case.get("run_id") or stops[-1]["run_id"]
    return next(each for each in reversed(stops) if each["run_id"] == wanted)


def records(name: str) -> str:
    """The records of a recorded run, one field a line."""
    return "```json\n" + "\n".join(_spread(record) for record in _case(name)["records"]) + "\n```"


def _spread(record: dict[str, Any]) -> str:
    fields = [f' "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in record.items()]
    return "{\n" + ",\n".join(fields) + "\n}"


def findings() -> str:
    """What the hook itself notices; the codes are those of its source."""
    coded = set(_CODE.findall(_source()))
    if coded != FINDINGS.keys():
        raise ValueError(f"findings of the source and of this table differ: {sorted(coded ^ FINDINGS.keys())}")
    return table(("finding", "what it says"), ((f"`{code}`", FINDINGS[code]) for code in sorted(FINDINGS)))


def paths() -> str:
    """Every run of the real SDK that was recorded, by cause: how many, which verdicts, and an example."""
    by_cause: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(RECORDED.glob("*.json")):
        case = _case(path.stem)
        stops = [each for each in case["records"] if each["kind"] == "run.stopped"]
        by_cause[_judged(case)["stop_cause"] if stops else "none"].append(case)
    rows = ((f"`{cause}`", str(len(cases)), _verdicts(cases), cases[0]["why"]) for cause, cases in by_cause.items())
    count = sum(map(len, by_cause.values()))
    said = f"{count} endings of the real SDK, each a case; `stopcause replay fixtures/ai_sdk` judges them again."
    return f"{said}\n\n" + table(("stop cause", "runs", "verdicts", "one of them"), sorted(rows))


def _verdicts(cases: Sequence[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"`{case['expected']['verdict']}`" for case in cases))


# How a run ended, the recording of it, and what the spans of `@ai-sdk/otel` say. The last was tried on 7.0.173.
_ALIKE = "root span unset, `tool-calls`"
SPANS = (
    ("step limit", "generate-step-limit", _ALIKE),
    ("token budget", "generate-token-budget", _ALIKE),
    ("done tool", "generate-done-without-outcome", _ALIKE),
    ("waits for approval", "generate-approval-unrouted", f"{_ALIKE}, nothing of the approval"),
    (
        "time-out in a tool of the last allowed step",
        "generate-timeout-in-tool-of-limit-step",
        f"{_ALIKE}, tool span error",
    ),
    ("time-out in a model call", "generate-timeout", "error; its type is lost with `recordInputs: false`"),
    ("stream timed out", "stream-s-timeout", "all spans unset, no finish reason"),
    ("stream aborted", "stream-s-abort", "all spans unset, no finish reason"),
    ("provider error at step 2 of a stream", "stream-s-err-step2", f"{_ALIKE}; the step's span says error"),
)


def beside_spans() -> str:
    """The same endings in spans and in receipts; the receipts are the recorded ones."""
    rows = ((how, spans, *_receipt_of(name)) for how, name, spans in SPANS)
    return table(("how it ended", "spans of `@ai-sdk/otel`", "stop cause", "verdict"), rows)


def _receipt_of(name: str) -> Iterator[str]:
    case = _case(name)
    yield f"`{_judged(case)['stop_cause']}`"
    yield f"`{case['expected']['verdict']}`"
