"""A policy from a file or from a folder of files, and the line of every fault in it.

TOML's reader says what a file means, not where. So a second, small walk over the text finds the line of each key: it
knows TOML's layout and nothing of policies, and it only ever sees text that the reader has accepted.
In a folder the files are merged in the order of their names: arrays are joined, tables merged, and a key that two files
set is a fault that names both.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from stopcause.classifier import policy as policies
from stopcause.classifier.policy import DEFAULT_POLICY, Policy, policy_from_mapping
from stopcause.errors import InputError, PolicyError, Problem
from stopcause.render.views import Fault

Place = tuple[str | int, ...]


class Checked(NamedTuple):
    """What a policy file or folder says. `policy` is None where a fault is more than a warning.

    `origin` has the file and line of every key and entry, by its place in the whole.
    """

    policy: Policy | None
    faults: tuple[Fault, ...]
    origin: Mapping[Place, tuple[Path, int]] = MappingProxyType({})

    def where(self, *place: str | int) -> str:
        """FILE:LINE of a key or entry; empty where that is not known."""
        file, line = self.origin.get(place, (None, 0))
        return f"{file}:{line}" if file else ""


class Part(NamedTuple):
    """One file: its text, what it means, and the line of each of its keys."""

    file: Path
    text: str
    content: dict[str, Any]
    lines: dict[Place, int]


class Merged(NamedTuple):
    """Several files as one, and where each key came from."""

    content: dict[str, Any]
    origin: dict[Place, tuple[Path, int]]
    faults: tuple[Fault, ...] = ()


def load_policy(path: Path | None) -> Policy:
    """The policy in a file or folder; the built-in defaults where there is none.

    Raises:
        InputError: No such file, or one that cannot be read.
        PolicyError: With every fault; each place begins with FILE:LINE.
    """
    return DEFAULT_POLICY if path is None else usable(check_policy(path))


def usable(checked: Checked) -> Policy:
    """The policy that was found.

    Raises:
        PolicyError: It has faults; each place begins with FILE:LINE.
    """
    if checked.policy is None:
        raise PolicyError(tuple(_named(fault) for fault in checked.faults if not fault.problem.warning))
    return checked.policy


def _named(fault: Fault) -> Problem:
    line = f":{fault.problem.line}" if fault.problem.line else ""
    return fault.problem._replace(place=f"{fault.file}{line}: {fault.problem.place}")


def check_policy(path: Path) -> Checked:
    """The policy in a file or folder with all that is wrong or odd about it.

    Raises:
        InputError: No such file, or one that cannot be read.
    """
    return check_files(files_of(path), path)


def check_files(files: Sequence[Path], path: Path) -> Checked:
    """The same for files that are to be read as one; `path` is what a fault without a file is said of.

    Raises:
        InputError: A file that is not there or cannot be read.
    """
    try:
        parts = [_read(file) for file in files]
    except _BrokenFileError as broken:
        return Checked(None, (broken.fault,))
    merged = merge(parts)
    try:
        policy = policy_from_mapping(merged.content, _text(parts))
    except PolicyError as error:
        return Checked(None, (*merged.faults, *(_found(problem, merged, path) for problem in error.problems)))
    warnings = tuple(_found(problem, merged, path) for problem in policies.warnings(policy))
    return Checked(None if merged.faults else policy, (*merged.faults, *warnings), merged.origin)


def located(problems: Sequence[Problem], checked: Checked, path: Path) -> tuple[Fault, ...]:
    """Problems of a policy that was read, with their files and lines."""
    places = {_dotted(place): found for place, found in checked.origin.items()}
    found = [(problem, places.get(problem.place, (path, 0))) for problem in problems]
    return tuple(Fault(file, problem._replace(line=line)) for problem, (file, line) in found)


# Files ----------------------------------------------------------------------------------------------------------------


class _BrokenFileError(Exception):
    """A file that is no TOML."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def files_of(path: Path) -> list[Path]:
    """The files of a policy: itself, or those of a folder in the order of their names.

    Raises:
        InputError: A folder without any.
    """
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix == ".toml")
    if not found:
        raise InputError(f"{path}: no policy in this folder; put a file that ends in .toml there")
    return found


def _read(file: Path) -> Part:
    try:
        text = file.read_text("utf-8")
        return Part(file, text, tomllib.loads(text), key_lines(text))
    except FileNotFoundError:
        raise InputError(f"{file}: no such policy; give a .toml file or a folder of them") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: invalid UTF-8 at byte {error.start + 1}; save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); check its permissions") from None
    except tomllib.TOMLDecodeError as error:
        raise _BrokenFileError(_broken(file, text, str(error))) from None


def _broken(file: Path, text: str, message: str) -> Fault:
    """The reader's own message; it says the line at its end, or that the file ended too early."""
    said, _, where = message.partition(" (at ")
    found = re.search(r"line (\d+)", where)
    line = int(found[1]) if found else text.count("\n") or 1
    return Fault(file, Problem("file", f"is no TOML: {said[0].lower()}{said[1:]}", line))


def _text(parts: list[Part]) -> str:
    """The whole text; of a folder, each file under its name. It is kept to be read, and its digest names the policy."""
    if len(parts) == 1:
        return parts[0].text
    return "\n".join(f"# {part.file.name}\n{part.text}" for part in parts)


# Merging --------------------------------------------------------------------------------------------------------------


