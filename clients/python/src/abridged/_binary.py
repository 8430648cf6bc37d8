"""The program of the daemon."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from .errors import BinaryNotFound

CARRIED = Path(__file__).with_name("bin") / "abridged"


def find(binary: str | None, env: Mapping[str, str]) -> str:
    """The path of the program. A program that is named by the caller or by ABRIDGED_BIN is the only place that counts."""
    path = env.get("PATH", "")
    if named := binary or env.get("ABRIDGED_BIN"):
        places = {str(named): shutil.which(named, path=path)}
    else:
        cargo = Path(env.get("HOME", "~")).expanduser() / ".cargo" / "bin" / "abridged"
        places = {
            "ABRIDGED_BIN (not set)": None,
            f"{CARRIED} (carried by the package)": shutil.which(str(CARRIED)),
            f"PATH ({path})": shutil.which("abridged", path=path),
            str(cargo): shutil.which(str(cargo)),
        }
    for found in filter(None, places.values()):
        return str(found)
    raise BinaryNotFound(list(places), "" if binary or not named else " that ABRIDGED_BIN names")
