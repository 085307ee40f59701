"""The figures of AG-UI: reading a stream, watching one pass, asking the guard, auditing a file.

Run by `python -m bench.agui.run`.
"""

from __future__ import annotations

from bench.agui import audit, guard, reading, tap


def main() -> None:
    """Prints the four tables."""
    for part in (reading, tap, guard, audit):
        part.main()


if __name__ == "__main__":
    main()
