"""Stores that are others than expected: newer, forbidden, full, with another clock or another tenant; and odd texts."""

import json
import os
import subprocess
import time
from functools import partial
from pathlib import Path

from daemon import PROGRAM, Refused, text_of
from history import History, check_opened, check_rows, lines_of
from server import give
from world import expect, together, until

# Texts that are code to a database, a pattern, a template, or no text at all.
ODD = (
    "'); DROP TABLE abridged.session; --", '"; SELECT pg_sleep(60); --', "$1 %s {0} \\x00 \\' \\\\", "100%_of_it", "zero\0inside", "🦀 \u202eright to left",
    "lone \ud800 surrogate", "\ufeffmark\u2028line\u0085next", "tab\tnewline\nreturn\r", "E'\\141' U&'\\0061' $$x$$ ::text",
)


def message(text):
    """A request of the user."""
    return {"role": "user", "content": text, "timestamp": 1}


def newer_store(world):
    """Tables of a newer version: nothing is read or written, and the way out is named."""
    server = world.server()
    daemon = world.daemon(server.url())
    session = daemon.new()
    daemon.close_session(session)
    daemon.end()
    server.sql("UPDATE abridged.about SET version = 99")
    before = server.sql("SELECT * FROM abridged.session")
    daemon = world.daemon(server.url())
    for method, params in (("session/new", {"cwd": "/project"}), ("session/load", {"sessionId": session}), ("session/list", {})):
        error = daemon.refused(method, **params)
        expect(error.code == "storage_error" and not error.data["retryable"], f"{method} in a newer store: {error}")
        expect("99" in error.message and "newer" in error.message, f"{method} in a newer store gives no way out: {error}")
    expect(server.sql("SELECT * FROM abridged.session") == before, "a newer store was changed")
    expect(server.sql("SELECT version FROM abridged.about") == [["99"]], "the version of a newer store was changed")
    return "a newer store is refused and stays as it is"


def roles(world):
    """Roles that may less and less: make no tables, write nothing, read nothing."""
    server = world.server()
    server.sql("""
        CREATE ROLE makes LOGIN; GRANT CREATE ON DATABASE sessions TO makes;
        CREATE ROLE writes LOGIN; CREATE ROLE reads LOGIN; CREATE ROLE nothing LOGIN;""")
    daemon = world.daemon(server.url(user="writes"))
    error = daemon.refused("session/new", cwd="/project")
    expect(error.code == "storage_error" and not error.data["retryable"], f"a role that may make no tables: {error}")
    expect("role" in error.message and "docs/STORE.md" in error.message, f"a role that may make no tables is given no way out: {error}")
    maker = world.daemon(server.url(user="makes"))
    session = maker.new()
    maker.append(session, "one")
    maker.close_session(session)
    server.sql("""
        GRANT USAGE ON SCHEMA abridged TO writes, reads;
        GRANT SELECT ON ALL TABLES IN SCHEMA abridged TO writes, reads;
        GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA abridged TO writes;""")
    # The daemon that was refused goes on, now that it may.
    daemon.load(session)
    daemon.append(session, "two")
    daemon.close_session(session)
    reader = world.daemon(server.url(user="reads"))
    reader.load(session, readOnly=True)
    expect(reader.texts(session) == ["one", "two"], "a role that may read sees other texts")
    expect([it["sessionId"] for it in reader.call("session/list")["sessions"]] == [session], "a role that may read lists no session")
    reader.close_session(session)
    begun = time.monotonic()
    error = reader.refused("session/load", sessionId=session)
    expect(error.code == "storage_error" and "docs/STORE.md" in error.message, f"a role that may only read, and writes: {error}")
    error = reader.refused("session/new", cwd="/project")
    expect(error.code == "storage_error" and "docs/STORE.md" in error.message, f"a role that may only read, and makes a session: {error}")
    waited = time.monotonic() - begun
    expect(waited < 5, f"a role that may only read waits {waited:.0f} s for its refusals")
    nothing = world.daemon(server.url(user="nothing"))
    error = nothing.refused("session/list")
    expect(error.code == "storage_error" and "docs/STORE.md" in error.message, f"a role that may nothing: {error}")
    return "a role makes tables, writes, reads or does nothing, as it may, and is told the rest"


