"""Turning hooks on and off: a framework is found without importing it, and a hook that fails turns itself off.

The framework here is a small package of the tests' own; the real ones are in `tests/frameworks`.
"""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stopcause
from stopcause.errors import ConfigurationError
from stopcause.receipts import imports, instrumentation
from stopcause.receipts.hooks import PROGRAMS, SPECS, Spec
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.testing import Recorded, recorded
from tests.support.captured import Wrong

TOY = Spec("toy", "toy-framework", "toy_framework.loop", "1.2", "2")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed framework: a package with a version, and nothing imported yet."""
    package = tmp_path / "toy_framework"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "loop.py").write_text("def run():\n    return 'done'\n")
    info = tmp_path / "toy_framework-1.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-framework\nVersion: 1.4\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(instrumentation, "SPECS", (TOY,))
    yield package
    stopcause.uninstrument()
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy_framework"]:
        del sys.modules[name]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the toy's hook was told, in order."""
    told: list[Any] = []
    module = ModuleType("stopcause.receipts.hooks.toy")

    def install(hook: Hook) -> Callable[[], None]:
        told.append((hook.version, hook.is_tested, max(vars(sys.modules["toy_framework.loop"]))))
        return lambda: told.append("undone")

    vars(module)["install"] = install
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return told


@pytest.mark.usefixtures("toy")
def test_a_hook_is_installed_when_its_framework_is_imported_and_not_before(installed: list[Any]) -> None:
    assert stopcause.instrument() == ("toy",)
    assert stopcause.instrument("toy") == ("toy",)
    assert (installed, "toy_framework" in sys.modules) == ([], False)

    loop = importlib.import_module("toy_framework.loop")

    assert installed == [("1.4", True, "run")]
    assert loop.run() == "done"
    assert type(loop.__loader__).__name__ == "SourceFileLoader"
    assert loop.__spec__ is not None
    assert type(loop.__spec__.loader).__name__ == "SourceFileLoader"
    stopcause.uninstrument()
    assert installed[1:] == ["undone"]


@pytest.mark.usefixtures("toy")
def test_a_framework_that_is_imported_already_is_hooked_at_once(installed: list[Any]) -> None:
    importlib.import_module("toy_framework.loop")
    stopcause.instrument("toy")

    assert len(installed) == 1


@pytest.mark.usefixtures("toy")
def test_turned_off_before_the_import_nothing_is_left(installed: list[Any]) -> None:
    before = list(sys.meta_path)
    stopcause.instrument()
    stopcause.uninstrument()
    importlib.import_module("toy_framework.loop")

    assert (installed, sys.meta_path) == ([], before)


def test_an_import_that_fails_fails_as_ever(toy: Path, installed: list[Any]) -> None:
    (toy / "loop.py").write_text("raise KeyError('theirs')\n")
    stopcause.instrument()

    with pytest.raises(KeyError, match="theirs"):
        importlib.import_module("toy_framework.loop")
    assert installed == []
    (toy / "loop.py").write_text("def run(): return 1\n")
    importlib.invalidate_caches()
    importlib.import_module("toy_framework.loop")
    assert len(installed) == 1


@pytest.mark.usefixtures("toy")
def test_a_hook_that_cannot_be_installed_is_said_and_is_no_import_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "stopcause.receipts.hooks.toy", ModuleType("no install in it"))
    stopcause.instrument()

    assert importlib.import_module("toy_framework.loop").run() == "done"
    assert "the hook for toy-framework 1.4 could not be installed (AttributeError)" in caplog.text


@pytest.mark.parametrize(
    ("version", "is_tested"), [("1.2", True), ("1.10.3rc1", True), ("1.1.9", False), ("2.0", False)]
)
def test_a_version_outside_the_range_is_said_on_every_receipt(
    toy: Path, installed: list[Any], version: str, is_tested: bool, caplog: pytest.LogCaptureFixture
) -> None:
    info = next(toy.parent.glob("*.dist-info"))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toy-framework\nVersion: {version}\n")
    stopcause.instrument()
    importlib.import_module("toy_framework.loop")

    assert installed[0][:2] == (version, is_tested)
    assert (
        f"toy-framework {version} is outside the tested versions (1.2 up to, not with, 2)" in caplog.text
    ) != is_tested