def merge(parts: list[Part]) -> Merged:
    """Files as one, in their order. A key that two of them set keeps the first value and is a fault."""
    content: dict[str, Any] = {}
    origin: dict[Place, tuple[Path, int]] = {}
    faults: list[Fault] = []
    for part in parts:
        _merge_table(content, part.content, (), _Source(part, origin, faults))
    return Merged(content, origin, tuple(faults))


class _Source(NamedTuple):
    part: Part
    origin: dict[Place, tuple[Path, int]]
    faults: list[Fault]


def _merge_table(into: dict[str, Any], table: Mapping[str, Any], place: Place, source: _Source) -> None:
    for key, value in table.items():
        here = (*place, key)
        known = into.get(key)
        if known is None:
            into[key] = value
            _note(here, here, source)
        elif isinstance(known, dict) and isinstance(value, dict):
            _merge_table(known, value, here, source)
        elif isinstance(known, list) and isinstance(value, list):
            into[key] = known + value
            for number in range(len(value)):
                _note((*here, number), (*here, number + len(known)), source)
        else:
            source.faults.append(_twice(here, source))


def _note(own: Place, merged: Place, source: _Source) -> None:
    """Remember for everything under a key of this file under which merged key it stands, and its line."""
    for place, line in source.part.lines.items():
        if place[: len(own)] == own:
            source.origin[merged + place[len(own) :]] = (source.part.file, line)


def _twice(place: Place, source: _Source) -> Fault:
    first, line = source.origin[place]
    own = source.part.lines.get(place, 0)
    message = f"is set twice, first in {first}:{line}; keep one of them"
    return Fault(source.part.file, Problem(_dotted(place), message, own))


def _found(problem: Problem, merged: Merged, path: Path) -> Fault:
    """The fault with its file and line: of its own key, else of what it stands in, where it is said to be missing."""
    place = _steps(problem.place, merged.content)
    while place:
        if place in merged.origin:
            file, line = merged.origin[place]
            return Fault(file, problem._replace(line=line))
        place = place[:-1]
    return Fault(path, problem)


def _dotted(place: Place) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")


def _steps(dotted: str, content: Mapping[str, Any]) -> Place:
    """The place that a dotted one means. The content decides, because a key may hold dots and brackets itself."""
    best: Place = ()
    for place in _places(content, ()):
        name = _dotted(place)
        if len(place) > len(best) and (dotted == name or dotted.startswith((f"{name}.", f"{name}["))):
            best = place
    return best


def _places(value: object, place: Place) -> Iterator[Place]:
    if place:
        yield place
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*place, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _places(item, (*place, number))


# The lines of keys ----------------------------------------------------------------------------------------------------

_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")  # inside an array or inline table, and between statements
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\]}#][^,\]}#\n]*")  # a number, boolean or date; a date may hold a space


def key_lines(text: str) -> dict[Place, int]:
    """The line (from 1) of every key, table header, array entry and inline table of a TOML text.

    Args:
        text: TOML that `tomllib` reads. What it refuses has no lines here.
    """
    return _Walk(text).lines


class _Walk:
    """One pass over a text, from the first statement to the last."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._seen, self._line = 0, 1
        self._tables: dict[Place, int] = {}  # how many entries an array of tables has so far
        self.lines: dict[Place, int] = {}
        table: Place = ()
        while self._skip(_SPACE) < len(text):
            table = self._header() if text[self._at] == "[" else self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _note(self, place: Place) -> None:
        self._line += self._text.count("\n", self._seen, self._at)
        self._seen = self._at
        self.lines.setdefault(place, self._line)

    def _header(self) -> Place:
        double = self._text.startswith("[[", self._at)
        self._at += 2 if double else 1
        place = self._resolved(self._key(), double=double)
        self._note(place)
        self._skip(_BLANK)
        self._at += 2 if double else 1
        return place

    def _resolved(self, key: Place, *, double: bool) -> Place:
        """A header names tables; one that is an array means its newest entry."""
        place: Place = ()
        for number, step in enumerate(key, 1):
            place = (*place, step)
            if double and number == len(key):
                self._note(place)
                self._tables[place] = self._tables.get(place, -1) + 1
            if place in self._tables:
                place = (*place, self._tables[place])
        return place

    def _pair(self, table: Place) -> Place:
        place = table
        for step in self._key():
            place = (*place, step)
            self._note(place)
        self._skip(_BLANK)
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(place)
        return table

    def _key(self) -> Place:
        steps: list[str] = []
        while True:
            self._skip(_BLANK)
            steps.append(self._key_part())
            self._skip(_BLANK)
            if not self._text.startswith(".", self._at):
                return tuple(steps)
            self._at += 1

    def _key_part(self) -> str:
        start = self._at
        if self._text[start] in "\"'":
            self._skip(_STRING)
            return next(iter(tomllib.loads(f"{self._text[start : self._at]} = 0")))
        self._skip(_BARE)
        return self._text[start : self._at]

    def _value(self, place: Place) -> None:
        opening = self._text[self._at]
        if opening in "\"'":
            self._skip(_STRING)
        elif opening == "[":
            self._array(place)
        elif opening == "{":
            self._inline_table(place)
        else:
            self._skip(_PLAIN)

    def _array(self, place: Place) -> None:
        self._at += 1
        number = 0
        while self._text[self._skip(_SPACE)] != "]":
            self._note((*place, number))
            self._value((*place, number))
            number += 1
            self._comma()
        self._at += 1

    def _inline_table(self, place: Place) -> None:
        self._at += 1
        while self._text[self._skip(_SPACE)] != "}":
            self._pair(place)
            self._comma()
        self._at += 1

    def _comma(self) -> None:
        self._skip(_SPACE)
        self._at += self._text.startswith(",", self._at)
