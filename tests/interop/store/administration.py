"""An administrator at work: connections that are ended, restarts, deletions, read-only modes, limits, a password that changes."""

import json
import time
from pathlib import Path

from daemon import run
from history import History, check_opened, check_rows
from world import expect, until


def ended_connections(world):
    """Connections that the server ends, one by one and all at once; and its limit for idle transactions."""
    server = world.server("idle_in_transaction_session_timeout = 1s")
    daemon, other = world.daemon(server.url()), world.daemon(server.url())
    history = History(daemon.new())

    def append():
        text = history.next()
        history.answer(text, daemon.append(history.session, text))

    append()
    # The connection that shows that the daemon lives is idle in a transaction.
    time.sleep(2.5)
    error = other.refused("session/load", sessionId=history.session)
    expect(error.code == "locked", f"an owner that lives loses its session: {error}")
    ended = 0
    for _ in range(world.of(10)):
        pids = [row[0] for row in server.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'abridged' ORDER BY backend_start")]
        for pid in pids:
            server.sql(f"SELECT pg_terminate_backend({pid})")
            ended += 1
            error = other.refused("session/load", sessionId=history.session)
            # The connection that was ended may be the one that asks.
            expect(error.code == "locked" or error.data["retryable"], f"an owner that lives loses its session with one connection: {error}")
            append()
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'abridged'")
    append()
    time.sleep(2)
    error = other.refused("session/load", sessionId=history.session)
    expect(error.code == "locked", f"an owner does not take its lock again: {error}")
    daemon.close_session(history.session)
    file = check_rows(server, history.session)
    history.check(file)
    check_opened(other, history, file)
    return f"{ended} connections ended one by one, and all at once: no append is lost, and the session is still its owner's"


def restarts(world):
    """The server restarts under two daemons: nobody loses a session to the other one."""
    server = world.server()
    daemon, other = world.daemon(server.url()), world.daemon(server.url())
    session = daemon.new()
    daemon.append(session, "0")
    rounds = world.of(10)
    for number in range(1, rounds + 1):
        server.restart()
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            error = other.refused("session/load", sessionId=session)
            expect(error.code == "locked" or error.data["retryable"], f"an owner that lives loses its session with a restart: {error}")
        daemon.append(session, str(number))
    expect(daemon.texts(session) == [str(number) for number in range(rounds + 1)], f"the session has {daemon.texts(session)}")
    return f"{rounds} restarts, after which another daemon is refused the session for as long as it tries"


def deletions(world):
    """Rows, and all tables, are deleted under an open session."""
    server = world.server()
    daemon = world.daemon(server.url())
    session = daemon.new()
    daemon.append(session, "one")
    server.sql("DELETE FROM abridged.session")
    error = daemon.refusal(daemon.say(session, "two"), "an append to a session that is deleted")
    expect(error.code in ("not_found", "storage_error") and not error.data["retryable"], f"an append to a session that is deleted: {error}")
    daemon.close_session(session)
    error = daemon.refused("session/load", sessionId=session)
    expect(error.code == "not_found", f"a session that is deleted opens: {error}")
    expect(server.sql("SELECT count(*) FROM abridged.line") == [["0"]], "lines of a session that is deleted stay")
    session = daemon.new()
    daemon.append(session, "after")
    server.sql("DROP SCHEMA abridged CASCADE")
    error = daemon.refusal(daemon.say(session, "two"), "an append without tables")
    expect(error.code == "storage_error" and not error.data["retryable"], f"an append without tables: {error}")
    expect("tables" in error.message and "restart" in error.message, f"an append without tables is given no way out: {error}")
    again = world.daemon(server.url())
    again.append(again.new(), "in tables that are new")
    return "a session that is deleted is refused, tables that are gone are named, and made by the next daemon"


def commands(world):
    """The commands of a person find the sessions of the store in the place of those of the data folder."""
    server = world.server()
    daemon, place, home = world.daemon(server.url()), world.place("person"), world.place("home")
    place.mkdir()
    home.mkdir()
    session = daemon.new()
    daemon.append(session, "find me")
    daemon.close_session(session)

    def command(*arguments):
        return run(server.url(), place, *arguments, HOME=str(home))

    listed = json.loads(command("sessions", "--all", "--json").stdout)["sessions"]
    expect([(it["agent"], it["sessionId"]) for it in listed] == [("abridged", session)], f"sessions --all lists {listed}")
    gone_on = command("continue", session[:-2], "--in", "pi", "--json")
    expect(gone_on.returncode == 0, f"a session of the store does not go on: {gone_on.stderr}")
    written = json.loads(gone_on.stdout)["path"]
    expect("find me" in Path(written).read_text(), f"{written} lacks the session")
    watched = command("watch", "--once")
    expect(watched.returncode == 1 and "abridged sessions" in watched.stderr, f"watch says nothing of the store: {watched}")
    expect(command("watch", "--once", "--data", str(place)).returncode == 0, "watch refuses a folder")
    return "sessions --all and continue know the sessions of the store, and watch says that it does not"


def read_only(world):
    """The database becomes read-only, as managed servers make it when their disk is full, and writable again."""
    server = world.server()
    daemon = world.daemon(server.url())
    session = daemon.new()
    daemon.append(session, "one")
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'abridged'"
    server.sql("ALTER DATABASE sessions SET default_transaction_read_only = on", database="postgres")
    server.sql(end)
    error = daemon.refusal(daemon.say(session, "refused"), "an append to a database that is read-only")
    expect(error.code == "storage_error" and error.data["retryable"], f"an append to a database that is read-only: {error}")
    expect("read-only" in error.message, f"an append to a database that is read-only is not told so: {error}")
    expect(daemon.texts(session) == ["one"], "a context has an append that was refused")
    server.sql("ALTER DATABASE sessions RESET default_transaction_read_only", database="postgres")
    server.sql(end)
    daemon.append(session, "two")
    expect(daemon.texts(session) == ["one", "two"], f"the session has {daemon.texts(session)}")
    return "a database that is read-only for a while refuses appends, and takes them again"


def crowded(world):
    """A role that may have fewer connections than a daemon makes."""
    server = world.server()
    server.sql("CREATE ROLE few LOGIN CONNECTION LIMIT 1; GRANT CREATE ON DATABASE sessions TO few")
    daemon = world.daemon(server.url(user="few"))
    begun = time.monotonic()
    error = daemon.refused("session/new", cwd="/project")
    waited = time.monotonic() - begun
    expect(error.code == "storage_error" and error.data["retryable"] and "connections" in error.message, f"too few connections: {error}")
    expect(waited < 15, f"too few connections are told after {waited:.0f} s")
    server.sql("ALTER ROLE few CONNECTION LIMIT 10")
    session, _ = until(lambda: daemon.new(), 5, "there are connections")
    daemon.append(session, "one")
    return f"a limit of connections is told after {waited:.0f} s, and not felt once it is raised"


def rotated(world):
    """The password changes: the program that prints it is asked for each connection."""
    server = world.server()
    server.sql("CREATE ROLE keyed LOGIN PASSWORD 'first'; GRANT CREATE ON DATABASE sessions TO keyed")
    server.admit("host all all 127.0.0.1/32 scram-sha-256")
    kept = world.folder / "password"
    kept.write_text("first\n")
    daemon = world.daemon(server.url("keyed"), settings={"storePasswordCommand": ["cat", str(kept)]})
    session = daemon.new()
    daemon.append(session, "one")
    server.sql("ALTER ROLE keyed PASSWORD 'second'")
    kept.write_text("second\n")
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'abridged'")
    daemon.append(session, "two")
    expect(daemon.texts(session) == ["one", "two"], f"the session has {daemon.texts(session)}")
    return "a password that changes is read again"
