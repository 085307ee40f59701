"""Cases that need many of something are written out when they are loaded."""

from __future__ import annotations

from typing import Any

import pytest

from stopcause.pipeline.agui_case_repeats import MOST, repeated


def test_an_object_in_a_list_stands_for_many() -> None:
    asked = {"repeat": 3, "id": "i-{n}", "metadata": {"owner": ["team:{n}"]}, "size": 1}

    assert repeated([{"type": "x"}, {"outcome": {"interrupts": [{"id": "i-0"}, asked]}}]) == [
        {"type": "x"},
        {
            "outcome": {
                "interrupts": [
                    {"id": "i-0"},
                    *({"id": f"i-{n}", "metadata": {"owner": [f"team:{n}"]}, "size": 1} for n in (1, 2, 3)),
                ]
            }
        },
    ]


@pytest.mark.parametrize("number", [0, -1, MOST + 1, True, 2.0, "3", None, [1]])
def test_what_is_no_number_of_times_stands_as_it_is(number: Any) -> None:  # noqa: ANN401 - JSON
    assert repeated([{"repeat": number, "id": "{n}"}]) == [{"repeat": number, "id": "{n}"}]


def test_one_within_another_is_not_repeated_and_one_beside_a_list_neither() -> None:
    inner = [{"repeat": 5, "id": "{n}"}]

    assert repeated([{"repeat": 2, "all": inner}]) == [{"all": [{"repeat": 5, "id": str(n)}]} for n in (1, 2)]
    assert repeated({"repeat": 2, "id": "{n}"}) == {"repeat": 2, "id": "{n}"}


def test_however_deep_it_is_it_comes_back() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]

    assert repeated(deep) is deep
