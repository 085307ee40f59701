"""Calls a function once a module has been imported, without importing it: `import crewai` alone takes seconds."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(name: str, call: Callable[[], None]) -> Callable[[], None]:
    """Calls at once where the module is there, else right after it has been imported.

    Returns:
        A function that calls it off.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        call()
        return lambda: None
    finder = _Finder(name, call)
    sys.meta_path.insert(0, finder)
    return finder.cancel


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing by itself: it lets the others find the one module, and adds a call to its loader."""

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self._name = name
        self._call = call
        self._is_looking = False

    def cancel(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name or self._is_looking:
            return None
        self._is_looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._imported)
        return spec

    def _imported(self) -> None:
        self.cancel()
        self._call()


class _Loader(importlib.abc.Loader):
    """The module's own loader, and a call after it."""

    def __init__(self, loader: importlib.abc.Loader, call: Callable[[], None]) -> None:
        self._loader = loader
        self._call = call

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader  # nobody who looks later is to meet us
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._call()

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)