@pytest.mark.parametrize("error", [None, Wrong()])
def test_of_an_untested_version_only_exceptions_tell_why_it_stopped(
    error: Exception | None, receipts: Recorded
) -> None:
    run = Hook(TOY, "9", is_tested=False).begin("a")
    assert run is not None
    run.start().end(error)

    assert [each.code for each in receipts.stopped.findings or ()] == ["untested_version"]
    assert receipts.stopped.stop_cause == ("unknown" if error is None else "host_error")
    assert receipts.stopped.reason_code == ("untested_version" if error is None else None)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("version", [None, KeyError("Version")])
def test_a_version_that_nobody_knows_is_an_untested_one(
    installed: list[Any], monkeypatch: pytest.MonkeyPatch, version: object
) -> None:
    def unknown(_: str) -> object:
        if isinstance(version, Exception):
            raise version
        return version

    monkeypatch.setattr(metadata, "version", unknown)
    instrumentation.instrument("toy")
    importlib.import_module("toy_framework.loop")

    assert installed == [(None, False, "run")]


def test_a_hook_that_cannot_be_taken_out_keeps_no_other_in(caplog: pytest.LogCaptureFixture) -> None:
    undone: list[str] = []

    def fails() -> None:
        raise RuntimeError("a canary")

    instrumentation._undo |= {"toy": [lambda: undone.append("first"), fails], "toy2": [lambda: undone.append("other")]}
    instrumentation.uninstrument("toy", "toy2")

    assert undone == ["first", "other"]
    assert "toy could not be taken out whole (RuntimeError)" in caplog.text
    assert "canary" not in caplog.text


def test_a_name_that_is_no_hook_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="no hook 'langgrph'; there are agent_framework, claude"):
        stopcause.instrument("langgrph")


def test_a_list_of_names_is_no_name() -> None:
    with pytest.raises(ConfigurationError, match=r"no hook \['langgraph'\]"):
        stopcause.instrument(["langgraph"])  # type: ignore[arg-type]  # what people try


@pytest.mark.usefixtures("installed")
def test_a_hook_is_called_as_in_python_or_as_its_package(
    toy: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert toy.is_dir()
    monkeypatch.setattr(instrumentation, "SPECS", (TOY._replace(name="to_y"),))
    monkeypatch.setenv("STOPCAUSE_DISABLED", "to-y, langraph, claude-code")

    assert stopcause.instrument("to-y") == ()
    assert "STOPCAUSE_DISABLED names no hook 'langraph'; there are to_y, claude_code" in caplog.text
    assert len(caplog.records) == 1
    monkeypatch.delenv("STOPCAUSE_DISABLED")
    assert stopcause.instrument("to-y") == ("to_y",)
    stopcause.uninstrument("to-y")
    assert stopcause.instrument("to_y") == ("to_y",)
    stopcause.uninstrument("to-y")
    assert stopcause.instrument("toy-framework") == ("to_y",)


def test_a_framework_that_is_not_installed_is_said_where_it_was_named(caplog: pytest.LogCaptureFixture) -> None:
    assert stopcause.instrument() == ()
    assert caplog.text == ""
    stopcause.instrument("strands")

    assert "strands-agents is not installed here" in caplog.text


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("word", ["1", "toy", "strands,toy"])
def test_a_switch_for_all_and_one_for_each(monkeypatch: pytest.MonkeyPatch, installed: list[Any], word: str) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)

    assert stopcause.instrument() == ()
    importlib.import_module("toy_framework.loop")
    assert installed == []


def test_the_list_of_hooks_and_the_folders_are_the_same() -> None:
    folder = Path(instrumentation.__file__).parent / "hooks"
    folders = {each.parent.name for each in folder.glob("*/__init__.py")}

    assert folders == {spec.name for spec in SPECS} | set(PROGRAMS)


