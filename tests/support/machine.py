"""What a machine may lack or allow too much: packages, terminals, mounts, and a user who may not do everything."""

from __future__ import annotations

import contextlib
import os
import pty
from collections.abc import Iterator
from typing import NoReturn

import pytest

_NOBODY = 65534


def lacking(what: str) -> NoReturn:
    """Skips the test and says why. In CI it fails: there everything has to be."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def a_terminal() -> tuple[int, int]:
    """Both ends of a pseudo-terminal; a bare chroot may have none. CI has them."""
    try:
        return pty.openpty()
    except OSError:
        lacking("this machine has no pseudo-terminals: /dev/pts is not mounted")


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """As somebody who is not root, whom permissions bind."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
