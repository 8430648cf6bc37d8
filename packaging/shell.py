"""Programs that the release runs, and the copy of the tree that they run in."""

import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = ("LICENSE-MIT", "LICENSE-APACHE")


def fail(reason):
    sys.exit(f"packaging/release: {reason}")


def run(*command, cwd=ROOT, env=None, stderr=subprocess.PIPE):
    """Runs a program and returns its stdout. A failure ends the release with what the program said."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    if done.returncode:
        fail(f"{' '.join(command)} fails with {done.returncode}\n{done.stdout}{done.stderr or ''}".rstrip())
    return done.stdout


@contextlib.contextmanager
def staged():
    """A copy of the clients and of the protocol that they are built from, without the files that git ignores.

    Each client has the licences beside it.
    """
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "clients", "protocol")
    with tempfile.TemporaryDirectory(prefix="abridged-release-") as temporary:
        tree = pathlib.Path(temporary)
        for name in filter(None, listed.split("\0")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
        for folder in (tree, *filter(pathlib.Path.is_dir, (tree / "clients").iterdir())):
            for name in OURS:
                shutil.copyfile(ROOT / name, folder / name)
        yield tree
