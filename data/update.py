#!/usr/bin/env python3
"""Makes models.json from the model data of the npm package @earendil-works/pi-ai.

    data/update.py                  downloads the version named below with `npm pack`
    data/update.py path/to/package  takes a package that is unpacked already

Only numbers are taken, so the same package gives the same file, byte for byte.
"""

import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

PACKAGE = "@earendil-works/pi-ai"
VERSION = "1.5.2"

# Those with one address for everybody. What needs an account, a region or a login in its address is left out.
PROVIDERS = [
    "ant-ling",
    "anthropic",
    "baseten",
    "cerebras",
    "deepseek",
    "fireworks",
    "google",
    "groq",
    "huggingface",
    "kimi-coding",
    "meta",
    "minimax",
    "minimax-cn",
    "mistral",
    "moonshotai",
    "moonshotai-cn",
    "nvidia",
    "openai",
    "openrouter",
    "together",
    "xai",
    "xiaomi",
    "zai",
    "zai-coding-cn",
]


def downloaded(into):
    """The unpacked package of the version above."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=into, check=True, stdout=subprocess.PIPE, text=True
    )
    with tarfile.open(into / packed.stdout.split()[-1]) as tarball:
        tarball.extractall(into, filter="data")
    return into / "package"


def output_of(model):
    """The most a model answers, where somebody said so."""
    window, output = model["contextWindow"], model["maxTokens"]
    # Nine tenths of the window stand where a provider names no limit; more than the window is a mistake.
    return None if output > window or output == window * 9 // 10 else output


def rows_of(package, provider):
    """The models of a provider that answer in text."""
    by_api = json.loads((package / "dist/providers/data" / f"{provider}.json").read_text("utf-8"))
    rows = {}
    for model in (model for models in by_api.values() for model in models.values()):
        if model["type"] != "chat" or "text" not in model.get("output", ["text"]):
            continue
        rows[model["id"]] = {
            "provider": provider,
            "id": model["id"],
            "window": model["contextWindow"],
            "output": output_of(model),
            "reasoning": model["reasoning"],
            "images": "image" in model["input"],
        }

    def is_news(row):
        """A variant ("model:batch") is looked up without its ending; it stays where that would be wrong."""
        plain = rows.get(row["id"].rsplit(":", 1)[0], row)
        return plain is row or {**plain, "id": row["id"]} != row

    return [row for row in rows.values() if is_news(row)]


def write(package, file):
    about = json.loads((package / "package.json").read_text("utf-8"))
    source = f"npm package {about['name']} {about['version']} ({about['license']}), dist/providers/data; by data/update.py"
    rows = [row for provider in PROVIDERS for row in rows_of(package, provider)]
    rows.sort(key=lambda row: (row["provider"], row["id"]))
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    text = f'{{"source":{json.dumps(source)},"models":[\n{lines}\n]}}\n'
    file.write_text(text, "utf-8", newline="\n")
    print(f"{len(rows)} models, {len(text.encode())} bytes")


def main():
    file = pathlib.Path(__file__).with_name("models.json")
    if len(sys.argv) > 1:
        return write(pathlib.Path(sys.argv[1]), file)
    with tempfile.TemporaryDirectory() as folder:
        write(downloaded(pathlib.Path(folder)), file)


if __name__ == "__main__":
    main()
