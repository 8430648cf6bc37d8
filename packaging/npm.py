"""The packages of npm: one that carries the binary, and the clients."""

import json

from shell import fail, run, staged


def pack(binary, version, members, out):
    """Packs the carrier of the binary, with the members beside it, and each client."""
    with staged() as tree:
        carrier = tree / "carrier"
        _write_carrier(carrier, binary, version, members)
        _pack(carrier, out)
        # The other clients are built with the types of `abridged-client`.
        manifests = (tree / "clients").glob("*/package.json")
        for manifest in sorted(manifests, key=lambda file: (file.parent.name != "typescript", file)):
            _build(manifest)
            _pack(manifest.parent, out)


def _write_carrier(folder, binary, version, members):
    name = f"abridged-{binary.os}-{binary.cpu}"
    manifest = {
        "name": name,
        "version": version,
        "description": f"The binary of abridged for {binary.os}-{binary.cpu}, which abridged-client starts",
        "license": "MIT OR Apache-2.0",
        "os": [binary.os],
        "cpu": [binary.cpu],
        # A binary that is linked with glibc does not start on Alpine.
        **({"libc": ["glibc"]} if binary.os == "linux" and binary.needs else {}),
        "bin": {"abridged": "bin/abridged"},
        "files": ["bin", *(member.name for member in members)],
        # Yarn keeps packages zipped, and a program cannot be started from a zip.
        "preferUnplugged": True,
    }
    (folder / "bin").mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (folder / "README.md").write_text(f"# {name}\n\n{manifest['description']}. Install `abridged-client`, which depends on it.\n")
    (folder / "bin/abridged").write_bytes(binary.path.read_bytes())
    (folder / "bin/abridged").chmod(0o755)
    for member in members:
        (folder / member.name).write_bytes(member.data)


def _build(manifest):
    """Builds a client in the staged tree, and lists the licences among its files."""
    package, folder = json.loads(manifest.read_text()), manifest.parent
    if "build" in package.get("scripts", {}):
        install = "ci" if (folder / "package-lock.json").exists() else "install"
        # The carriers are optional, and this version of them is not published yet.
        _npm(folder, install, "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
        _npm(folder, "run", "build")
    package["files"] = [*package.get("files", []), "LICENSE-*"]
    manifest.write_text(json.dumps(package, indent=2) + "\n")


def _pack(folder, out):
    (packed,) = json.loads(_npm(folder, "pack", "--json", "--ignore-scripts", "--pack-destination", out))
    if not (out / packed["filename"]).is_file():
        fail(f"npm pack does not make {packed['filename']}")


def _npm(folder, *arguments):
    return run("npm", *arguments, "--no-update-notifier", cwd=folder)
