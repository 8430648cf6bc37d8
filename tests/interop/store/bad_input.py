"""Odd texts, another tenant, lines of 64 MB, a full disk and clocks that are off."""

import json
import os
import subprocess
import time
from pathlib import Path

from daemon import Refused, message, run, text_of
from history import History, check_opened, check_rows, lines_of
from owners import FREE, loads
from server import give
from world import Skipped, expect, until

# Texts that are code to a database, a pattern, a template, or no text at all.
ODD = (
    "'); DROP TABLE abridged.session; --", '"; SELECT pg_sleep(60); --', "$1 %s {0} \\x00 \\' \\\\", "100%_of_it",
    "zero\0inside", "🦀 \u202eright to left",
    "lone \ud800 surrogate", "\ufeffmark\u2028line\u0085next", "tab\tnewline\nreturn\r", "E'\\141' U&'\\0061' $$x$$ ::text",
)


def odd_texts(world):
    """Texts that are code, patterns or no characters, in every field."""
    server = world.server()
    daemon = world.daemon(server.url())
    other = world.daemon(server.url())
    sessions, refusals = {}, []
    for number, text in enumerate(ODD):
        try:
            session = daemon.new(cwd=f"/project/{text}", title=text)
            daemon.append(session, text, f"first {text}", "second")
        except Refused as error:
            expect(error.code in ("invalid_params", "parse_error"), f"{text!r} is refused otherwise: {error}")
            refusals.append(text)
            continue
        found = daemon.call("session/search", sessionId=session, query=text)["matches"]
        # Its title is one of the places.
        expect(len(found) >= 2, f"{text!r} is found {len(found)} times in its session")
        sessions[session] = text
        daemon.close_session(session)
    expect(len(sessions) >= len(ODD) - 2, f"refused: {refusals}")
    for session, text in sessions.items():
        for field in ("search", "cwd"):
            value = text if field == "search" else f"/project/{text}"
            listed = [it["sessionId"] for it in daemon.call("session/list", **{field: value})["sessions"]]
            expect(listed == [session], f"{field} {text!r} lists {listed}")
        file = check_rows(server, session)
        texts = [entry["message"]["content"] for entry in lines_of(file) if entry["type"] == "message"]
        expect(texts == [text, f"first {text}", "second"], f"{text!r} is stored as {texts}")
        other.load(session)
        expect(other.texts(session) == texts, f"{text!r} is read as {other.texts(session)}")
        other.close_session(session)
    for pattern in ("%", "_", "\\"):
        listed = {it["sessionId"] for it in daemon.call("session/list", search=pattern)["sessions"]}
        wanted = {session for session, text in sessions.items() if pattern in text}
        expect(listed == wanted, f"{pattern} finds {[sessions[it] for it in listed]}")
    for id in (*ODD, "", "x" * 100_000, "../../etc/passwd"):
        for method in ("session/load", "session/delete", "session/append"):
            more = {"messages": [message("x")]} if method == "session/append" else {}
            error = daemon.refused(method, sessionId=id, **more)
            expect(error.code in ("not_found", "invalid_params", "parse_error"), f"{method} of {id[:40]!r}: {str(error)[:300]}")
    for cursor in ("1:x", "x", "99999999999999999999:1", "1:'; --"):
        daemon.call("session/list", cursor=cursor)
    expect(len(server.sql("SELECT id FROM abridged.session")) == len(sessions), "sessions are gone or new")
    return f"{len(sessions)} odd texts in folder, title, messages, search and ids ({len(refusals)} refused as no text)"


def tenants(world):
    """The same session id in two schemas of one database, one of which has an odd name."""
    server = world.server()
    urls = [server.url(), server.url(schema="""we"ird'; DROP SCHEMA abridged; --""")]
    first, second = (world.daemon(url) for url in urls)
    odd = '"we""ird\'; DROP SCHEMA abridged; --"'
    session = first.new()
    first.append(session, "one")
    first.close_session(session)
    second.close_session(second.new())
    server.sql(f"""
        INSERT INTO {odd}.session SELECT * FROM abridged.session WHERE id = '{session}';
        INSERT INTO {odd}.line SELECT * FROM abridged.line WHERE session = '{session}';
        INSERT INTO {odd}.passage SELECT * FROM abridged.passage WHERE session = '{session}';""")
    for daemon, text in ((first, "of the first"), (second, "of the second")):
        daemon.load(session)
        daemon.append(session, text)
    expect(first.texts(session) == ["one", "of the first"], f"the first tenant sees {first.texts(session)}")
    expect(second.texts(session) == ["one", "of the second"], f"the second tenant sees {second.texts(session)}")
    # One daemon's cache knows the two apart, too.
    both = world.daemon(urls[0], first.folder)
    both.load(session, readOnly=True)
    expect(both.texts(session) == ["one", "of the first"], "a cache mixes two tenants")
    both.end()
    both = world.daemon(urls[1], first.folder)
    both.load(session, readOnly=True)
    expect(both.texts(session) == ["one", "of the second"], "a cache mixes two tenants")
    second.close_session(session)
    second.call("session/delete", sessionId=session)
    expect(first.texts(session) == ["one", "of the first"], "a tenant deletes the session of another")
    first.append(session, "goes on")
    return "a session id in two schemas is two sessions"