def test_opentelemetry_finds_us_by_the_entry_point() -> None:
    (found,) = metadata.entry_points(group="opentelemetry_instrumentor", name="stopcause")
    instrumentor = found.load()()

    assert instrumentor.instrument(skip_dep_check=True) is None
    assert instrumentor.uninstrument() is None
    assert stopcause.instrument() == (), "nothing that it turned on is left, and no framework is installed here"


def test_importing_a_hook_s_file_imports_no_framework() -> None:
    program = "import importlib, sys\n" + "".join(
        f"importlib.import_module('stopcause.receipts.hooks.{spec.name}')\n" for spec in SPECS
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


# The guard ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hook() -> Hook:
    return Hook(TOY, "1.4", is_tested=True)


def test_what_goes_wrong_in_a_guard_is_counted_and_ends_there(hook: Hook, receipts: Recorded) -> None:
    with hook.guard("on_end"):
        raise RuntimeError("a canary")
    run = hook.begin("a")
    assert run is not None
    run.start().end()

    assert [(each.code, each.where) for each in receipts.records[0].findings or ()] == [
        ("hook_failed", "stopcause.toy:on_end")
    ]
    assert b"canary" not in b"".join(receipts.lines)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_the_host_s(hook: Hook, error: type[BaseException]) -> None:
    with pytest.raises(error), hook.guard("on_end"):
        raise error


def test_a_hook_that_failed_twenty_times_is_off_and_says_so(hook: Hook, receipts: Recorded) -> None:
    open_run = hook.begin("open")
    assert open_run is not None
    open_run.start()
    for _ in range(19):
        with hook.guard("on_end"):
            raise RuntimeError
    assert hook.begin("a") is not None
    with hook.guard("on_end"):
        raise RuntimeError

    assert hook.begin("a") is None
    open_run.end()
    codes = [each.code for record in receipts.records for each in record.findings or ()]
    assert codes == ["hook_failed", "hook_off"], "each finding once on a record"
    assert receipts.stopped.agent == "open"


def test_reading_an_object_that_changed_shape_is_found_by_hook_and_attribute(hook: Hook, receipts: Recorded) -> None:
    class Result:
        usage = None
        steps = "three"
        is_done = True

        @property
        def cost(self) -> float:
            raise RuntimeError("a canary")

    run = hook.begin("a")
    assert run is not None
    run.start()
    assert hook.read(run, Result(), "usage", int) is None
    assert hook.read(run, Result(), "steps", int) is None
    assert hook.read(run, Result(), "is_done", int) is None
    assert hook.read(run, Result(), "cost", float) is None
    assert hook.read(run, Result(), "gone.further", str) is None
    assert hook.read(run, Result(), "steps", str) == "three"
    run.end()

    wheres = [each.where for each in receipts.stopped.findings or () if each.code == "shape_changed"]
    assert wheres == [f"stopcause.toy:{name}" for name in ("steps", "is_done", "cost", "gone.further")]


class Lying:
    @property  # type: ignore[misc]  # the point
    def __class__(self) -> type:
        raise RuntimeError("I am nobody")


def test_an_object_that_does_not_say_what_it_is_is_found(hook: Hook, receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        assert hook.read(run, type("Owner", (), {"odd": Lying()})(), "odd", str) is None

    assert [finding.code for finding in receipts.stopped.findings or ()] == ["shape_changed"]


def test_a_hook_without_a_writer_does_nothing(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", "toy")
    assert hook.begin("a") is None
    monkeypatch.setenv("STOPCAUSE_DISABLED", "1")
    with hook.guard("x"):
        raise RuntimeError


def test_when_imported_calls_once_for_a_package_that_imports_its_parts(toy: Path) -> None:
    (toy / "__init__.py").write_text(
        textwrap.dedent("""
        from toy_framework import loop
        from toy_framework.loop import run
    """)
    )
    called: list[str] = []
    imports.when_imported("toy_framework.loop", lambda: called.append("loop"))
    imports.when_imported("toy_framework", lambda: called.append("package"))
    importlib.import_module("toy_framework")
    importlib.reload(sys.modules["toy_framework"])

    assert called == ["loop", "package"]


def test_logs_of_ours_are_quiet_by_default(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "stopcause"), recorded(), stopcause.run("a"):
        pass

    assert caplog.text == ""
