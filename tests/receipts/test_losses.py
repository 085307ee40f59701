"""A loss is told, also where the record that was to tell of it is lost itself."""

from __future__ import annotations

from stopcause.receipts.losses import lost_with


def test_lines_and_those_that_they_tell_of() -> None:
    assert lost_with([b'{"dropped":3}', b"{}", b'{"labels":{"dropped":"7"}}', b'{"dropped":"7"}']) == 7


def test_what_is_no_record_is_one() -> None:
    assert lost_with([b"", b"[1]", b"\xff", b"7"]) == 4
    assert lost_with([]) == 0
