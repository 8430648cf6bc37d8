"""Processes as /proc shows them."""

from pathlib import Path


def state_of(folder):
    """The letter of the state of a process or a thread; none for one that is gone."""
    return (_stat(folder) or [""])[0]


def children_of(parent):
    """The processes that a process has started, and that it has not yet seen end."""
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if _stat(folder)[1:2] == [str(parent)]]


def _stat(folder):
    """The fields after the name, which may have spaces and parentheses."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
