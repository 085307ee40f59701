"""The generated parts of docs/capture.md: the parameters of `configure`, and what a hook finds worth saying.

The parameters come from the signature and the docstring. What a finding means is typed here and held against the code:
a code that is missing on either side ends the run of cog, and so `make check`.
"""

from __future__ import annotations

import inspect
import re

from tables import ROOT, table

from stopcause.receipts import capture

_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n        +.*)*)", re.MULTILINE)
_SAID = re.compile(
    r"""\b_?(?:find|note|say)\((?:draft, )?"([a-z_]+)"|"?code"?[:=] ?"([a-z_]+)"|(?:return|,) "(validator[a-z_]+)\""""
)

FINDINGS = {
    "approvals_cut": "it waits for more than a thousand answers; the first thousand are in the receipt",
    "clock_jump": "the wall clock jumped by more than 5 s; the duration is by the monotonic one",
    "hook_failed": "something of the hook's own went wrong at the place; the first time and the twentieth are said",
    "hook_off": "a hook failed twenty times and began no more runs",
    "personal_value_replaced": "a value that names a person was replaced by a hash",
    "receipt_incomplete": "the receipt could not be made whole; what is left says that the run is over",
    "refused_value": "a value that no record can carry was left out; `where` names hook and field",
    "run_reused": "a block was entered with a run that is over: a receipt is written once, so that block leaves none",
    "shape_changed": "an object of the framework's has no such attribute, or one of another type; the field is absent",
    "still_running": "the block ended while the framework's run inside it went on",
    "untested_version": "the framework's version is outside the tested range; only exception classes were read",
    "validator_raised": "a validator raised; what it would have said is not known",
    "validator_unreadable": "a validator said something else than True, False or None",
    "validators_behind": "too many runs waited for validators, and nobody looked at this one",
    "vocabulary_new": "the framework said a word that its table does not have; `where` is the word",
    "went_on": "the block began another framework run: what left the first did not end it",
    "workflow_task_failed": "a task of a durable workflow failed and is tried again; `where` is the type of the error",
}


def findings() -> str:
    """What each finding of a Python hook means."""
    sources = [path.read_text("utf-8") for path in (ROOT / "stopcause" / "receipts").rglob("*.py")]
    said = {code for text in sources for found in _SAID.findall(text) for code in found if code}
    if wrong := said ^ FINDINGS.keys():
        raise AssertionError(f"findings that are told in one place only: {sorted(wrong)}")
    return table(("finding", "what it says"), ((f"`{code}`", text) for code, text in sorted(FINDINGS.items())))


def options() -> str:
    """Each parameter, what it says and what holds without it."""
    signature = inspect.signature(capture.configure)
    told = (inspect.getdoc(capture.configure) or "").partition("Args:")[2].partition("Raises:")[0]
    meanings = dict(_ARGUMENT.findall(told))
    if meanings.keys() != signature.parameters.keys():
        raise AssertionError("the docstring of `configure` and its parameters differ")
    rows = (
        (f"`{name}`", re.sub(r"\s+", " ", meanings[name]), _default(parameter.default))
        for name, parameter in signature.parameters.items()
    )
    return table(("parameter", "what it says", "without it"), rows)


def _default(value: object) -> str:
    return "" if value is None or value == () else f"`{value}`"
