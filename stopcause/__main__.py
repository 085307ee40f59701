"""The script. The small install has no typer: there it prints how to get the rest."""

from __future__ import annotations

import sys

from stopcause.errors import MissingExtraError


def main() -> None:
    """Run the command line, or say how to install it."""
    try:
        from stopcause import cli  # noqa: PLC0415 - the small install has no typer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "stopcause":
            raise
        sys.exit(str(MissingExtraError("the command line", "server")))
    cli.main()


if __name__ == "__main__":
    main()
