#!/usr/bin/env python3
"""Makes models.json from the model data of the npm package @earendil-works/pi-ai.

    data/update.py                           downloads the version named below with `npm pack`
    data/update.py path/to/package           takes a package that is unpacked already
    data/update.py --prices path/to/package  takes the prices alone, for the models that are in the file

Only numbers are taken, so the same package gives the same file, byte for byte. Prices are dollars per million tokens.
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


def cost_of(model):
    """The prices of a model, where it has any. A cache price of 0 is unknown, or is not billed apart."""
    prices = model["cost"]
    known = {name: prices[name] for name in ["input", "output", "cacheRead", "cacheWrite"] if prices[name] > 0}
    return {"cost": known} if "input" in known and "output" in known else {}


def models_of(package, provider):
    """The entries of a provider."""
    by_api = json.loads((package / "dist/providers/data" / f"{provider}.json").read_text("utf-8"))
    return [model for models in by_api.values() for model in models.values()]


def rows_of(package, provider):
    """The models of a provider that answer in text."""
    rows = {}
    for model in models_of(package, provider):
        # Older versions of the package list chat models only, without a type.
        if model.get("type", "chat") != "chat" or "text" not in model.get("output", ["text"]):
            continue
        rows[model["id"]] = {
            "provider": provider,
            "id": model["id"],
            "window": model["contextWindow"],
            "output": output_of(model),
            "reasoning": model["reasoning"],
            "images": "image" in model["input"],
            **cost_of(model),
        }

    def limits(row):
        return {name: value for name, value in row.items() if name not in ("id", "cost")}

    def is_news(row):
        """A variant ("model:batch") is looked up without its ending; it stays where its limits would be wrong. A price
        is never looked up so."""
        plain = rows.get(row["id"].rsplit(":", 1)[0], row)
        return plain is row or limits(plain) != limits(row)

    return [row for row in rows.values() if is_news(row)]


def about(package):
    manifest = json.loads((package / "package.json").read_text("utf-8"))
    return f"npm package {manifest['name']} {manifest['version']} ({manifest['license']}), dist/providers/data"


def add_prices(package, file):
    """Replaces the prices in the file. A model that the package does not have is left without one."""
    old = json.loads(file.read_text("utf-8"))
    prices = {(provider, model["id"]): cost_of(model) for provider in PROVIDERS for model in models_of(package, provider)}
    for row in old["models"]:
        row.pop("cost", None)
        row.update(prices.get((row["provider"], row["id"]), {}))
    limits = old["source"].split("; ")[0]
    write(f"{limits}; prices: {about(package)}; by data/update.py", old["models"], file)


def update(package, file):
    rows = [row for provider in PROVIDERS for row in rows_of(package, provider)]
    rows.sort(key=lambda row: (row["provider"], row["id"]))
    write(f"{about(package)}; by data/update.py", rows, file)


def write(source, rows, file):
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    text = f'{{"source":{json.dumps(source)},"models":[\n{lines}\n]}}\n'
    file.write_text(text, "utf-8", newline="\n")
    print(f"{len(rows)} models, {len(text.encode())} bytes")


def main():
    file = pathlib.Path(__file__).with_name("models.json")
    match sys.argv[1:]:
        case ["--prices", package]:
            add_prices(pathlib.Path(package), file)
        case [package]:
            update(pathlib.Path(package), file)
        case _:
            with tempfile.TemporaryDirectory() as folder:
                update(downloaded(pathlib.Path(folder)), file)


if __name__ == "__main__":
    main()
