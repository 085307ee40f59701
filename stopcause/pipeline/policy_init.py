"""A starter policy, from the agents and approvals that a store has seen: text that is a valid policy as it stands.

What nobody but the operator knows (owners, contracts, who answers what) stands there commented out. Names that differ
only in a number or an id become one pattern; so do many names with one beginning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import NamedTuple

from stopcause.pipeline.policy_seen import LOOKED_BACK
from stopcause.render.pen import count
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.queries import text

_MOST_READ = 100_000
_DAY_ONE = datetime(1970, 1, 1, tzinfo=UTC)
_AGENTS, _ROUTES = 40, 20  # entries at most
_FAMILY = 3  # names of one shape that become a pattern
_BRANCH = 10  # names of one beginning that do
_PATTERNS = 500  # that every name is held against, at most
_CHANGING = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{6,}|\d+")
_SEPARATOR = re.compile(r"[-_./:@+]")
_ANY_BUT_WORDS = re.compile(r"[^\w.:/@+*-]")


class Agent(NamedTuple):
    """A name, or a pattern of names, in one environment."""

    name: str
    environment: str | None
    runs: int
    names: int = 1  # how many it stands for


class Asked(NamedTuple):
    """What runs ask for. `tool` None: no tool was named."""

    kind: str
    tool: str | None
    approvals: int


class Found(NamedTuple):
    """What a store has seen. `nameless`: runs that do not say which agent they are."""

    agents: tuple[Agent, ...] = ()
    asked: tuple[Asked, ...] = ()
    runs: int = 0
    nameless: int = 0

    @property
    def approvals(self) -> int:
        """How many approvals there were."""
        return sum(each.approvals for each in self.asked)


def found_in(store: DuckStore, now: datetime) -> Found:
    """The agents and approvals of the last 30 days, families of names folded; of any time where those had none."""
    found = _found_since(store, now - LOOKED_BACK)
    return found if found.runs else _found_since(store, _DAY_ONE)


def _found_since(store: DuckStore, since: datetime) -> Found:
    asked_for = {"since": since.replace(tzinfo=None), "hour": int(since.timestamp() // 3600), "most": _MOST_READ}
    rows = store.ask(text("policy_agents"), asked_for).rows
    named = [Agent(name, environment, runs) for name, environment, runs in rows if name]
    waits: Counter[tuple[str, str | None]] = Counter()
    for *_who, kind, tool, number in store.ask(text("policy_approvals"), asked_for).rows:
        waits[kind, tool] += number
    asked = [Asked(*key, number) for key, number in waits.items()]
    runs = sum(row[2] for row in rows)
    return Found(folded(named), folded_tools(asked), runs, runs - sum(each.runs for each in named))


# Families of names ----------------------------------------------------------------------------------------------------


def folded(agents: Iterable[Agent]) -> tuple[Agent, ...]:
    """Families of names as one pattern each; the busiest first, those without an environment behind all others."""
    by_place: dict[str | None, Counter[str]] = {}
    for each in agents:
        by_place.setdefault(each.environment, Counter())[each.name] += each.runs
    found = [
        Agent(name, place, *sizes) for place, names in by_place.items() for name, sizes in _families(names).items()
    ]
    return tuple(
        sorted(found, key=lambda each: (each.environment is None, -each.runs, each.name, each.environment or ""))
    )


def folded_tools(asked: Iterable[Asked]) -> tuple[Asked, ...]:
    """The same for tools of one kind; those without a tool last, because they match whatever is left."""
    by_kind: dict[str, Counter[str]] = {}
    bare: Counter[str] = Counter()
    for each in asked:
        if each.tool is None:
            bare[each.kind] += each.approvals
        else:
            by_kind.setdefault(each.kind, Counter())[each.tool] += each.approvals
    tools = [Asked(kind, tool, runs) for kind, names in by_kind.items() for tool, (runs, _) in _families(names).items()]
    tools.sort(key=lambda each: (-each.approvals, each.kind, each.tool or ""))
    return (*tools, *(Asked(kind, None, number) for kind, number in bare.most_common()))


def _families(names: Counter[str]) -> dict[str, tuple[int, int]]:
    """Patterns and names, each with its runs and how many names it stands for. No name fits a pattern beside it."""
    found = _housed(names, _shapes(names))
    if len(found) > _AGENTS:  # then a common beginning says more than the forty busiest of them
        found = _housed(names, [*_shapes(names), *_beginnings(found)])
    return found


def _housed(names: Counter[str], patterns: Sequence[str]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for name, runs in names.items():
        home = next((each for each in patterns if fnmatchcase(name, each)), _ANY_BUT_WORDS.sub("?", name))
        before, members = found.get(home, (0, 0))
        found[home] = before + runs, members + 1
    return found


def _shapes(names: Iterable[str]) -> list[str]:
    """Patterns for names that differ only in a number or an id, the widest first."""
    shapes = Counter(_shape(name) for name in names).most_common(_PATTERNS)
    found = [shape for shape, size in shapes if "*" in shape and size >= _FAMILY and shape.strip("*")]
    return sorted(found, key=lambda each: (len(each), each))


def _beginnings(names: Iterable[str]) -> list[str]:
    """Patterns for names with one beginning, the longest that many of them share."""
    left = [name for name in names if "*" not in name]
    sizes = Counter(beginning for name in left for beginning in _beginnings_of(name))
    shared = (next((each for each in _beginnings_of(name) if sizes[each] >= _BRANCH), "") for name in left)
    return sorted({f"{beginning}*" for beginning in shared if beginning}, key=lambda each: (len(each), each))


def _beginnings_of(name: str) -> list[str]:
    """All that end with a separator, the longest first; not the name itself."""
    return [name[: found.end()] for found in _SEPARATOR.finditer(name) if found.end() < len(name)][::-1]


def _shape(name: str) -> str:
    return re.sub(r"\*(?:[-._:]?\*)+", "*", _CHANGING.sub("*", name))


# The text -------------------------------------------------------------------------------------------------------------


def starter(found: Found, now: datetime) -> str:
    """The policy. Without anything seen, the smallest that shows what goes where."""
    lines = [*_head(now)]
    for each in found.agents[:_AGENTS]:
        lines += ["", *_agent(each)]
    lines += _left_out(found.agents[_AGENTS:], found.nameless)
    lines += _NO_AGENTS if not found.agents else []
    lines += ["", "# Who answers what a run asks for. The first route that matches fills in what the run did not say."]
    for asked in found.asked[:_ROUTES]:
        lines += ["", *_route(asked)]
    if left := found.asked[_ROUTES:]:
        lines += [
            "",
            f"# Left out: {len(left)} more kinds and tools, {sum(each.approvals for each in left)} approvals.",
        ]
    lines += _NO_ROUTES if not found.asked else []
    return "\n".join([*lines, *_CONTRACT]) + "\n"


def _head(now: datetime) -> list[str]:
    return [
        "# A starter: valid as it is, and it changes no verdict. Fill in what is commented out, then:",
        "#   stopcause policy check policy.toml    faults, with their lines",
        "#   stopcause policy diff policy.toml     what it would change, before it does",
        "#   stopcause policy apply policy.toml    put it in force",
        "[policy]",
        'id = "starter"',
        f'version = "{now:%Y-%m-%d}"',
        "",
        "# The first [[agents]] entry that matches a run holds. In stage observe, a finish without proof is counted as",
        "# not proven yet; set enforce once its contract is right, and it needs somebody.",
    ]


def _agent(each: Agent) -> list[str]:
    said = count(each.runs, "run") + (f" of {each.names} names" if each.names > 1 else "")
    keys = {"agent": each.name} | ({"environment": each.environment} if each.environment else {})
    return [
        f"# {said}",
        "[[agents]]",
        f"match = {_match(keys)}",
        'stage = "observe"',
        '# owner = "team:NAME"',
        '# contract = "EXAMPLE"',
        '# on_bound = "runbook:WHAT-TO-DO-WHEN-A-BOUND-FIRES"',
    ]


def _route(asked: Asked) -> list[str]:
    keys = {"kind": asked.kind} | ({"tool": asked.tool} if asked.tool else {})
    return [
        f"# {count(asked.approvals, 'approval')}",
        "[[routes]]",
        f"match = {_match(keys)}",
        '# owner = "team:NAME"',
        '# due = "30m"',
        '# escalate = "team:WHO-IS-NEXT"',
    ]


def _match(keys: dict[str, str]) -> str:
    return "{ " + ", ".join(f'{key} = "{value}"' for key, value in keys.items()) + " }"


def _left_out(left: Sequence[Agent], nameless: int) -> list[str]:
    lines = []
    if left:
        runs = sum(each.runs for each in left)
        lines = ["", f"# Left out: {len(left)} quieter agents with {runs} runs; no entry above matches them."]
    if nameless:
        lines += ["", f'# {nameless} runs do not say which agent they are; only agent = "*" matches those.']
    return lines


_NO_AGENTS = [
    "",
    "# [[agents]]",
    '# match = { agent = "AGENT-*", environment = "prod" }',
    '# stage = "observe"',
    '# owner = "team:NAME"',
    '# contract = "EXAMPLE"',
]
_NO_ROUTES = [
    "",
    "# [[routes]]",
    '# match = { kind = "tool_call", tool = "TOOL" }',
    '# owner = "team:NAME"',
    '# due = "30m"',
    '# escalate = "team:WHO-IS-NEXT"',
]
_CONTRACT = [
    "",
    "# What must be true at the destination for a run to count as done. Take the comments away and name it above.",
    "# [contracts.EXAMPLE]",
    '# min_strength = "read_back"              # accepted < delivered < read_back < human',
    '# issuers = ["destination:SYSTEM"]        # who may vouch, as type:id; never the run itself',
    '# settle = "10m"                          # how long a missing receipt is only pending',
    "# [[contracts.EXAMPLE.checks]]",
    '# kind = "record"',
]
