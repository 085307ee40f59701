"""A policy from files: every fault has its file and line, folders merge, and what cannot be reached is told."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import InputError, PolicyError
from stopcause.pipeline.policy_file import check_policy, key_lines, load_policy

DESIGN = """\
[policy]
id = "prod"
version = "2026-11-30"
[defaults]
stuck_after = "5m"
[verdicts]
guardrail = "BOUNDED_STOP"
[links]
trace = "https://traces.example/t/{trace_id}"
[[agents]]
match = { agent = "invoice-*", environment = "prod" }
stage = "enforce"
contract = "invoice-created"
[[routes]]
match = { kind = "tool_call", tool = "transfer_funds" }
owner = "team:treasury"
due = "30m"
[contracts.invoice-created]
min_strength = "read_back"
issuers = ["destination:billing-db"]
[[contracts.invoice-created.checks]]
kind = "record"
query = "select status from invoice where run_id = :run_id"
expect = { status = "issued" }
"""


def faults(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "policy.toml"
    path.write_text(text, "utf-8")
    return [str(fault).removeprefix(f"{path}:") for fault in check_policy(path).faults]


def test_the_plans_example_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(DESIGN, "utf-8")

    checked = check_policy(path)

    assert checked.faults == ()
    assert checked.policy is not None
    assert (checked.policy.id, checked.policy.text) == ("prod", DESIGN)


def test_no_policy_is_the_default_one() -> None:
    assert load_policy(None) is DEFAULT_POLICY


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[defaults]\n\nsettle = "ten"\n', "3: defaults.settle: is no duration"),
        (
            '# c\n[[agents]]\n[[agents]]\nmatch = { agnt = "x" }\n',
            "4: agents[1].match.agnt: is not known here; did you mean agent?",
        ),
        ('[[agents]]\nmatch.agnt = "x"\n', "2: agents[0].match.agnt: is not known"),
        ('[[agents]]\n[agents.match]\nagnt = "x"\n', "3: agents[0].match.agnt: is not known"),
        ('agents = [\n  {},\n  { stage = "off" },\n]\n', "3: agents[1].stage: is not known; write"),
        ('[contracts.x]\nmin_strength = "strong"\n', "2: contracts.x.min_strength: is not known; write"),
        ('[contracts."a.b"]\nsettle = 3\n', "2: contracts.a.b.settle: is no duration"),
        ('contracts.x.issuers = [\n "a", # ]\n 5,\n]\n', "3: contracts.x.issuers[1]: is no string; put it in quotes"),
        (
            '[[contracts.x.checks]]\nkind = "k"\n[[contracts.x.checks]]\nname = "n"\n',
            "3: contracts.x.checks[1].kind: is missing",
        ),
        ('[policy]\nid = """\n[agents]\n"""\n', "2: policy.id: is no identifier; write"),
        ("[agent]\n", "1: agent: is not known here; did you mean agents?"),
        ('["agent s"]\n', "1: agent s: is not known here"),
    ],
)
def test_a_fault_has_the_line_of_its_own_key(tmp_path: Path, text: str, said: str) -> None:
    (found,) = faults(tmp_path, text)

    assert found.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [("a = 1\nb = = 2\n", "2: file: is no TOML: invalid value"), ("a = [1,\n\n", "2: file: is no TOML")],
)
def test_what_is_no_toml_says_where(tmp_path: Path, text: str, said: str) -> None:
    (found,) = faults(tmp_path, text)

    assert found.startswith(said)


def test_an_entry_that_is_never_reached_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('[[agents]]\nmatch = { agent = "*" }\n\n[[agents]]\nmatch = { agent = "x" }\n', "utf-8")

    policy, found, _origin = check_policy(path)

    assert policy is not None
    assert [(each.problem.line, each.problem.place, each.problem.warning) for each in found] == [(4, "agents[1]", True)]


# Folders


def folder(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    return tmp_path


def test_a_folder_joins_arrays_and_merges_tables_in_name_order(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        b='[[agents]]\nmatch = { agent = "b" }\n[contracts.x]\nsettle = "1m"\n[defaults]\nsettle = "1m"\n',
        a='[policy]\nid = "all"\n[[agents]]\nmatch = { agent = "a" }\n[contracts.x]\nmin_strength = "human"\n',
    )
    (tmp_path / "notes.txt").write_text("not a policy", "utf-8")

    policy = load_policy(path)

    assert [entry.match.agent for entry in policy.agents] == ["a", "b"]
    assert policy.contracts["x"].min_strength == "human"
    assert policy.contracts["x"].settle == policy.defaults.settle
    assert policy.text.startswith("# a.toml\n")


def test_a_fault_in_a_folder_names_its_own_file_and_line(tmp_path: Path) -> None:
    path = folder(tmp_path, a="[[agents]]\n", b='\n[[agents]]\nstage = "off"\n')

    (fault,) = check_policy(path).faults

    assert str(fault).startswith(f"{path / 'b.toml'}:3: agents[1].stage: ")


def test_a_key_that_two_files_set_is_a_fault_that_names_both(tmp_path: Path) -> None:
    path = folder(tmp_path, a='[policy]\nid = "a"\n', b='[policy]\nversion = "1"\nid = "b"\n')

    with pytest.raises(PolicyError) as error:
        load_policy(path)
    assert str(error.value) == (
        f"{path / 'b.toml'}:3: policy.id: is set twice, first in {path / 'a.toml'}:2; keep one of them"
    )


def test_what_is_not_there_is_no_policy(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "x.toml").write_bytes(b"\xff")

    for path, said in (
        (tmp_path / "no.toml", "no such policy"),
        (tmp_path / "d", "no policy"),
        (tmp_path / "x.toml", "UTF-8"),
    ):
        with pytest.raises(InputError, match=said):
            load_policy(path)


# The walk over the layout


ODD = '''
"a.b" = { x = 1, 'y z' = [ { q = 2 } ] }
c.d . e = 1979-05-27 07:32:00
f = [ [1, 2], # ]
  ["a]", 'b}'],
]
g = """ x = 1
"" [t] \\""" # """
[ t . "u.v" ]
n = \'\'\'
[[no]]\'\'\'\'
[[l.m]]
a = 1
[[l.m]]
[l.m.o]
a = inf
[[l.m.p]]
[[l.m.p]]
z = true
'''


def test_odd_layouts_are_walked_right() -> None:
    tomllib.loads(ODD)

    lines = key_lines(ODD)

    assert lines["a.b",] == lines["a.b", "x"] == lines["a.b", "y z", 0, "q"] == 2
    assert lines["c", "d", "e"] == 3
    assert (lines["f", 0], lines["f", 1, 1], lines["g",]) == (4, 5, 7)
    assert (lines["t", "u.v"], lines["t", "u.v", "n"]) == (9, 10)
    assert (lines["l", "m", 0, "a"], lines["l", "m", 1], lines["l", "m", 1, "o", "a"]) == (13, 14, 16)
    assert lines["l", "m", 1, "p", 1, "z"] == 19
    assert ("no",) not in lines


def _quoted(text: str) -> str:
    escaped = "".join(f"\\U{ord(letter):08x}" if not letter.isalnum() else letter for letter in text)
    return f'"{escaped}"'


NAMES = st.text(st.sampled_from("abc.-_ \"'#]}="), min_size=1, max_size=4)
VALUES = st.recursive(
    st.one_of(st.integers(0, 9).map(str), st.text(max_size=5).map(_quoted)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ",\n".join(items) + "]"),
        st.dictionaries(NAMES, inner, max_size=3).map(
            lambda table: "{" + ", ".join(f"{_quoted(key)} = {value}" for key, value in table.items()) + "}"
        ),
    ),
    max_leaves=6,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_every_key_that_toml_reads_has_the_line_that_it_stands_on(table: dict[str, str]) -> None:
    text = "".join(f"{_quoted(key)} = {value}\n" for key, value in table.items())

    lines = key_lines(text)

    assert {place[0] for place in lines} == tomllib.loads(text).keys()
    for place, line in lines.items():
        if isinstance(place[-1], str):
            assert _quoted(place[-1]) in text.split("\n")[line - 1]
