"""What the taps add to a stream of a real agent. Run by `python -m bench.agui.tap`; `programs/tap.py` does it.

`make bench` makes its environment, which has the agent's packages.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_HERE = Path(__file__).parent
_PYTHON = _HERE.parents[1] / ".envs" / "bench-ag-ui-strands" / "bin" / "python"


def main() -> None:
    """Prints the table."""
    subprocess.run([_PYTHON, _HERE / "programs" / "tap.py"], check=True)


if __name__ == "__main__":
    main()
