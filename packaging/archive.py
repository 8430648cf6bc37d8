"""The archive for people: the binary with its manual pages, completions and licences."""

import gzip
import io
import pathlib
import tarfile
import tempfile

from shell import ROOT, run

# How each shell wants its file to be named.
COMPLETIONS = {
    "bash": "abridged.bash",
    "elvish": "abridged.elv",
    "fish": "abridged.fish",
    "powershell": "_abridged.ps1",
    "zsh": "_abridged",
}


def pack(release):
    name = f"abridged-{release.version}-{release.binary.target}"
    files = {"README.md": (ROOT / "README.md").read_bytes(), **release.licences}
    with tempfile.TemporaryDirectory() as folder:
        run(release.native, "man", "--out", folder)
        files |= {f"man1/{page.name}": page.read_bytes() for page in pathlib.Path(folder).iterdir()}
    for shell, file in COMPLETIONS.items():
        files[f"completions/{file}"] = run(release.native, "completions", shell).encode()
    files["abridged"] = release.binary.path.read_bytes()
    _write(release.out / f"{name}.tar.gz", {f"{name}/{file}": data for file, data in files.items()}, release.seconds)


def _write(path, files, seconds):
    """Writes the same bytes for the same files: sorted, with one time for all and no owner."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, data in sorted(files.items()):
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(data), seconds
                info.mode = 0o755 if name.endswith("/abridged") else 0o644
                archive.addfile(info, io.BytesIO(data))
