"""Agent Framework: the bounds of one request to a chat client, counted as the framework counts them.

Where a bound fires, the framework sets `tool_choice` to `none` and asks the model once more; nothing in the answer says
so. It is seen by that flip, and which bound it was is worked out from the counts. Where the host has flipped it before,
only the end of the round trips is seen. Source: `FunctionInvocationLayer` in
`_tools.py`: time is looked at first, then errors, then calls, each after a round of calls; the round trips at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_OFF = "none"
_LAST = "max_iterations"  # whatever the choice of tools is, the framework asks once more after these, and no further
_KEPT = "_function_invocation_budget_state"  # what was counted before an approval; 1.0 begins anew


class Fired(NamedTuple):
    """A bound that fired: its name in the framework's configuration, where it stood, and what was counted."""

    name: str
    limit: float
    observed: float


class Budget:
    """The counts of one request. `limits`: the bounds that are set, by their names."""

    def __init__(self, configuration: Mapping[str, Any], options: object, client_kwargs: object) -> None:
        self.limits = dict(_limits(configuration))
        kept = client_kwargs.get(_KEPT) if isinstance(client_kwargs, Mapping) else None
        carried: Mapping[str, Any] = kept if isinstance(kept, Mapping) else {}
        self._round_trips = _count(carried.get("attempt_count"))
        self._calls = _count(carried.get("total_function_calls"))
        began = carried.get("start_time")
        self._began = began if isinstance(began, float) else perf_counter()
        self._errors = 0
        self._failed_in_round: bool | None = None  # None: no call came back since the model was asked
        self._is_off = _choice(options) == _OFF  # by the host, then: no flip will be seen

    def ran(self, *, is_error: bool) -> None:
        """A call came back."""
        self._calls += 1
        self._failed_in_round = bool(self._failed_in_round) or is_error

    def asked(self, options: object) -> Fired | None:
        """The model is asked again; the bound that has fired since, the first time that it is seen."""
        if self._failed_in_round is not None:
            self._errors = self._errors + 1 if self._failed_in_round else 0
            self._failed_in_round = None
        fired = None
        if not self._is_off and _choice(options) == _OFF:
            self._is_off = True
            fired = next((each for each in self._counted() if each.observed >= each.limit), None)
        elif self._is_off and 0 < self._round_trips == self.limits.get(_LAST):  # by the host, so that no flip is seen
            fired = Fired(_LAST, self._round_trips, self._round_trips)
        self._round_trips += 1
        return fired

    def _counted(self) -> Iterator[Fired]:
        """Every bound that is set, beside its count. Where none was reached, a middleware of the host's flipped it."""
        counts = {
            "max_duration_seconds": perf_counter() - self._began,
            "max_consecutive_errors_per_request": self._errors,
            "max_function_calls": self._calls,
            "max_iterations": self._round_trips,
        }
        return (Fired(name, self.limits[name], count) for name, count in counts.items() if name in self.limits)


def _limits(configuration: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    names = ("max_iterations", "max_function_calls", "max_duration_seconds", "max_consecutive_errors_per_request")
    for name in names:
        limit = configuration.get(name)
        if type(limit) is int or type(limit) is float:
            yield name, limit


def _choice(options: object) -> object:
    choice = options.get("tool_choice") if isinstance(options, Mapping) else None
    return choice.get("mode") if isinstance(choice, Mapping) else choice


def _count(value: object) -> int:
    return value if type(value) is int else 0
