"""The sessions of other agents, as abridged reads them in place, imports them and writes them, judged by what a seed put into them.

    main.py ORACLE [SEEDS] [--clients]

ORACLE is the program of the crate in oracle/. With --clients the written sessions are resumed by the real clients, too, as far as `claude`,
`codex` and `opencode` are on PATH."""

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import broken
import claude_code
import codex
import facts
import gemini_cli
import opencode
import oracles
from clients import Clients, Silent
from daemon import PROGRAM, Daemon, Refused

TARGETS = ("claude-code", "codex", "pi", "opencode")
# The forms in which session-migrate gets a session: a database is none of them, and neither is Gemini CLI's.
MIGRATED = (claude_code.Session, codex.Session, opencode.Exported)


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


def check_reading(daemon, session, failures):
    """Read in place: the active path in its order, all branches, and the same ids each time."""
    kind = f"{session.agent}, read"
    try:
        first, again = daemon.read(session.path), daemon.read(session.path)
        path, all = facts.of_entries(first["entries"], first["leaf"])
    except (Refused, AssertionError) as error:
        return failures.expect(False, kind, f"{session.path}: {error}")
    truth = session.truth
    failures.expect(path == truth.path, f"{kind}, path", f"{session.path}: {facts.difference(path, truth.path)}")
    branches, true_branches = sorted(map(str, all)), sorted(map(str, truth.all))
    failures.expect(branches == true_branches, f"{kind}, branches", f"{session.path}: {facts.difference(branches, true_branches)}")
    failures.expect(first["session"].get("title") == session.title, f"{kind}, title", f"{session.path}: {first['session'].get('title')}")
    failures.expect([entry["id"] for entry in first["entries"]] == [entry["id"] for entry in again["entries"]], f"{kind}, ids", session.path)


def check_oracles(reader, session, failures):
    """Two other readers find in the file the facts that the seed put into it."""
    differs = oracles.agent_sessions_differs(reader, session)
    failures.expect(not differs, f"{session.agent}, agent-sessions", f"{session.path}: {differs}")
    if isinstance(session, MIGRATED):
        differs = oracles.session_migrate_differs(session)
        failures.expect(not differs, f"{session.agent}, session-migrate", f"{session.path}: {differs}")


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
    command = [PROGRAM, "sessions", "--all", "--json", "--limit", "10000"]
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


def check_writing(daemon, reader, clients, home, session, failures):
    """Each agent's form of the context holds the same texts, calls and results."""
    try:
        context = daemon.read(session.path)["context"]["messages"]
    except Refused:
        # The check of reading has said so.
        return
    for target in TARGETS:
        kind = f"{session.agent}, written for {target}"
        command = [PROGRAM, "continue", session.path, "--in", target, "--json", "--cwd", home]
        answer = subprocess.run(command, env=homes(home / "written"), capture_output=True, text=True)
        if answer.returncode:
            failures.expect(False, kind, answer.stderr)
            continue
        answer = json.loads(answer.stdout)
        path = answer["path"]
        back = daemon.read(path)
        want, got = (written_facts(facts.of_messages(messages), target) for messages in (context, back["context"]["messages"]))
        failures.expect(got == want, kind, f"{session.path} {path}: {facts.difference(got, want)}")
        check_written(reader, target, path, back, want, kind, failures)
        if clients and target in clients.programs:
            differs = client_differs(daemon, clients, target, answer["sessionId"], path, home, want)
            failures.expect(not differs, f"{kind}, client", f"{session.path} {path}: {differs}")


def client_differs(daemon, clients, target, session, path, home, want):
    """The difference between the context that was written and that of the real client, if there is one."""
    env = homes(home / "written")
    try:
        if target != "opencode":
            want = list(oracles.comparable(want))
            asked = oracles.comparable(written_facts(clients.resumed(target, session, env, home), target))
            # A client adds texts of its own.
            got = [fact for fact in asked if fact in want]
        else:
            clients.run(target, ["import", path], env, home)
            imported = json.loads(Path(path).read_text())["info"]["id"]
            back = daemon.read(home / f"written/.local/share/opencode/opencode.db#{imported}")
            got = written_facts(facts.of_messages(back["context"]["messages"]), target)
    except (Silent, Refused) as error:
        return str(error)
    return None if got == want else facts.difference(got, want)


