"""The sessions of other agents, as abridged reads them in place, imports them and writes them, judged by what a seed put into them.

    main.py ORACLE [SEEDS]

ORACLE is the program of the crate in oracle/."""

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import broken
import claude_code
import codex
import facts
import gemini_cli
import opencode
from daemon import Daemon, Refused

TARGETS = ("claude-code", "codex", "pi", "opencode")


class Failures:
    """The first failures of each kind are shown, and all are counted."""

    def __init__(self):
        self.counts = Counter()

    def expect(self, holds, kind, said):
        if not holds:
            self.counts[kind] += 1
            if self.counts[kind] <= 3:
                print(f"{kind}: {said}", file=sys.stderr)


def homes(home):
    """The environment of programs whose agents have their folders below `home`."""
    named = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR")
    rest = {name: value for name, value in os.environ.items() if name not in named}
    return {**rest, "HOME": str(home), "ABRIDGED_DATA_DIR": str(home / "data"), "ABRIDGED_CONFIG_DIR": str(home / "config")}


def sessions(home, seeds):
    """Sessions of all agents, in their own folders."""
    stored = []
    for seed in range(seeds):
        yield claude_code.Session(seed, home / ".claude")
        yield codex.Session(seed, home / ".codex")
        yield gemini_cli.Session(seed, home / ".gemini")
        yield opencode.Exported(seed, home / "exports")
        stored.append(opencode.Session(f"{seed}-stored"))
    children = [opencode.Session(f"{stored[0].id}-child", stored[0].id)]
    opencode.database(home / ".local/share/opencode/opencode.db", stored + children)
    yield from stored


def files(home):
    """The content of each file."""
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in home.rglob("*") if path.is_file()}


def difference(ours, truth):
    """The first place in which two sequences differ."""
    at = next((at for at, (a, b) in enumerate(zip(ours, truth)) if a != b), min(len(ours), len(truth)))
    return f"at {at} of {len(ours)} and {len(truth)}: {str(ours[at:at + 2])[:200]} in the place of {str(truth[at:at + 2])[:200]}"


def check_reading(daemon, session, failures):
    """Read in place: the active path in its order, all branches, and the same ids each time."""
    kind = f"{session.agent}, read"
    try:
        first, again = daemon.read(session.path), daemon.read(session.path)
        path, all = facts.of_entries(first["entries"], first["leaf"])
    except (Refused, AssertionError) as error:
        return failures.expect(False, kind, f"{session.path}: {error}")
    truth = session.truth
    failures.expect(path == truth.path, f"{kind}, path", f"{session.path}: {difference(path, truth.path)}")
    failures.expect(Counter(all) == Counter(truth.all), f"{kind}, branches", f"{session.path}: {difference(sorted(map(str, all)), sorted(map(str, truth.all)))}")
    failures.expect(first["session"].get("title") == session.title, f"{kind}, title", f"{session.path}: {first['session'].get('title')}")
    failures.expect([entry["id"] for entry in first["entries"]] == [entry["id"] for entry in again["entries"]], f"{kind}, ids", session.path)


def check_refusal(daemon, session, failures):
    """Without readOnly a session of another agent is refused, with the call that makes one of it."""
    try:
        daemon.call("session/load", path=str(session.path))
    except Refused as error:
        failures.expect("session/import" in error.message and error.code == "invalid_params", "refusal", error)
    else:
        failures.expect(False, "refusal", f"{session.path} is loaded")


def check_import(daemon, session, failures):
    """An import has the entries of the original."""
    kind = f"{session.agent}, import"
    try:
        imported = daemon.call("session/import", path=str(session.path))["session"]["sessionId"]
        path, all = facts.of_entries(*daemon.entries(imported))
        daemon.call("session/close", sessionId=imported)
    except (Refused, AssertionError) as error:
        return failures.expect(False, kind, f"{session.path}: {error}")
    failures.expect(path == session.truth.path and Counter(all) == Counter(session.truth.all), kind, session.path)


