"""The wheels of PyPI: one with the binary, and one without for platforms that have no binary."""

import base64
import hashlib
import sys
import zipfile

from archives import Member, write_zip
from shell import fail, run, staged

PROGRAM = "abridged/bin/abridged"


def pack(binary, version, members, out, seconds):
    """Builds clients/python, and packs what it makes twice: as it is, and with the binary and the members."""
    with staged() as tree:
        command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps")
        run(*command, "--wheel-dir", tree / "wheels", tree / "clients/python")
        (built,) = (tree / "wheels").iterdir()
        with zipfile.ZipFile(built) as archive:
            files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    stem = f"abridged-{version}"
    if built.name != f"{stem}-py3-none-any.whl":
        fail(f"clients/python makes {built.name} in the place of {stem}-py3-none-any.whl")
    info = f"{stem}.dist-info"
    _write(out, stem, ["any"], files, seconds)
    files |= {f"{info}/licenses/{member.name}": member.data for member in members}
    _write(out, stem, binary.wheel_tags, files | {PROGRAM: binary.path.read_bytes()}, seconds)


def _write(out, stem, tags, files, seconds):
    """Writes a wheel by the specification of the binary distribution format, 1.0."""
    info = f"{stem}.dist-info"
    is_pure = str(PROGRAM not in files).lower()
    head = f"Wheel-Version: 1.0\nGenerator: abridged\nRoot-Is-Purelib: {is_pure}\n"
    files = files | {f"{info}/WHEEL": (head + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)).encode()}
    files.pop(f"{info}/RECORD")
    members = [Member(name, data, 0o755 if name == PROGRAM else 0o644) for name, data in sorted(files.items())]
    record = "".join(f"{member.name},sha256={_digest(member.data)},{len(member.data)}\n" for member in members)
    members.append(Member(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
    write_zip(out / f"{stem}-py3-none-{'.'.join(tags)}.whl", members, seconds)


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