def addresses(world):
    """Addresses that lead nowhere or to a refusal: each has an answer in bounded time, without the password."""
    server = world.server()
    hba = server.data / "pg_hba.conf"
    hba.write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
    server.sql("CREATE ROLE keyed LOGIN PASSWORD 'right'; GRANT CREATE ON DATABASE sessions TO keyed; SELECT pg_reload_conf()")
    silent = world.silent_port()
    cases = (
        ("a wrong password", server.url("keyed", "hush"), False, "password"),
        ("no password", server.url("keyed"), False, "password"),
        ("an unknown role", server.url("nobody_knows", "hush"), False, "password"),
        ("an unknown database", server.url("keyed", "right", "elsewhere"), False, "elsewhere"),
        ("a port where nothing listens", server.url("keyed", "hush", port=1), True, "refused"),
        ("an unknown host", server.url("keyed", "hush", host="nowhere.invalid"), True, ""),
        ("a host that never answers", server.url("keyed", "hush", port=silent), True, "answer"),
    )

    def ask(name, url, may_pass, wanted):
        daemon = world.daemon(url)
        begun = time.monotonic()
        error = daemon.refused("session/new", cwd="/project")
        waited = time.monotonic() - begun
        expect(error.code == "storage_error" and error.data["retryable"] == may_pass, f"{name}: {error}")
        expect(wanted in error.message, f"{name} is not named: {error}")
        expect("hush" not in error.message and "hush" not in daemon.said(), f"{name}: the password is shown: {error}")
        expect(waited < (25 if may_pass else 3), f"{name} is answered after {waited:.0f} s")
        return waited

    waits = together(*(partial(ask, *case) for case in cases))
    daemon = world.daemon(server.url("keyed", "right"))
    daemon.append(daemon.new(), "by the address")
    daemon = world.daemon(server.url("keyed"), PGPASSWORD="right")
    daemon.append(daemon.new(), "by the environment")
    daemon = world.daemon(server.url("keyed"), settings={"storePasswordCommand": ["printf", "right"]})
    daemon.append(daemon.new(), "by a command")
    for url in ("mysql://h/db", "postgres://h/db?colour=red", "postgres://h:no/db"):
        environment = {**os.environ, "ABRIDGED_DATA_DIR": str(world.folder / "none"), "ABRIDGED_CONFIG_DIR": str(world.folder / "none")}
        done = subprocess.run([PROGRAM, "serve", "--store", url], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20, env=environment)
        expect(done.returncode and "postgres://user@host" in done.stderr, f"{url} is taken for an address: {done.stderr}")
    return f"{len(cases)} addresses that lead nowhere are answered within {max(waits):.0f} s, refusals within {min(waits) * 1000:.0f} ms"


