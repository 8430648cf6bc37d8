"""Archives that are the same bytes for the same contents: sorted, with one time for all members and no owner."""

import dataclasses
import gzip
import io
import tarfile
import time
import zipfile


@dataclasses.dataclass(frozen=True, order=True)
class Member:
    """A file in an archive."""

    name: str
    data: bytes
    mode: int = 0o644


def write_tar(path, members, seconds):
    """Writes a `.tar.gz`. The time is seconds since 1970."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for member in sorted(members):
                info = tarfile.TarInfo(member.name)
                info.size, info.mode, info.mtime = len(member.data), member.mode, seconds
                archive.addfile(info, io.BytesIO(member.data))


def write_zip(path, members, seconds):
    """Writes a `.zip` in the given order of members, since a wheel has its record last."""
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            info = zipfile.ZipInfo(member.name, time.gmtime(seconds)[:6])
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (0o100000 | member.mode) << 16
            archive.writestr(info, member.data)
