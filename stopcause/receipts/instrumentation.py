"""Turning hooks on and off: `instrument()` in a program, or `opentelemetry-instrument` around an unchanged one."""

from __future__ import annotations

import importlib
import logging
import re
from importlib import metadata
from typing import TYPE_CHECKING

from stopcause.errors import ConfigurationError
from stopcause.receipts import capture, imports
from stopcause.receipts.hooks import PROGRAMS, SPECS, TAPS, Spec
from stopcause.receipts.hooks.guard import Hook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logging.getLogger("stopcause")

_undo: dict[str, list[Callable[[], None]]] = {}


def instrument(*names: str) -> tuple[str, ...]:
    """Turns hooks on: those that are named, else all whose framework is installed. A second call changes nothing.

    No framework is imported: a hook is installed when the program imports its framework.

    Returns:
        The hooks that are on.

    Raises:
        ConfigurationError: There is no hook of that name; the message lists those that there are.
    """
    known = {spec.name: spec for spec in SPECS}
    chosen = [_called(name, known) for name in names]
    _warn_of_misspelt(known)
    if not capture.is_off():
        for spec in chosen or SPECS:
            _turn_on(spec, is_named=bool(names))
    return tuple(_undo)


def _called(name: object, known: Mapping[str, Spec]) -> Spec:
    """The hook of that name, as it is written in Python, or of that package."""
    packages = {spec.distribution: spec for spec in known.values()}
    spec = (known.get(name.replace("-", "_")) or packages.get(name)) if isinstance(name, str) else None
    if spec is None:
        raise ConfigurationError(f"instrument: no hook {name!r}; there are {', '.join(known)}")
    return spec


def _warn_of_misspelt(known: Mapping[str, Spec]) -> None:
    """A hook that was to be off and is on, because its name is none, has to be told."""
    names = (*known, *PROGRAMS, *TAPS)
    for word in capture.disabled() - capture.EVERYTHING - {*names, "0", "false", "no"}:
        log.warning("stopcause: STOPCAUSE_DISABLED names no hook %r; there are %s", word, ", ".join(names))


def uninstrument(*names: str) -> None:
    """Turns hooks off, and gives the frameworks back as they were; without names, all."""
    for name in [each.replace("-", "_") for each in names] or tuple(_undo):
        for undo in reversed(_undo.pop(name, [])):
            try:
                undo()
            except Exception as error:  # noqa: BLE001 - somebody patched it after us, say; the others are still undone
                log.warning("stopcause: the hook for %s could not be taken out whole (%s)", name, type(error).__name__)


def _turn_on(spec: Spec, *, is_named: bool) -> None:
    if spec.name in _undo or capture.is_off(spec.name):
        return
    try:
        version: str | None = metadata.version(spec.distribution)
    except metadata.PackageNotFoundError:
        if is_named:
            log.warning("stopcause: %s is not installed here, so its hook stays off", spec.distribution)
        return
    except Exception:  # noqa: BLE001 - a broken installation; it may well work, and is no tested version
        version = None
    undos: list[Callable[[], None]] = []
    _undo[spec.name] = undos
    undos.append(imports.when_imported(spec.trigger, lambda: _install(spec, version, undos)))


def _install(spec: Spec, version: str | None, undos: list[Callable[[], None]]) -> None:
    """The framework has been imported. Whatever goes wrong here must not be an import error of the host's."""
    hook = Hook(spec, version, is_tested=version is not None and _is_between(version, spec.lowest, spec.below))
    if not hook.is_tested:
        log.warning(
            "stopcause: %s %s is outside the tested versions (%s up to, not with, %s): only its exceptions are told",
            spec.distribution, version or "of an unknown version", spec.lowest, spec.below,
        )  # fmt: skip
    try:
        module = importlib.import_module(f"stopcause.receipts.hooks.{spec.name}")
        undos.append(module.install(hook))
    except Exception as error:  # noqa: BLE001 - a framework that has changed; the host goes on without us
        log.warning(
            "stopcause: the hook for %s %s could not be installed (%s); its runs leave no receipts",
            spec.distribution, version, type(error).__name__,
        )  # fmt: skip


def _is_between(version: str, lowest: str, below: str) -> bool:
    return _numbers(lowest) <= _numbers(version) < _numbers(below)


def _numbers(version: str) -> tuple[int, ...]:
    """The release part of a version: `1.2.24rc1` is (1, 2, 24)."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


class Instrumentor:
    """What `opentelemetry-instrument` loads by the entry point `opentelemetry_instrumentor`."""

    def instrument(self, **_options: object) -> None:
        """Turns on every hook whose framework is installed."""
        instrument()

    def uninstrument(self, **_options: object) -> None:
        """Turns them off."""
        uninstrument()
