"""Reads from the headers of an executable where it runs: its system, its processor, and the oldest system that has all it needs."""

import dataclasses
import pathlib
import platform
import re
import struct
import sys

# The libraries that every Linux with glibc has, by the policy of manylinux.
COMMON_LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1",
                    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}  # fmt: skip
# pip knows no manylinux tags of arm64 before this glibc.
OLDEST_GLIBC = (2, 17)
# A static binary runs with each libc, and pip wants a platform for each.
STATIC = "manylinux_2_17_{0}.musllinux_1_1_{0}"


class Unfit(Exception):
    """A file that cannot go into a package, and the reason."""


@dataclasses.dataclass(frozen=True)
class Binary:
    """An executable and where it runs. `os` and `cpu` are words of npm."""

    path: pathlib.Path
    os: str
    cpu: str
    # The oldest glibc or macOS that it runs on; None if it is static.
    needs: tuple[int, int] | None

    @property
    def target(self):
        """The target of Rust."""
        system = "apple-darwin" if self.os == "darwin" else f"unknown-linux-{'gnu' if self.needs else 'musl'}"
        return f"{'x86_64' if self.cpu == 'x64' else 'aarch64'}-{system}"

    @property
    def wheel_platform(self):
        """The platform in the name of a wheel with this binary; several with a dot between them."""
        if self.os == "darwin":
            major, minor = self.needs
            # From 11 on, pip knows only whole versions.
            major, minor = (major + (minor > 0), 0) if major >= 11 else (major, minor)
            return f"macosx_{major}_{minor}_{'x86_64' if self.cpu == 'x64' else 'arm64'}"
        machine = "x86_64" if self.cpu == "x64" else "aarch64"
        if not self.needs:
            return STATIC.format(machine)
        major, minor = max(self.needs, OLDEST_GLIBC)
        return f"manylinux_{major}_{minor}_{machine}"

    @property
    def is_native(self):
        """Whether it runs on this machine."""
        machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine().lower())
        return (self.os, self.cpu) == (sys.platform, machine)


def read(path):
    """The binary at a path. Raises `Unfit`."""
    data = path.read_bytes()
    try:
        if data[:4] == b"\x7fELF":
            return _elf(path, data)
        if data[:4] == b"\xcf\xfa\xed\xfe":
            return _mach_o(path, data)
    except (struct.error, IndexError, ValueError) as error:
        raise Unfit(f"{path}: its headers are damaged: {error}") from error
    raise Unfit(f"{path}: neither ELF nor Mach-O of 64 bits")


def _elf(path, data):
    if data[4:6] != b"\x02\x01":
        raise Unfit(f"{path}: not ELF of 64 bits, little-endian")
    (machine,) = struct.unpack_from("<H", data, 18)
    cpu = {62: "x64", 183: "arm64"}.get(machine)
    if not cpu:
        raise Unfit(f"{path}: a processor that no package is for (e_machine {machine})")
    if interpreter := _interpreter(data):
        if "ld-linux" not in interpreter:
            raise Unfit(f"{path}: it is loaded by {interpreter}; link it with glibc, or statically with musl")
        return Binary(path, "linux", cpu, _glibc(path, data))
    return Binary(path, "linux", cpu, None)


def _interpreter(data):
    """The loader that the program header of type PT_INTERP names; None in a static binary."""
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(start, start + size * count, size):
        kind, _, offset = struct.unpack_from("<IIQ", data, at)
        if kind == 3:
            return _text(data, offset)
    return None


def _glibc(path, data):
    """The newest version of glibc that a symbol asks for. A library beside the common ones is refused."""
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    # Of each section: its type, the offset and size of its data, and the section with its strings.
    sections = [struct.unpack_from("<4xI16xQQI", data, start + size * number) for number in range(count)]
    needed, versions = set(), []
    for kind, offset, length, link in sections:
        if kind == 6:  # SHT_DYNAMIC
            strings = sections[link][1]
            tags = [struct.unpack_from("<QQ", data, at) for at in range(offset, offset + length, 16)]
            needed |= {_text(data, strings + value) for tag, value in tags if tag == 1}
        if kind == 0x6FFFFFFE:  # SHT_GNU_verneed
            versions += _version_names(data, offset, sections[link][1])
    if foreign := needed - COMMON_LIBRARIES:
        raise Unfit(f"{path}: it needs libraries that not every Linux has: {', '.join(sorted(foreign))}")
    found = [(int(match[1]), int(match[2])) for name in versions if (match := re.match(r"GLIBC_(\d+)\.(\d+)", name))]
    # Packed relocations have a name instead of a number.
    found += [(2, 36)] * ("GLIBC_ABI_DT_RELR" in versions)
    if not found:
        raise Unfit(f"{path}: it names no version of glibc")
    return max(found)


def _version_names(data, at, strings):
    """The names in the chain of Elf64_Verneed, each with its own chain of Elf64_Vernaux."""
    names, more = [], True
    while more:
        _, count, _, first, following = struct.unpack_from("<HHIII", data, at)
        name_at = at + first
        for _ in range(count):
            name, after = struct.unpack_from("<8xII", data, name_at)
            names.append(_text(data, strings + name))
            name_at += after
        at, more = at + following, following > 0
    return names


def _mach_o(path, data):
    kind, commands = struct.unpack_from("<I8xI", data, 4)
    cpu = {0x01000007: "x64", 0x0100000C: "arm64"}.get(kind)
    if not cpu:
        raise Unfit(f"{path}: a processor that no package is for (cputype {kind:#x})")
    at = 32
    for _ in range(commands):
        command, size, first, second = struct.unpack_from("<IIII", data, at)
        if command in (0x32, 0x24):  # LC_BUILD_VERSION has the platform first, LC_VERSION_MIN_MACOSX only the version.
            version = second if command == 0x32 else first
            return Binary(path, "darwin", cpu, (version >> 16, version >> 8 & 0xFF))
        at += size
    raise Unfit(f"{path}: it does not say which macOS it needs")


def _text(data, at):
    return data[at : data.index(b"\0", at)].decode()
