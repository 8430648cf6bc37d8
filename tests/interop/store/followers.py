"""Daemons that read a session while another one writes it: told by the server, by looking again, and from a replica."""

import signal
import threading
import time

from daemon import Refused
from history import History, check_opened, check_rows, lines_of
from world import expect, together, until

SOON = 1.0


def delays(writer, reader, session, history, rounds):
    """The seconds after which a reader tells its client of each new entry, in order."""
    took = []
    for _ in range(rounds):
        text, told = history.next(), len(reader.told)
        history.answer(text, writer.append(session, text))
        begun, id = time.monotonic(), history.answered[text]
        is_news = lambda method, params: method == "session/event" and params["event"]["type"] == "entry_appended" and params["entryId"] == id
        at, _ = reader.wait(is_news, 5, f"the entry {text}", told)
        took.append(max(0.0, at - begun))
    return sorted(took)


def followers(world):
    """New entries are seen within a second: with the server's notices, without them, and from a replica."""
    server = world.server()
    replica = world.replica(server)
    writer = world.daemon(server.url())
    history = History(writer.new())
    session = history.session
    text = history.next()
    history.answer(text, writer.append(session, text))
    until(lambda: replica.sql("SELECT count(*) FROM abridged.line") == [["2"]], 10, "the replica has the first lines")
    said = []
    for name, url in (("told by the server", server.url()), ("from a replica", replica.url())):
        reader = world.daemon(url)
        reader.load(session, readOnly=True)
        took = delays(writer, reader, session, history, world.of(20))
        expect(took[-1] < SOON, f"{name}, an entry is seen after {took[-1]:.1f} s")
        expect(reader.texts(session) == list(history.answered), f"{name}, a reader has another context")
        error = reader.refusal(reader.say(session, "x"), "an append")
        expect(error.code in ("locked", "storage_error"), f"{name}, a reader that appends: {error}")
        reader.close_session(session)
        said.append(f"{name} {took[len(took) // 2] * 1000:.0f} ms ({took[-1] * 1000:.0f} ms at most)")
        if name == "from a replica":
            error = reader.refused("session/load", sessionId=session)
            expect(error.code == "storage_error" and "replica" in error.message, f"a replica is loaded for writing: {error}")
            error = reader.refused("session/new", cwd="/project")
            expect(error.code == "storage_error" and "primary" in error.message, f"a session is made on a replica: {error}")
    writer.close_session(session)
    file = check_rows(server, session)
    history.check(file)
    check_opened(writer, history, file)
    return "new entries are seen: " + ", ".join(said)


def fail_over(world):
    """The server dies, and its replica becomes the server: a daemon that names both goes on there, and nothing is lost."""
    server = world.server("synchronous_standby_names = '*'\nsynchronous_commit = local")
    replica = world.replica(server)
    daemon = world.daemon(f"postgres://owner@127.0.0.1:{server.port},127.0.0.1:{replica.port}/sessions")
    history = History(daemon.new())
    server.sql("ALTER DATABASE sessions SET synchronous_commit = 'remote_apply'")
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'abridged'")
    ends = threading.Event()

    def write():
        while not ends.is_set():
            text = history.next()
            try:
                history.answer(text, daemon.append(history.session, text))
            except Refused as error:
                expect(error.data["retryable"], f"refused for good: {error}")
                history.refuse(text)

    def fail():
        try:
            until(lambda: len(history.answered) > 50, 20, "appends are answered")
            server.kill()
            begun, before = time.monotonic(), len(history.answered)
            replica.promote()
            until(lambda: len(history.answered) > before + 1, 30, "an append is answered by the other server")
            took = time.monotonic() - begun
            until(lambda: len(history.answered) > before + 50, 30, "appends are answered by the other server")
            return took
        finally:
            ends.set()

    _, took = together(write, fail)
    daemon.close_session(history.session)
    file = check_rows(replica, history.session)
    history.check(file)
    check_opened(world.daemon(replica.url()), history, file)
    return f"appends go on {took:.1f} s after a fail-over: {len(history.answered)} answered, none lost, {len(history.refused)} refused"


def lossy_fail_over(world):
    """The replica lacks the last appends when it becomes the server: nobody goes on from a cache that has them."""
    server = world.server()
    replica = world.replica(server)
    url = f"postgres://owner@127.0.0.1:{server.port},127.0.0.1:{replica.port}/sessions"
    first = world.daemon(url)
    session = first.new()
    kept = ["one", "two"]
    first.append(session, *kept)
    lines = server.sql("SELECT count(*) FROM abridged.line")
    until(lambda: replica.sql("SELECT count(*) FROM abridged.line") == lines, 10, "the replica has the first lines")
    replica.configure("primary_conninfo = ''")
    replica.process.send_signal(signal.SIGHUP)
    until(lambda: server.sql("SELECT count(*) FROM pg_stat_replication") == [["0"]], 10, "the replica follows no more")
    first.append(session, "lost one", "lost two")
    server.kill()
    replica.promote()
    expect(replica.sql("SELECT count(*) FROM abridged.line") == lines, "the replica has lines that it should lack")
    error, _ = until(lambda: settled(first, session), 20, "the server is another one")
    expect(error.code == "storage_error" and not error.data["retryable"], f"an append after lines that are lost: {error}")
    first.close_session(session)
    second = world.daemon(replica.url())
    second.load(session)
    expect(second.texts(session) == kept, f"the other server has {second.texts(session)}")
    # As long as those that are lost, and more.
    second.append(session, "here one", "here two", "here three")
    kept += ["here one", "here two", "here three"]
    second.close_session(session)
    file = check_rows(replica, session)
    lines_of(file)
    for daemon in (first, world.daemon(replica.url(), first.folder)):
        daemon.load(session)
        expect(daemon.texts(session) == kept, f"a daemon whose cache has lines that are lost sees {daemon.texts(session)}")
        daemon.close_session(session)
    return "lines that a fail-over loses are in no cache afterwards"


def settled(daemon, session):
    """The refusal of an append that may not be tried again."""
    error = daemon.refusal(daemon.say(session, "three"), "an append after lines that are lost")
    return None if error.data["retryable"] else error
