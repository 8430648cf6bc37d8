"""The licences of the crates that are linked into the binary."""

import collections
import json
import pathlib

# How the names of files with terms begin, in capitals.
TERMS = ("LICENSE", "LICENCE", "COPYING", "UNLICENSE")
NOTICES = ("COPYRIGHT", "NOTICE")
LINE = "-" * 100


def third_party(metadata):
    """The licences as one text, from the output of `cargo metadata` for a target. Equal texts stand there once."""
    metadata = json.loads(metadata)
    crates = collections.defaultdict(list)
    for package in sorted(_linked(metadata), key=lambda package: (package["name"], package["version"])):
        for text in _texts(package):
            crates[text].append(f"{package['name']} {package['version']} ({package['license']})")
    parts = [f"{LINE}\n{chr(10).join(names)}\n{LINE}\n\n{text}\n" for text, names in crates.items()]
    return "\n".join(["abridged contains these crates, under the licences below their names.\n", *parts])


def _linked(metadata):
    """The packages that the binary contains: dependencies at run time, and no macros, which run in the compiler."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    found, todo = set(), [root]
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            crate = dependency["pkg"]
            runs = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[crate]["targets"])
            if runs and not is_macro and crate not in found:
                found.add(crate)
                todo.append(crate)
    return [packages[crate] for crate in found]


def _texts(package):
    """The texts that have to go with a crate. Of a choice that has MIT, the terms of MIT are enough."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = {file.name.upper(): file for file in sorted(folder.iterdir()) if file.is_file()}
    terms = [name for name in files if name.startswith(TERMS)]
    mit = [name for name in terms if name.startswith("LICENSE-MIT")]
    if mit and " AND " not in package["license"]:
        terms = mit
    notices = [name for name in files if name.startswith(NOTICES)]
    texts = [files[name].read_text(encoding="utf-8").strip() for name in terms + notices]
    return texts or [f"Written by {', '.join(package['authors'])}. The crate has no file with the terms of its licence."]