def long_lines(world):
    """The longest message that the daemon takes, and a line of 64 MB that `abridged push` brings."""
    server = world.server()
    daemon, other = world.daemon(server.url()), world.daemon(server.url())
    most = daemon.limits["maxInboundFrameBytes"]
    session = daemon.new()
    text = "long " * ((most - 1_000) // 5)
    begun = time.monotonic()
    daemon.append(session, text, seconds=120)
    took = time.monotonic() - begun
    daemon.append(session, "short")
    daemon.close_session(session)
    other.load(session)
    expect(other.texts(session) == [text, "short"], "the longest message is another one on the other daemon")
    other.close_session(session)
    check_rows(server, session)
    file = world.folder / "long.jsonl"
    begin = {"timestamp": "2026-01-01T00:00:00.000Z"}
    header = {"type": "session", "version": 3, "id": "long", "cwd": "/project", **begin}
    entry = {"type": "message", "id": "0000000a", "parentId": None, "message": message("word " * ((64 << 20) // 5)), **begin}
    file.write_text(json.dumps(header) + "\n" + json.dumps(entry) + "\n")
    begun, place = time.monotonic(), world.place("push")
    done = run(server.url(), place, "push", str(file))
    expect(done.returncode == 0, f"a line of 64 MB is not pushed: {done.stdout} {done.stderr}")
    pushed = time.monotonic() - begun
    back = world.folder / "back.jsonl"
    done = run(server.url(), place, "pull", "long", "--out", str(back))
    expect(done.returncode == 0 and back.read_bytes() == file.read_bytes(), f"a line of 64 MB comes back otherwise: {done.stderr}")
    other.load("long")
    other.append("long", "after it")
    other.close_session("long")
    expect(check_rows(server, "long").startswith(file.read_bytes()), "a line of 64 MB is stored otherwise")
    return f"a message of {most >> 20} MiB in {took:.1f} s; a line of 64 MiB is pushed in {pushed:.1f} s, and pulled byte for byte"


def full_disk(world):
    """The disk of the tables is full: appends are refused and may be tried again, and what is there stays."""
    place = small_disk(world, 24)
    tables = place / "tables"
    tables.mkdir()
    give(tables, 0o700)
    server = world.server()
    server.sql(f"CREATE TABLESPACE small LOCATION '{tables}'")
    server.sql("CREATE DATABASE small TABLESPACE small")
    daemon = world.daemon(server.url(database="small"))
    session, stored, error = fill(daemon, place)
    expect("room" in error.message, f"a full disk of the server: {error}")
    other = world.daemon(server.url(database="small"))
    other.load(session)
    expect(said(other, session) == stored, "the session has other messages after a full disk")
    return f"a disk of the server that is full after {len(stored) - 1} appends refuses the next one, and takes it when it has room"


def full_cache(world):
    """The disk of the cache is full: the same, and nothing of a refused append is in the store."""
    place = small_disk(world, 12)
    server = world.server()
    daemon = world.daemon(server.url(), ABRIDGED_CACHE_DIR=str(place / "cache"))
    session, stored, _ = fill(daemon, place)
    check_rows(server, session)
    other = world.daemon(server.url())
    other.load(session)
    expect(said(other, session) == stored, "the store has other messages than were answered")
    return f"a disk of the cache that is full after {len(stored) - 1} appends refuses the next one, and takes it when it has room"


def small_disk(world, size):
    """A disk of so many MiB."""
    place = world.place("disk")
    place.mkdir()
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", place], capture_output=True).returncode:
        raise Skipped("no small disk can be mounted")
    world.ends.callback(subprocess.run, ["umount", "-l", place])
    place.chmod(0o755)
    return place


def fill(daemon, place):
    """Appends to a new session until the disk at `place` is full, makes room, and appends once more. Returns the session, closed, its
    texts, and the refusal."""
    ballast = place / "ballast"
    ballast.write_bytes(bytes(4 << 20))
    session, stored, error = daemon.new(), [], None
    while not error:
        # The server compresses what repeats itself.
        text = f"{len(stored)} {os.urandom(400_000).hex()}"
        try:
            daemon.append(session, text)
            stored.append(text)
        except Refused as refusal:
            error = refusal
        expect(len(stored) < 60, "the disk is never full")
    expect(error.code == "storage_error" and error.data["retryable"], f"a full disk: {error}")
    expect(said(daemon, session) == stored, "the session has other messages on a full disk")
    daemon.call("session/context", sessionId=session)
    ballast.unlink()
    daemon.append(session, "room again")
    stored.append("room again")
    expect(said(daemon, session) == stored, "the session has other messages when there is room again")
    daemon.close_session(session)
    return session, stored, error


def said(daemon, session):
    """The texts of all messages of a session, compacted ones too."""
    return [text_of(entry["message"]) for entry in daemon.entries(session) if entry["type"] == "message"]


def caches(world):
    """Cache files that are gone, cut off, empty, older or filled with something else: the store is what counts."""
    server = world.server()
    folder = world.place("daemon")
    daemon = world.daemon(server.url(), folder)
    session, texts = daemon.new(), []
    for number in range(50):
        texts.append(f"{number} " + "text " * 100)
        daemon.append(session, texts[-1])
    daemon.close_session(session)
    opened = daemon.load(session)
    daemon.close_session(session)
    file = Path(opened["path"])
    (record,) = (path for path in file.parent.iterdir() if path != file and path.name.endswith(".cache"))
    older = file.read_bytes(), record.read_bytes()
    texts.append("last")
    daemon.load(session)
    daemon.append(session, texts[-1])
    daemon.close_session(session)
    whole = file.read_bytes(), record.read_bytes()
    damages = {
        "gone": (None, whole[1]), "without a record": (whole[0], None), "both gone": (None, None), "cut off": (whole[0][:1_000], whole[1]),
        "empty": (b"", whole[1]), "longer": (whole[0] + b"{}\n", whole[1]), "of zeros": (bytes(len(whole[0])), whole[1]),
        "with a record of nothing": (whole[0], b"{}"), "with a record that is cut off": (whole[0], whole[1][:20]), "older": older,
        "older, with the newer record": (older[0], whole[1]), "newer, with the older record": (whole[0], older[1]),
    }
    for name, (bytes_of_file, bytes_of_record) in damages.items():
        for path, data in ((file, bytes_of_file), (record, bytes_of_record)):
            path.unlink(missing_ok=True)
            if data is not None:
                path.write_bytes(data)
        daemon.load(session)
        expect(said(daemon, session) == texts, f"a cache file that is {name}: the session has other messages")
        expect(daemon.texts(session) == texts, f"a cache file that is {name}: the context has other messages")
        texts.append(f"after {name}")
        daemon.append(session, texts[-1])
        daemon.close_session(session)
        expect(file.read_bytes() == check_rows(server, session), f"a cache file that is {name} is not made good")
        whole_again = file.read_bytes()
        expect(whole_again.startswith(whole[0]), f"a cache file that is {name} changed the session")
    return f"{len(damages)} kinds of cache files that are damaged change nothing"


LIBRARY = "faketime/libfaketime.so.1"


def clocks(world):
    """The clocks of the server and of a daemon differ by an hour, in both directions."""
    found = list(Path("/usr/lib").glob(f"*/{LIBRARY}"))
    if not found:
        raise Skipped("libfaketime is not installed (apt-get install faketime)")
    fake = lambda offset: {"LD_PRELOAD": str(found[0]), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    server = world.server(**fake("+3600"))
    ((ahead,),) = server.sql("SELECT round(extract(epoch FROM now()))")
    expect(3_500 < float(ahead) - time.time() < 3_700, "the server's clock is not off")
    daemons = [world.daemon(server.url()), world.daemon(server.url(), **fake("-3600"))]
    history = History(daemons[0].new())
    for number in range(20):
        daemon, other = daemons[number % 2], daemons[1 - number % 2]
        if number:
            daemon.load(history.session)
        text = history.next()
        history.answer(text, daemon.append(history.session, text))
        error = other.refused("session/load", sessionId=history.session)
        expect(error.code == "locked", f"a clock that is off opens a session twice: {error}")
        daemon.close_session(history.session)
    daemons[1].load(history.session)
    daemons[1].kill()
    until(lambda: loads(daemons[0], history.session), FREE, "the session of a killed daemon is free")
    daemons[0].close_session(history.session)
    file = check_rows(server, history.session)
    history.check(file)
    check_opened(daemons[0], history, file)
    return "clocks that differ by two hours hand a session over 20 times, and take it from a killed daemon"
