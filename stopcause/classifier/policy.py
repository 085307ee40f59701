"""The operator's policy as a value: contracts, routes, thresholds, stages. Text in, `Policy` out; no file is read here.

A check is kept as its `kind` and its untouched parameters: what they mean is for `stopcause.outcomes` to say.
Line numbers of faults are found in `pipeline.policy_file`, which has the text's layout.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from stopcause.classifier.verdict import VerdictName
from stopcause.errors import PolicyError, Problem
from stopcause.receipts import vocabulary
from stopcause.receipts.identifiers import IDENTIFIER_WORDS
from stopcause.receipts.model import DisplayName, Identifier
from stopcause.receipts.vocabulary import StopCause, Strength

_DURATION = re.compile(r"(\d{1,6})([smhd])")
_LONGEST = timedelta(days=3650)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(value: object) -> timedelta:
    """`30s`, `5m`, `4h` or `2d`."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("is no duration; write 30s, 5m, 4h or 2d")
    duration = timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
    if duration > _LONGEST:
        raise ValueError("is longer than ten years; write at most 3650d")
    return duration


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Glob = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Head(_Table):
    id: Identifier = "unnamed"
    version: Identifier = "0"


class Defaults(_Table):
    """The thresholds of section `[defaults]`."""

    stuck_after: Duration = timedelta(minutes=5)
    resume_due: Duration = timedelta(minutes=5)
    settle: Duration = timedelta(minutes=10)
    unrouted_grace: Duration = timedelta(minutes=2)
    clock_skew: Duration = timedelta(seconds=5)


Moved = Literal["FAILED", "BOUNDED_STOP"]


class _Verdicts(_Table):
    guardrail: Moved = "BOUNDED_STOP"
    output_cap: Moved = "BOUNDED_STOP"
    content_filter: Moved = "FAILED"
    refusal: Moved = "FAILED"
    quota: Moved = "FAILED"


class _Match(_Table):
    agent: Glob | None = None
    agent_version: Glob | None = None
    environment: Glob | None = None
    framework: Glob | None = None
    kind: Glob | None = None
    model: Glob | None = None
    provider: Glob | None = None
    raised_by: Glob | None = None
    service: Glob | None = None
    tool: Glob | None = None


class AgentEntry(_Table):
    """One `[[agents]]`: what holds for the runs that it matches."""

    match: _Match = _Match()
    stage: Literal["observe", "enforce"] = "observe"
    contract: Identifier | None = None
    owner: Identifier | None = None
    on_bound: Text | None = None


class Route(_Table):
    """One `[[routes]]`: who answers what, and until when."""

    match: _Match = _Match()
    owner: Identifier | None = None
    due: Duration | None = None
    escalate: Identifier | None = None
    on_expiry: Literal["STUCK", "BOUNDED_STOP"] = "STUCK"
    deliver: Text | None = None


class Check(BaseModel):
    """One check of a contract: its kind, and parameters that only `outcomes` understands."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: Identifier
    name: Identifier | None = None

    @property
    def check(self) -> str:
        """The name that outcome receipts use for it."""
        return self.name or self.kind


class Contract(_Table):
    """What must be true at the destination. `issuers` are `type:id` patterns; none means any issuer but the run."""

    min_strength: Strength = Strength.READ_BACK
    issuers: tuple[Glob, ...] = ()
    settle: Duration | None = None
    checks: tuple[Check, ...] = ()

    @field_validator("checks")
    @classmethod
    def _names_differ(cls, checks: tuple[Check, ...]) -> tuple[Check, ...]:
        """Two checks of one name would both hold by one receipt."""
        names = [check.check for check in checks]
        if len(set(names)) < len(names):
            raise ValueError("has two checks of one name; give each its own `name`")
        return checks


class _File(_Table):
    policy: _Head = _Head()
    defaults: Defaults = Defaults()
    verdicts: _Verdicts = _Verdicts()
    links: dict[DisplayName, Text] = Field(default_factory=dict)
    agents: tuple[AgentEntry, ...] = ()
    routes: tuple[Route, ...] = ()
    contracts: dict[Identifier, Contract] = Field(default_factory=dict)


DEFAULT_CONTRACT = Contract()
_NOTHING = AgentEntry()
_ANSWERS = 10_000  # as many subjects as are remembered: an agent name in endless spellings must not fill the memory


class Policy:
    """A policy that can be asked. Frozen in what it answers; it only remembers answers that it gave."""

    def __init__(self, content: _File, text: str) -> None:
        self.id = content.policy.id
        self.version = content.policy.version
        self.text = text
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.defaults = content.defaults
        self.links: Mapping[str, str] = content.links
        self.agents = content.agents
        self.routes = content.routes
        self.contracts: Mapping[str, Contract] = content.contracts
        moved = {StopCause(cause): VerdictName(name) for cause, name in content.verdicts}
        failed = {cause for cause, name in moved.items() if name is VerdictName.FAILED}
        self.failed_causes = (vocabulary.FAILED - moved.keys()) | failed
        self.bounded_causes = (vocabulary.BOUNDED - moved.keys()) | (moved.keys() - failed)
        self._agent_answers: dict[tuple[str | None, ...], AgentEntry] = {}

    @property
    def name(self) -> str:
        """`ID@DIGEST`, as evidence names it."""
        return f"{self.id}@{self.digest}"

    def agent(self, subject: Subject) -> AgentEntry:
        """The first entry that matches a run; an empty one (stage observe, no contract) where none does."""
        found = self._agent_answers.get(subject)
        if found is None:
            if len(self._agent_answers) >= _ANSWERS:
                self._agent_answers.clear()
            found = next((entry for entry in self.agents if matches(entry.match, subject)), _NOTHING)
            self._agent_answers[subject] = found
        return found

    def route(self, subject: Subject) -> Route | None:
        """The first route that matches an approval of a run."""
        return next((entry for entry in self.routes if matches(entry.match, subject)), None)

    def contract(self, name: str | None) -> Contract | None:
        """The contract of that name; a named but undefined one has the defaults."""
        return None if name is None else self.contracts.get(name, DEFAULT_CONTRACT)


class Subject(NamedTuple):
    """What a `match` can ask about. `kind`, `tool` and `raised_by` are an approval's."""

    agent: str | None = None
    agent_version: str | None = None
    environment: str | None = None
    framework: str | None = None
    model: str | None = None
    provider: str | None = None
    service: str | None = None
    kind: str | None = None
    tool: str | None = None
    raised_by: str | None = None


