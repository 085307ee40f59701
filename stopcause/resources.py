"""Where the data folders are: inside an installed wheel, or at the root of the checkout."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder `name` (fixtures, dashboards, docs/connect): from the wheel where it is one, else from the tree."""
    packaged = Path(str(files("stopcause"))) / "_data" / name
    return packaged if packaged.is_dir() else Path(__file__).parents[1] / name
