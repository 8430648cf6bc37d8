"""The packages of npm: one that carries the binary, and the clients."""

import json

from shell import run, staged


def pack(release):
    with staged() as tree:
        carrier = tree / "carrier"
        _write_carrier(carrier, release)
        _pack(carrier, release.out)
        # The other clients are built with the types of `abridged-client`.
        manifests = (tree / "clients").glob("*/package.json")
        ours = []
        for manifest in sorted(manifests, key=lambda file: (file.parent.name != "typescript", file)):
            _build(manifest, ours)
            ours.append(_pack(manifest.parent, release.out))


def _write_carrier(folder, release):
    binary = release.binary
    name = f"abridged-{binary.os}-{binary.cpu}"
    manifest = {
        "name": name,
        "version": release.version,
        "description": f"The binary of abridged for {binary.os}-{binary.cpu}, which abridged-client starts",
        "license": "MIT OR Apache-2.0",
        "os": [binary.os],
        "cpu": [binary.cpu],
        # A binary that is linked with glibc does not start on Alpine.
        **({"libc": ["glibc"]} if binary.os == "linux" and binary.needs else {}),
        "bin": {"abridged": "bin/abridged"},
        "files": ["bin", *release.licences],
        # Yarn keeps packages zipped, and a program cannot be started from a zip.
        "preferUnplugged": True,
    }
    (folder / "bin").mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (folder / "README.md").write_text(f"# {name}\n\n{manifest['description']}. Install `abridged-client`, which depends on it.\n")
    for file, data in release.licences.items():
        (folder / file).write_bytes(data)
    program = folder / "bin/abridged"
    program.write_bytes(binary.path.read_bytes())
    program.chmod(0o755)


def _build(manifest, ours):
    """Builds a client in the staged tree. Its package has the licences, and nothing that only its build needs."""
    package, folder = json.loads(manifest.read_text()), manifest.parent
    if "build" in package.get("scripts", {}):
        # This version of our packages is not published yet: the client is taken from its archive, and no carrier is needed.
        needed = [archive for name, archive in ours if name in package.get("dependencies", {})]
        _npm(folder, "install", "--no-save", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", *needed)
        _npm(folder, "run", "build")
    package["files"] = sorted({*package["files"], "LICENSE-*"})
    for member in ("scripts", "devDependencies"):
        package.pop(member, None)
    manifest.write_text(json.dumps(package, indent=2) + "\n")


def _pack(folder, out):
    """Packs a folder, and returns the name of the package and its archive."""
    (packed,) = json.loads(_npm(folder, "pack", "--json", "--ignore-scripts", "--pack-destination", out))
    return packed["name"], out / packed["filename"]


def _npm(folder, *arguments):
    return run("npm", *arguments, "--no-update-notifier", cwd=folder)
