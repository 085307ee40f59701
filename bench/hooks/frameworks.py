"""What a hook adds to a run with one model call, beside other instrumentations of that framework in the same run.

Run by `python -m bench.hooks.frameworks [NAME...]`; `make bench` makes the environments. Each figure is a process of
its own, they take turns, and the best turn of each counts.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TURNS = 5
PEERS = {
    "agent-framework": ("Agent Framework's own spans", "OpenInference"),
    "claude-agent-sdk": ("OpenInference",),
    "crewai": ("OpenInference",),
    "google-adk": ("OpenInference",),
    "langgraph": ("OpenInference",),
    "llama-index": ("OpenInference",),
    "openai-agents": ("OpenInference", "Logfire"),
    "pydantic-ai": ("Logfire",),
    "smolagents": ("OpenInference",),
    "strands": ("Strands' own spans",),
    "temporal": ("Temporal's own interceptor",),
}
_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]


def main(names: list[str]) -> None:
    """Prints the table."""
    for name in names or PEERS:
        variants = ("bare", "stopcause", *PEERS[name])
        turns = [[_cost(name, variant) for variant in variants] for _ in range(TURNS)]
        best = dict(zip(variants, (min(each) for each in zip(*turns, strict=True)), strict=True))
        print(f"{name:<14} {best['bare']:9,.0f} us a run, bare")
        added = {variant: best[variant] - best["bare"] for variant in variants[1:]}
        for variant, us in added.items():
            ratio = "" if variant == "stopcause" else f"{us / added['stopcause']:6.1f} x stopcause"
            print(f"  + {variant:<20} {us:7,.0f} us{us / best['bare'] * 100:6.1f} %{ratio}")


def _cost(name: str, variant: str) -> float:
    program = _HERE / "programs" / f"run_{name.replace('-', '_')}.py"
    python = _ROOT / ".envs" / f"bench-{name}" / "bin" / "python"
    done = subprocess.run([python, program, variant], check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main(sys.argv[1:])
