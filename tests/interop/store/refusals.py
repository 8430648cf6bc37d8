"""Servers that refuse: a newer store, roles that may not, addresses that lead nowhere, encryption that is not trusted."""

import shutil
import subprocess
import time
from functools import partial

from daemon import run
from server import give
from world import Skipped, expect, together


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
    expect(error.code == "storage_error" and "docs/STORE.md" in error.message, f"a role that may do nothing: {error}")
    return "a role makes tables, writes, reads or does nothing, as it may, and is told the rest"


def addresses(world):
    """Addresses that lead nowhere or to a refusal: each has an answer in bounded time, without the password."""
    server = world.server()
    server.sql("CREATE ROLE keyed LOGIN PASSWORD 'right'; GRANT CREATE ON DATABASE sessions TO keyed")
    server.admit("host all all 127.0.0.1/32 scram-sha-256")
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
        done = run(url, world.place("none"), "serve")
        expect(done.returncode and "postgres://user@host" in done.stderr, f"{url} is taken for an address: {done.stderr}")
    return f"{len(cases)} addresses that lead nowhere are answered within {max(waits):.0f} s, refusals within {min(waits) * 1000:.0f} ms"


def encryption(world):
    """A server that wants TLS, with a certificate that nobody vouches for."""
    if not shutil.which("openssl"):
        raise Skipped("openssl is not installed (apt-get install openssl)")
    server, place = world.server(), world.place("certificate")
    place.mkdir()
    certificates(place)
    for name in ("server.crt", "server.key"):
        (server.data / name).write_bytes((place / name).read_bytes())
        give(server.data / name, 0o600)
    server.configure("ssl = on")
    server.admit("hostssl all all 127.0.0.1/32 trust")
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
