"""The wheels of PyPI: one without a binary, for platforms that have none, and one that carries the binary."""

import os
import sys

from shell import fail, run, staged


def pack(release):
    with staged() as tree:
        client = tree / "clients/python"
        _build(client, release, "any", {})
        for name, data in release.licences.items():
            (client / name).write_bytes(data)
        # Between machines a binary may have lost its permission to be executed, and the wheel keeps that of the file.
        program = tree / "abridged"
        program.write_bytes(release.binary.path.read_bytes())
        program.chmod(0o755)
        platform = release.binary.wheel_platform
        _build(client, release, platform, {"ABRIDGED_CARRY": str(program), "ABRIDGED_PLATFORM": platform})


def _build(client, release, platform, variables):
    """Builds a wheel. The variables are those of clients/python/hatch_build.py."""
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(release.seconds), **variables}
    run(*command, "--wheel-dir", release.out, client, env=environment)
    expected = f"abridged-{release.version}-py3-none-{platform}.whl"
    if not (release.out / expected).is_file():
        fail(f"clients/python does not make {expected}")
