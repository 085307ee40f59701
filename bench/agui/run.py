"""The figures of AG-UI: reading a stream, watching one pass, asking the guard. Run by `python -m bench.agui.run`."""

from __future__ import annotations

from bench.agui import guard, reading, tap


def main() -> None:
    """Prints the three tables."""
    for part in (reading, tap, guard):
        part.main()


if __name__ == "__main__":
    main()