def check_written(reader, target, path, back, want, kind, failures):
    """The other readers find the same facts in a written file."""
    active, all = facts.of_entries(back["entries"], back["leaf"])
    for name, read in (("agent-sessions", reader.facts), ("session-migrate", oracles.session_migrate)):
        if target == "pi":
            # The whole session, not only its context.
            want = written_facts(all if name == "agent-sessions" else active, target)
        if name == "session-migrate":
            if any(fact[0] == "developer" for fact in want):
                # It refuses pi's role for them.
                continue
            want = [fact for fact in want if fact[0] != "note"]
        try:
            got = list(oracles.comparable(written_facts(read(target.replace("-", "_"), path), target)))
        except oracles.Unread as error:
            got = str(error)
        expected = list(oracles.comparable(want, note="compaction"))
        failures.expect(got == expected, f"{kind}, {name}", f"{path}: {facts.difference(got, expected)}")


def written_facts(read, target):
    """The facts that a form can hold: no thinking and no counts."""
    read = [fact for fact in read if fact[0] not in ("thought", "usage")]
    written = [written_fact(fact, after, target) for fact, after in zip(read, [*read[1:], ("end",)])]
    # In OpenCode's form a call and its result are one part, with the images.
    return oracles.results_last(written) if target == "opencode" else written


def written_fact(fact, after, target):
    match fact:
        case ("developer", text) if target != "pi":
            # The context of another form has their texts as the user's.
            return "user", text
        case ("user", text):
            # A summary names the file of its session.
            return "user", re.sub("The whole conversation is in .*", "", text)
        case ("call", id, *rest):
            # In pi's form the id of an item stands after that of its call.
            return "call", id.split("|")[0], *rest
        case ("result", id, text, is_error):
            # Outputs of Codex do not say whether the call failed, and neither do those of OpenCode that have an image.
            is_silent = target == "codex" or target == "opencode" and after[0] == "image"
            # Claude Code takes no empty output, and gets this one in its place.
            return "result", id.split("|")[0], text if text != "(empty)" else "", is_error and not is_silent
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


def main(oracle, seeds, with_clients):
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder, oracles.AgentSessions(oracle) as reader:
        folder = Path(folder)
        home = folder / "home"
        written = list(sessions(home, seeds))
        before = files(home)
        with Daemon(folder, seconds=30) as daemon:
            for session in written:
                check_reading(daemon, session, failures)
                check_refusal(daemon, session, failures)
                check_import(daemon, session, failures)
            with Clients(folder / "written") if with_clients else nullcontext() as clients:
                for session in random.Random(0).sample(written, 2 * seeds):
                    check_writing(daemon, reader, clients, folder, session, failures)
            check_broken(daemon, folder / "broken", 10 * seeds, failures)
        check_list(home, written, failures)
        after = files(home)
        changed = [str(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        failures.expect(not changed, "originals", changed[:3])
        # The other readers come last: they leave files beside a database.
        for session in written:
            check_oracles(reader, session, failures)
    if failures.counts:
        sys.exit("\n".join(f"importers: {count} of: {kind}" for kind, count in failures.counts.items()))
    resumed = f", written ones as {', '.join(clients.programs)} resume them" if clients else ""
    print(f"importers: ok, {len(written)} sessions of four agents as two other readers read them{resumed}, and {10 * seeds} broken files")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("oracle", help="the program of the crate in oracle/")
    parser.add_argument("seeds", nargs="?", type=int, default=12)
    parser.add_argument("--clients", action="store_true", help="resume what is written with claude, codex and opencode")
    given = parser.parse_args()
    main(given.oracle, given.seeds, given.clients)