def encryption(world):
    """A server that wants TLS, with a certificate that nobody vouches for."""
    server, place = world.server(), world.place("certificate")
    place.mkdir()
    certificates(place)
    for name in ("server.crt", "server.key"):
        (server.data / name).write_bytes((place / name).read_bytes())
        give(server.data / name, 0o600)
    (server.data / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")
    server.configure("ssl = on")
    server.restart()
    root, other = place / "root.crt", place / "other.crt"
    for name, url in (
        ("on this machine, unchecked", server.url()),
        ("checked by its root", server.url(host="localhost", sslmode="require", sslrootcert=root)),
        ("checked by its root, in the words of libpq", server.url(host="localhost", sslmode="verify-full", sslrootcert=root)),
    ):
        daemon = world.daemon(url)
        daemon.append(daemon.new(), name)
        used = server.sql("SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'abridged' AND ssl")
        expect(int(used[0][0]) > 0, f"{name}: no connection is encrypted")
        daemon.end()
    for name, url, wanted in (
        ("no encryption", server.url(sslmode="disable"), "no encryption"),
        ("no root", server.url(sslmode="require"), "certificate"),
        ("another root", server.url(sslmode="require", sslrootcert=other), "certificate"),
        ("another name", server.url(sslmode="require", sslrootcert=root), "certificate"),
        ("a root that is not there", server.url(sslmode="require", sslrootcert=place / "none.crt"), "none.crt"),
    ):
        begun = time.monotonic()
        error = world.daemon(url).refused("session/new", cwd="/project")
        expect(error.code == "storage_error" and wanted in error.message, f"{name}: {error}")
        expect(not error.data["retryable"], f"{name} may be tried again: {error}")
        expect(time.monotonic() - begun < 3, f"{name} is answered after {time.monotonic() - begun:.0f} s")
    return "TLS with a root of the address; refused without it, with another one, and for another name"


def certificates(place):
    """A root, a certificate of the server that it signs, and a root of others."""
    def openssl(*arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, cwd=place)
        expect(done.returncode == 0, f"openssl: {done.stderr}")

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    for name in ("root", "other"):
        openssl("req", "-x509", *curve, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}")
    openssl("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (place / "names").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    signed = ("-CA", "root.crt", "-CAkey", "root.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    openssl("x509", "-req", "-in", "server.csr", *signed, "-out", "server.crt")


def odd_texts(world):
    """Texts that are code, patterns or no characters, in every field."""
    server = world.server()
    daemon = world.daemon(server.url())
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
        other = world.daemon(server.url()) if session == next(iter(sessions)) else other
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
    header = {"type": "session", "version": 3, "id": "long", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/project"}
    entry = {"type": "message", "id": "0000000a", "parentId": None, "timestamp": "2026-01-01T00:00:00.000Z", "message": message("word " * ((64 << 20) // 5))}
    file.write_text(json.dumps(header) + "\n" + json.dumps(entry) + "\n")
    begun = time.monotonic()
    run = lambda *arguments: subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=120,
        env={**os.environ, "ABRIDGED_STORE": server.url(), "ABRIDGED_DATA_DIR": str(world.folder / "push"), "ABRIDGED_CONFIG_DIR": str(world.folder / "push")},
    )
    done = run("push", str(file))
    expect(done.returncode == 0, f"a line of 64 MB is not pushed: {done.stdout} {done.stderr}")
    pushed = time.monotonic() - begun
    back = world.folder / "back.jsonl"
    done = run("pull", "long", "--out", str(back))
    expect(done.returncode == 0 and back.read_bytes() == file.read_bytes(), f"a line of 64 MB comes back otherwise: {done.stderr}")
    other.load("long")
    other.append("long", "after it")
    other.close_session("long")
    expect(check_rows(server, "long").startswith(file.read_bytes()), "a line of 64 MB is stored otherwise")
    return f"a message of {most >> 20} MiB in {took:.1f} s; a line of 64 MiB is pushed in {pushed:.1f} s, and pulled byte for byte"


def full_disk(world):
    """The disk of the tables is full: appends are refused and may be tried again, and what is there stays."""
    place = world.place("disk")
    place.mkdir()
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place], capture_output=True).returncode:
        world.skip("a full disk: no tmpfs can be mounted")
        return "left out"
    world.ends.callback(subprocess.run, ["umount", "-l", place])
    tables = place / "tables"
    tables.mkdir()
    give(tables, 0o700)
    give(place, 0o755)
    server = world.server()
    server.sql(f"CREATE TABLESPACE small LOCATION '{tables}'")
    server.sql("CREATE DATABASE small TABLESPACE small")
    ballast = place / "ballast"
    ballast.write_bytes(bytes(4 << 20))
    daemon = world.daemon(server.url(database="small"))
    session = daemon.new()
    stored, error = [], None
    for number in range(60):
        # The server compresses what repeats itself.
        text = f"{number} {os.urandom(400_000).hex()}"
        try:
            daemon.append(session, text)
            stored.append(text)
        except Refused as refusal:
            error = refusal
            break
    expect(error, "the disk is never full")
    expect(error.code == "storage_error" and error.data["retryable"] and "room" in error.message, f"a full disk: {error}")
    said = lambda daemon: [text_of(entry["message"]) for entry in daemon.entries(session) if entry["type"] == "message"]
    expect(said(daemon) == stored, "the session has other messages on a full disk")
    daemon.call("session/context", sessionId=session)
    ballast.unlink()
    daemon.append(session, "room again")
    daemon.close_session(session)
    other = world.daemon(server.url(database="small"))
    other.load(session)
    expect(said(other) == [*stored, "room again"], "the session has other messages after a full disk")
    return f"a disk that is full after {len(stored)} appends refuses the next one, and takes it when it has room"


LIBRARY = "faketime/libfaketime.so.1"


def clocks(world):
    """The clocks of the server and of a daemon differ by an hour, in both directions."""
    found = [path for path in Path("/usr/lib").glob(f"*/{LIBRARY}")]
    if not found:
        world.skip("clocks: libfaketime is not installed (apt-get install faketime)")
        return "left out"
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
    until(lambda: not daemons[0].call("session/load", sessionId=history.session) is None, 5, "the session is free")
    daemons[0].close_session(history.session)
    file = check_rows(server, history.session)
    history.check(file)
    check_opened(daemons[0], history, file)
    return "clocks that differ by two hours hand a session over 20 times, and take it from a killed daemon"


SCENARIOS = (newer_store, roles, addresses, encryption, odd_texts, tenants, long_lines, full_disk, clocks)
