"""An input as a host holds it: JSON, or a model of the SDK. The answers in it are looked at, and stay the host's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from stopcause.agui.inputs import digest_of, legacy_payloads, read_input
from stopcause.agui.values import NOTHING, Input, Json


class Given(NamedTuple):
    """What is known of an input, and beside it the answers.

    Attributes:
        payloads: Of `resume`, each by its digest: of two answers to one interrupt, none stands for the other.
        old_payloads: Of the channel before `resume`, the same, with what a string of JSON spells out.
    """

    input: Input
    payloads: Mapping[str, Json]
    old_payloads: Mapping[str, Json] = NOTHING


def read_given(value: Json) -> Given | None:
    """What a host gives as an input; None where it is none. Never raises."""
    try:
        value = _with_plain_answers(plain(value))
        known = read_input(value)
        return None if known is None else Given(known, _payloads(value), _by_digest(legacy_payloads(value).values()))
    except Exception:  # noqa: BLE001 - an object like no other: what cannot be looked at is no input
        return None


def plain(value: Json) -> Json:
    """JSON of what may be a model of the SDK: what was not set is absent, which is another thing than null."""
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(mode="json", by_alias=True, exclude_unset=True)


def _with_plain_answers(value: Json) -> Json:
    """A host may have put models, or a tuple, into a dictionary of its own: what it will send is JSON of them."""
    answers = value.get("resume") if isinstance(value, dict) else None
    return {**value, "resume": [plain(each) for each in answers]} if isinstance(answers, list | tuple) else value


def _payloads(value: Mapping[str, Json]) -> dict[str, Json]:
    entries = value.get("resume")
    known = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    return _by_digest(each["payload"] for each in known if "payload" in each)


def _by_digest(payloads: Iterable[Json]) -> dict[str, Json]:
    return {digest_of(each, is_absent=False): each for each in payloads}