def check_list(home, written, failures):
    """`sessions --all` lists each session once, with its folder and its title."""
    command = [os.environ["ABRIDGED_BIN"], "sessions", "--all", "--json", "--limit", "10000"]
    answer = subprocess.run(command, env=homes(home), capture_output=True, text=True, check=True)
    listed = json.loads(answer.stdout)["sessions"]
    by_id = Counter(session["sessionId"] for session in listed)
    known = {session["path"]: session for session in listed}
    for session in written:
        if isinstance(session, opencode.Exported):
            # An export may lie anywhere.
            continue
        row = known.get(str(session.path))
        failures.expect(row is not None, f"{session.agent}, listed", session.path)
        if row:
            title = " ".join(session.title.split()) if session.title else row["title"]
            failures.expect((row["sessionId"], row["cwd"], row["title"]) == (session.id, session.cwd, title), f"{session.agent}, listed", f"{row}")
            failures.expect(by_id[session.id] == 1, f"{session.agent}, listed once", session.path)


def check_writing(daemon, home, session, failures):
    """Each agent's form of the context holds the same texts, calls and results."""
    try:
        context = daemon.read(session.path)["context"]["messages"]
    except Refused:
        return
    for target in TARGETS:
        command = [os.environ["ABRIDGED_BIN"], "continue", session.path, "--in", target, "--json", "--cwd", home]
        answer = subprocess.run(command, env=homes(home / "written"), capture_output=True, text=True)
        kind = f"{session.agent}, written for {target}"
        if answer.returncode:
            failures.expect(False, kind, answer.stderr)
            continue
        path = json.loads(answer.stdout)["path"]
        want = written_facts(context, target)
        got = written_facts(daemon.read(path)["context"]["messages"], target)
        if target == "opencode":
            # A call and its result are one part: the results have the order of the calls.
            want, got = sorted(want), sorted(got)
        failures.expect(got == want, kind, f"{session.path} {path}: {difference(got, want)}")


def written_facts(messages, target):
    """The facts that a form can hold: no thinking and no counts, and no role for developers."""
    all = [fact for message in messages for fact in facts.of_message(message) if fact[0] not in ("thought", "usage")]
    return [written_fact(fact, target) for fact in all]


def written_fact(fact, target):
    match fact:
        case ("developer" | "user", text):
            # A summary names the file of its session.
            return "user", re.sub("The whole conversation is in .*", "", text)
        case ("result", call, text, is_error):
            # Outputs of Codex do not say whether the call failed, and Claude Code takes no empty one.
            return "result", call, text or ("(empty)" if target == "claude-code" else ""), is_error and target != "codex"
    return fact


def check_broken(daemon, home, seeds, failures):
    """Broken files are answered or refused, within the daemon's time."""
    for seed in range(seeds):
        path = broken.write(seed, home)
        try:
            daemon.read(path)
            daemon.call("session/import", path=str(path))
        except Refused as error:
            failures.expect(error.code == "invalid_params", "broken", f"{path}: {error}")


def main(seeds):
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        home = folder / "home"
        written = list(sessions(home, seeds))
        before = files(home)
        with Daemon(folder, seconds=30) as daemon:
            for session in written:
                check_reading(daemon, session, failures)
                check_refusal(daemon, session, failures)
                check_import(daemon, session, failures)
            for session in random.Random(0).sample(written, min(len(written), 2 * seeds)):
                check_writing(daemon, folder, session, failures)
            check_broken(daemon, folder / "broken", 10 * seeds, failures)
        check_list(home, written, failures)
        after = files(home)
        changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        failures.expect(not changed, "originals", changed[:3])
    if failures.counts:
        sys.exit("\n".join(f"importers: {count} of: {kind}" for kind, count in failures.counts.items()))
    print(f"importers: ok, {len(written)} sessions of four agents, and {10 * seeds} broken files")


if __name__ == "__main__":
    main(int(sys.argv[2]) if len(sys.argv) > 2 else 20)