def matches(match: _Match, subject: Subject) -> bool:
    """Whether every named key matches its pattern. An absent key matches only `*`."""
    return all(
        pattern == "*" if (value := getattr(subject, key)) is None else fnmatchcase(value, pattern)
        for key, pattern in match
        if pattern is not None
    )


def parse_policy(text: str) -> Policy:
    """A policy from TOML.

    Raises:
        PolicyError: With every fault; `line` is only known for broken TOML.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise PolicyError((Problem("file", f"is no TOML: {error}", int(line[1]) if line else 0),)) from None
    return policy_from_mapping(content, text)


def policy_from_mapping(content: Mapping[str, Any] | None, text: str | None = None) -> Policy:
    """A policy from a mapping (a case file's); None gives the defaults.

    Raises:
        PolicyError: With every fault.
    """
    source = text if text is not None else json.dumps(content or {}, sort_keys=True, separators=(",", ":"))
    try:
        return Policy(_File.model_validate(content or {}), source)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=True)
        raise PolicyError(tuple(_problem(detail) for detail in details)) from None


def _problem(detail: Any) -> Problem:  # noqa: ANN401 - pydantic's own untyped detail
    path = tuple(detail["loc"])
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(path[-1]), _known_keys(path[:-1]), n=1)
        return Problem(place, f"is not known here{f'; did you mean {near[0]}?' if near else ''}")
    if detail["type"] == "value_error":
        return Problem(place, detail["msg"].removeprefix("Value error, "))
    context = detail.get("ctx") or {}
    return Problem(place, _FAULTS.get(detail["type"], _OTHER_FAULT).format(expected=context.get("expected", "")))


_FAULTS = {
    "literal_error": "is not known; write {expected}",
    "enum": "is not known; write {expected}",
    "string_type": "is no string; put it in quotes",
    "string_pattern_mismatch": f"is no identifier; write {IDENTIFIER_WORDS}",
    "missing": "is missing",
    "tuple_type": "is no list",
    "dict_type": "is no table",
    "model_type": "is no table",
}
_OTHER_FAULT = "has the wrong type"


def _known_keys(path: tuple[int | str, ...]) -> list[str]:
    tables: dict[str, Callable[[], Any]] = {
        "policy": lambda: _Head,
        "defaults": lambda: Defaults,
        "verdicts": lambda: _Verdicts,
        "agents": lambda: AgentEntry,
        "routes": lambda: Route,
        "contracts": lambda: Contract,
    }
    if not path:
        return list(_File.model_fields)
    chosen = _Match if path[-1] == "match" else tables.get(str(path[0]), lambda: _File)()
    return list(chosen.model_fields)


def warnings(policy: Policy) -> tuple[Problem, ...]:
    """What a policy may say, and probably does not mean."""
    return undefined(policy) + shadowed(policy)


def undefined(policy: Policy) -> tuple[Problem, ...]:
    """Warnings for contracts that are named and not defined: the defaults hold for them, so anybody may vouch."""
    return tuple(
        Problem(f"agents[{number}].contract", _undefined(entry.contract, policy.contracts), warning=True)
        for number, entry in enumerate(policy.agents)
        if entry.contract is not None and entry.contract not in policy.contracts
    )


def _undefined(name: str, contracts: Mapping[str, Contract]) -> str:
    near = difflib.get_close_matches(name, list(contracts), n=1)
    hint = f"did you mean {near[0]}?" if near else f"write [contracts.{name}]"
    return f"names a contract that is not defined here, so anybody but the run may vouch; {hint}"


def shadowed(policy: Policy) -> tuple[Problem, ...]:
    """Warnings for entries that can never be reached, because an earlier one matches all that they match."""
    sections = (
        ("agents", [entry.match for entry in policy.agents]),
        ("routes", [route.match for route in policy.routes]),
    )
    return tuple(
        Problem(f"{section}[{late}]", f"is never reached: {section}[{early}] matches all of it first", warning=True)
        for section, found in sections
        for late, match in enumerate(found)
        if (early := next((i for i in range(late) if _covers(found[i], match)), None)) is not None
    )


def _covers(early: _Match, late: _Match) -> bool:
    for key, pattern in early:
        other = getattr(late, key)
        if pattern is None or pattern in ("*", other):
            continue
        if other is None or any(letter in other for letter in "*?[") or not fnmatchcase(other, pattern):
            return False
    return True


DEFAULT_POLICY = policy_from_mapping({"policy": {"id": "default", "version": "1"}})
