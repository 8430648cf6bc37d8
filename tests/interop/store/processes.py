"""Processes as /proc shows them."""


def state_of(folder):
    """The letter of the state of a process or a thread; none for one that is gone."""
    return (_stat(folder) or [""])[0]


def parent_of(folder):
    """The parent of a process; 0 for one that is gone."""
    return int((_stat(folder) or ["", 0])[1])


def _stat(folder):
    """The fields after the name, which may have spaces and parentheses."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
