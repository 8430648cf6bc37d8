"""The packages of a release: made from a copy of the tree, installed into empty folders, and used without any other binary.

The environment has the daemon in ABRIDGED_BIN. npm and pip get the tools that build the clients.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
NODE = shutil.which("node")


def run(*command, cwd, fails=False, **options):
    """Runs a program, which has to succeed or to fail, and returns both of its streams."""
    command = [str(part) for part in command]
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert (done.returncode != 0) == fails, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        binary = stripped(home)
        tree = copied(home / "tree")
        first, second = home / "first", home / "second"
        run(tree / "packaging/release", "--binary", binary, "--out", first, cwd=home)

        files = sums(first)
        equal_bytes(home, tree, binary, first, second)
        archive(home, first, binary)
        npm(home, first)
        wheel(home, first, binary)
        headers(tree)
        refusals(tree, binary, home)
        places = versions(tree)
        print(f"packages: ok, {len(files)} files twice with equal bytes, installed and used, {places} files with the version")


def stripped(home):
    """The binary without symbols, where `strip` is there: a debug build is several times as large, and is packed six times."""
    program = home / "built"
    if sys.platform == "linux" and shutil.which("strip"):
        run("strip", "-o", program, os.environ["ABRIDGED_BIN"], cwd=home)
    else:
        shutil.copy(os.environ["ABRIDGED_BIN"], program)
    return program


def copied(tree):
    """A copy of the tree as one commit, with the changes that it has."""
    for name in run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    run("git", "init", "--quiet", cwd=tree)
    run("git", "add", "--all", cwd=tree)
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")
    run("git", *identity, "commit", "--quiet", "--no-verify", "--message", "A release.", cwd=tree)
    return tree


def sums(out):
    """The files of the release by their names. SHA256SUMS has each of them, with its sum."""
    files = {file.name: file for file in out.iterdir() if file.name not in ("SHA256SUMS", ".gitignore")}
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {name}\n" for name, file in sorted(files.items())]
    assert (out / "SHA256SUMS").read_text() == "".join(lines), (out / "SHA256SUMS").read_text()
    return files


def equal_bytes(home, tree, binary, first, second):
    """A clone in another place and a user with other permissions make the same bytes."""
    run("git", "clone", "--quiet", tree, home / "clone", cwd=home)
    run(home / "clone/packaging/release", "--binary", binary, "--out", second, cwd=home, umask=0o077)
    assert (first / "SHA256SUMS").read_text() == (second / "SHA256SUMS").read_text(), "\n".join(
        ["two runs differ", (first / "SHA256SUMS").read_text(), (second / "SHA256SUMS").read_text()]
    )
    # Packages of several machines get their sums anew.
    (second / "SHA256SUMS").unlink()
    run(home / "clone/packaging/release", "--sums", "--out", second, cwd=home)
    sums(second)
    # By default the packages are in the tree, and leave it clean.
    run(home / "clone/packaging/release", "--binary", binary, "--only", "crate", cwd=home)
    assert (home / "clone/dist/SHA256SUMS").is_file()
    assert run("git", "status", "--porcelain", cwd=home / "clone") == ""


def archive(home, out, binary):
    (path,) = out.glob("*.tar.gz")
    with tarfile.open(path) as packed:
        packed.extractall(home, filter="data")
    folder = home / path.name.removesuffix(".tar.gz")
    assert (folder / "abridged").read_bytes() == binary.read_bytes()
    says = run(folder / "abridged", "--version", cwd=home)
    assert folder.name.startswith(f"abridged-{says.split()[1]}-"), (folder.name, says)
    pages = {page.name for page in (folder / "man1").iterdir()}
    assert {"abridged.1", "abridged-serve.1", "abridged-tree.1"} <= pages, pages
    if shutil.which("man"):
        shown = run("man", "-l", folder / "man1/abridged-serve.1", cwd=home, env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"})
        assert "abridged-serve" in shown and "--framing" in shown, shown
    run("bash", "-c", f'. "{folder}/completions/abridged.bash" && complete -p abridged', cwd=home)
    assert len(list((folder / "completions").iterdir())) == 5
    third_party = (folder / "LICENSE-THIRD-PARTY").read_text()
    assert "tokio 1." in third_party and "pi-ai" in third_party
    assert (folder / "LICENSE-MIT").is_file() and (folder / "LICENSE-APACHE").is_file() and (folder / "README.md").is_file()


def alone(home):
    """An environment in which no binary can be found but the one of a package."""
    data = {"ABRIDGED_DATA_DIR": f"{home}/data", "ABRIDGED_CONFIG_DIR": f"{home}/config"}
    return {"PATH": "", "HOME": str(home / "nobody"), "TMPDIR": str(home), **data}


def starts_the_carried_one(home, carried, *client, cwd):
    """The client makes a session with the binary of its package, and finds none when that one is away."""
    session = pathlib.Path(run(*client, cwd=cwd, env=alone(home)).strip())
    assert session.is_file() and session.is_relative_to(home / "data"), session
    carried.rename(carried.with_name("away"))
    said = run(*client, cwd=cwd, env=alone(home), fails=True)
    assert "BinaryNotFound" in said and "cargo install abridged" in said, said
    carried.with_name("away").rename(carried)


def entries(manifest):
    """The files of a package of npm that its users load."""
    todo, found = [manifest.get(member) for member in ("main", "exports", "bin")] + manifest.get("pi", {}).get("extensions", []), []
    while todo:
        match todo.pop():
            case str(name):
                found.append(name)
            case dict(members):
                todo += members.values()
    return found


def npm(home, out):
    folder = home / "npm"
    folder.mkdir()
    options = ("--offline", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund")
    run("npm", "install", *options, *out.glob("*.tgz"), cwd=folder)
    (carrier,) = folder.glob("node_modules/abridged-*-*")
    manifest = json.loads((carrier / "package.json").read_text())
    assert (manifest["os"], manifest["cpu"]) == ([sys.platform], [carrier.name.split("-")[2]]), manifest
    assert run(folder / "node_modules/.bin/abridged", "--version", cwd=folder).startswith("abridged ")
    for package in folder.glob("node_modules/abridged-*"):
        assert (package / "LICENSE-MIT").is_file(), package
        manifest = json.loads((package / "package.json").read_text())
        assert "scripts" not in manifest and "devDependencies" not in manifest, manifest
        missing = [name for name in entries(manifest) if not (package / name).is_file()]
        assert not missing, (package, missing)
    assert {"abridged-client", "abridged-pi", "abridged-opencode"} <= {package.name for package in folder.glob("node_modules/*")}
    shutil.copy(HERE / "client.mjs", folder)
    starts_the_carried_one(home, carrier / "bin/abridged", NODE, "client.mjs", cwd=folder)


def wheel(home, out, binary):
    folder = home / "venv"
    venv.create(folder, with_pip=True)
    # The platform of the wheel names the newest version of glibc among the symbols, and pip takes the wheel on this machine.
    (path,) = set(out.glob("*.whl")) - set(out.glob("*-any.whl"))
    if sys.platform == "linux":
        found = {(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", binary.read_bytes())}
        major, minor = max(found, default=(2, 17))
        assert f"-manylinux_{major}_{minor}_" in path.name, (path.name, max(found))
    pip = (folder / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--no-deps")
    run(*pip, "--find-links", out, "abridged", cwd=home)
    (carried,) = folder.glob("lib/python*/site-packages/abridged/bin/abridged")
    (licences,) = folder.glob("lib/python*/site-packages/abridged-*.dist-info/licenses")
    assert {file.name for file in licences.iterdir()} == {"LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY"}
    starts_the_carried_one(home, carried, folder / "bin/python", HERE / "client.py", cwd=home)
    # The wheel for all platforms has the client alone.
    run(*pip, "--force-reinstall", *out.glob("*-any.whl"), cwd=home)
    assert not carried.exists()


def headers(tree):
    """Binaries of other targets, by their headers alone."""
    sys.path.insert(0, str(tree / "packaging"))
    sys.dont_write_bytecode = True
    import binary as binaries

    def mach_o(cpu, command, first, second):
        return struct.pack("<14I", 0xFEEDFACF, cpu, 0, 2, 1, 24, 0, 0, command, 24, first, second, 0, 0)

    def elf(machine, interpreter):
        ident = struct.pack("<4s5B7x", b"\x7fELF", 2, 1, 1, 0, 0)
        rest = struct.pack("<HHI3QI6H", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1 if interpreter else 0, 64, 0, 0)
        return ident + rest + struct.pack("<IIQ40x", 3, 4, 120) + interpreter

    expected = [
        (mach_o(0x0100000C, 0x32, 1, 11 << 16), "aarch64-apple-darwin", "macosx_11_0_arm64"),
        (mach_o(0x0100000C, 0x32, 1, 11 << 16 | 3 << 8), "aarch64-apple-darwin", "macosx_12_0_arm64"),
        (mach_o(0x01000007, 0x24, 10 << 16 | 12 << 8, 0), "x86_64-apple-darwin", "macosx_10_12_x86_64"),
        (elf(183, b""), "aarch64-unknown-linux-musl", "manylinux_2_17_aarch64.musllinux_1_1_aarch64"),
        (elf(62, b""), "x86_64-unknown-linux-musl", "manylinux_2_17_x86_64.musllinux_1_1_x86_64"),
    ]
    file = tree.parent / "headers"
    for data, target, platform in expected:
        file.write_bytes(data)
        read = binaries.read(file)
        assert (read.target, read.wheel_platform) == (target, platform), (read.target, read.wheel_platform)
    unfit = [
        (elf(62, b"/lib/ld-musl-x86_64.so.1\0"), "ld-musl"),
        (elf(243, b""), "processor"),
        (mach_o(7, 0x32, 1, 11 << 16), "processor"),
        (mach_o(0x0100000C, 0x1B, 0, 0), "which macOS"),
        (elf(62, b"")[:40], "damaged"),
        (b"#!/bin/sh\n", "neither ELF nor Mach-O"),
    ]
    for data, reason in unfit:
        file.write_bytes(data)
        try:
            raise AssertionError(binaries.read(file))
        except binaries.Unfit as error:
            assert reason in str(error), error


def refusals(tree, binary, home):
    release = (tree / "packaging/release", "--out", home / "refused")
    (tree / "note").write_text("not committed")
    assert "?? note" in run(*release, "--binary", binary, cwd=tree, fails=True)
    run(*release, "--binary", binary, "--only", "crate", "--allow-dirty", cwd=tree)
    (tree / "note").unlink()
    (home / "other").write_bytes(struct.pack("<14I", 0xFEEDFACF, 7 | 1 << 24, 0, 2, 1, 24, 0, 0, 0x32, 24, 1, 11 << 16, 0, 0))
    assert "give --native" in run(*release, "--binary", home / "other", cwd=tree, fails=True)
    assert "neither ELF nor Mach-O" in run(*release, "--binary", tree / "README.md", cwd=tree, fails=True)
    # A crate without a file that is compiled into it, and one with a folder that nobody needs.
    manifest = tree / "Cargo.toml"
    text = manifest.read_text()
    for old, new, said in (('"/prompts",', "", "prompts/handoff-document.md"), ('"/src",', '"/src", "/tests/corpora",', "tests/corpora/")):
        manifest.write_text(text.replace(old, new, 1))
        assert said in run(*release, "--binary", binary, "--only", "crate", "--allow-dirty", cwd=tree, fails=True)
    manifest.write_text(text)


def versions(tree):
    """A new version reaches all files, and a file with another one is found. Returns the number of files."""
    version = tree / "packaging/version"
    old = re.search(r'^version = "(.*)"', (tree / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert run(version, "--check", cwd=tree) == ""
    run(version, "9.8.7", cwd=tree)
    assert run(version, "--check", cwd=tree) == ""
    changed = run("git", "diff", "--name-only", cwd=tree).split()
    assert {"Cargo.toml", "Cargo.lock", "clients/typescript/package.json"} <= set(changed), changed
    left = run("git", "grep", "-nF", f'"{old}"', "--", "clients", cwd=tree, fails=True)
    assert left == "", left

    release = (tree / "packaging/release", "--allow-dirty", "--out", tree.parent / "new", "--binary", tree.parent / "built")
    assert f"is abridged {old}, and Cargo.toml has 9.8.7" in run(*release, cwd=tree, fails=True)
    # Cargo takes the lock file as it is.
    run(*release, "--allow-mismatch", "--only", "tar", cwd=tree)
    assert list((tree.parent / "new").glob("abridged-9.8.7-*.tar.gz"))

    for name in changed:
        if name != "Cargo.toml":
            run("git", "checkout", "--quiet", "--", name, cwd=tree)
            assert f"{name}:" in run(version, "--check", cwd=tree, fails=True), name
            assert "run packaging/version" in run(*release, cwd=tree, fails=True), name
            run(version, cwd=tree)
            assert run(version, "--check", cwd=tree) == "", name
    assert set(run("git", "diff", "--name-only", cwd=tree).split()) == set(changed)
    return len(changed)


if __name__ == "__main__":
    main()
