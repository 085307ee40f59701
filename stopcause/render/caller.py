"""How the reader calls this program, so that a command on the screen works when it is pasted where they are.

Light on purpose: help reads it, and help does not wait.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

_MODULE = "__main__.py"
_WITHOUT_STORE = ("agui", "classify", "connect", "demo", "replay", "rules", "schema")

Argument = str | Path


class Hint(NamedTuple):
    """A command without the program: its words, what it is good for, and the run or file that it is about."""

    words: tuple[Argument, ...]
    about: str = ""
    of: Argument | None = None

    @property
    def stored(self) -> bool:
        """Whether it reads the store in use; a file is explained without one."""
        explains_file = self.words[0] == "explain" and isinstance(self.of, Path)
        return self.words[0] not in _WITHOUT_STORE and not explains_file


def shown_path(path: Path, here: Path | None, home: Path | None = None) -> str:
    """A path as short as a shell understands it: from here, from home, else whole. Quoted where it has to be."""
    for base, head in ((here, ""), (home, "~/")):
        if base is not None and path.is_absolute() and path.is_relative_to(base):
            rest = shlex.quote(str(path.relative_to(base)))
            return f"{head}{rest}"
    return shlex.quote(str(path))


def program_name(argv0: str, python: str, here: Path | None, found: str | None) -> str:
    """The program as the reader started it.

    Args:
        argv0: `sys.argv[0]`.
        python: `sys.executable`, for `python -m stopcause`.
        here: The working folder; None where it is gone.
        found: What the shell finds under the program's bare name, if anything.
    """
    if Path(argv0).name == _MODULE:
        return f"{shown_path(Path(python), here)} -m {Path(argv0).parent.name}"
    path = Path(argv0)
    if not path.is_absolute():
        return shlex.quote(argv0)
    if here is not None and path.is_relative_to(here):  # `make demo` finds it on a path that the shell may not have
        return shown_path(path, here)
    return path.name if found == argv0 else shlex.quote(argv0)


def this_program() -> str:
    """This process's program."""
    return program_name(sys.argv[0], sys.executable, working_folder(), shutil.which(Path(sys.argv[0]).name))


def path_words(path: Path) -> str:
    """A path for a command line of the reader's, as short as it stays true."""
    return shown_path(path, working_folder(), _home())


def working_folder() -> Path | None:
    """The working folder; None where somebody removed it."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a user that this machine does not know, as in many containers
        return None
