"""`stopcause connect`: the code as it stands in its file, what a terminal gets beside it, and what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stopcause import cli, cli_shared
from stopcause.render import completion, connect
from stopcause.render.pen import WIDTH, cells
from stopcause.render.screen import Screen, screen
from stopcause.resources import data_folder
from tests.support.screens import assert_golden, screen_text

FOLDER = data_folder("docs/connect")
FILES = sorted(FOLDER.iterdir())
SCREENS = Path(__file__).parent / "screens_connect"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["connect", *arguments])


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a terminal, under the program's bare name."""

    def table(_output: str | None) -> Screen:
        return screen("table")

    monkeypatch.setattr(cli_shared, "screen_for", table)
    monkeypatch.setattr("sys.argv", ["stopcause"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_pipe_gets_the_file_and_nothing_else(file: Path) -> None:
    result = run(file.stem)

    assert (result.stdout, result.stderr, result.exit_code) == (file.read_text("utf-8"), "", 0)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_says_how_to_install_its_hook_and_writes_where_the_hints_look(file: Path) -> None:
    first, *code = file.read_text("utf-8").splitlines()

    assert re.fullmatch(r"(//|#) (npm install|pip install) [@\w./\"\[\]-]+", first)
    assert (connect.RECORDS in "\n".join(code)) is (file.suffix != ".py")
    assert all(cells(line) <= WIDTH for line in code)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_terminal_is_told_what_to_do_before_and_after(file: Path) -> None:
    got = screen_text(["connect", file.stem], run(file.stem))

    assert_golden(SCREENS / f"{file.stem}.txt", got)
    assert all(cells(line.removeprefix("2> ")) <= WIDTH for line in got.splitlines())


def test_there_is_no_screen_that_nothing_writes() -> None:
    assert {path.stem for path in SCREENS.iterdir()} == {file.stem for file in FILES}


def test_a_framework_that_there_is_not_names_those_that_there_are() -> None:
    result = run("basic")

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"stopcause: No hook for 'basic'. There is one for: {', '.join(connect.frameworks())}.\n"


def test_a_framework_is_called_as_its_hook_too() -> None:
    assert run("pydantic_ai").stdout == run("pydantic-ai").stdout != ""


@pytest.mark.parametrize("name", ["agui", "AG-UI", "ag_ui"])
def test_a_framework_is_called_as_people_write_it(name: str) -> None:
    assert run(name).stdout == run("ag-ui").stdout != ""


def test_a_framework_that_is_misspelt_gets_the_nearest() -> None:
    assert run("langraph").stderr.startswith("stopcause: No hook for 'langraph'. Did you mean langgraph? There is")


@pytest.mark.parametrize("name", ["../connect/ai-sdk", "ai-sdk.js", "", "."])
def test_a_name_is_no_path(name: str) -> None:
    assert run(name).exit_code == 2


def test_without_a_name_it_lists_them_and_another_file_is_another_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strands.py").write_text('# pip install "stopcause"\nimport stopcause\n', "utf-8")
    (tmp_path / "ai-sdk.js").touch()
    (tmp_path / ".swp").touch()
    (tmp_path / "__pycache__").mkdir()
    monkeypatch.setattr(connect, "data_folder", lambda _name: tmp_path)

    assert run().stdout == "ai-sdk\nstrands\n"
    assert connect.lines_of("strands").install == 'pip install "stopcause"'
    assert connect.lines_of("strands").shown == ("import stopcause",)
    assert completion.frameworks("s") == ["strands"]
    assert completion.frameworks("") == ["ai-sdk", "strands"]
