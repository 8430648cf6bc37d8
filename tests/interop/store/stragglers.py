"""Statements whose answer is lost, or that the server performs when nobody waits for them any more."""

import threading
import time

from daemon import Refused
from history import History, check_opened, check_rows
from kills import APPEND
from proxy import SENT
from world import expect, until


def withdrawn(world):
    """The server has an append whose answer is lost, and then nobody reaches it: the append is refused, and taken back later."""
    server, cuts = world.server(), threading.Event()

    def plan(data, pair):
        if not cuts.is_set() or APPEND not in data:
            return None
        proxy.refuses = True
        proxy.cut(but=pair)
        return SENT

    proxy = world.proxy(server, plan=plan)
    daemon = world.daemon(server.url(port=proxy.port))
    history = History(daemon.new())
    reader = world.daemon(server.url())
    reader.load(history.session, readOnly=True)
    cuts.set()
    text = history.next()
    error = daemon.refusal(daemon.say(history.session, text), "an append")
    expect(error.code == "storage_error" and error.data["retryable"], f"refused otherwise: {error}")
    history.refuse(text)
    expect(text.encode() in server.file(history.session), "the server does not have the append")
    expect(daemon.texts(history.session) == [], "a context has an append that was refused")
    cuts.clear()
    told, proxy.refuses = len(daemon.told), False
    daemon.notice("store_back", 15, told)
    text = history.next()
    history.answer(text, daemon.append(history.session, text))
    file = check_rows(server, history.session)
    history.check(file)
    (listed,) = daemon.call("session/list")["sessions"]
    expect(listed["preview"] == text, f"the list shows the append that was taken back: {listed['preview']}")
    expect(listed["entryCount"] == 1, f"the list counts {listed['entryCount']} entries")
    expect(not daemon.call("session/list", search=history.sent[0])["sessions"], "the append that was taken back is found")
    # A reader has seen it. It is told so, and sees what is left once it opens the session again.
    is_told = lambda method, params: method == "session/event" and params["event"].get("code") == "file_changed"
    reader.wait(is_told, 6, "that lines were taken back")
    reader.close_session(history.session)
    reader.load(history.session, readOnly=True)
    expect(reader.texts(history.session) == [text], f"a reader sees {reader.texts(history.session)}")
    daemon.close_session(history.session)
    check_opened(world.daemon(server.url()), history, file)
    return "an append that the server has, and whose answer nobody got, is refused and taken back"


def late_statement(world):
    """The network keeps an append for longer than its daemon waits, and brings it to the server when the session has gone on."""
    server, holds, free = world.server("log_statement = 'all'"), threading.Event(), threading.Event()

    def plan(data, _):
        if holds.is_set() and APPEND in data:
            holds.clear()
            free.wait(60)

    proxy = world.proxy(server, plan=plan)
    world.ends.callback(free.set)
    daemon, other = world.daemon(server.url(port=proxy.port)), world.daemon(server.url())
    history = History(daemon.new())
    append(daemon, history)
    holds.set()
    begun, answered = time.monotonic(), append(daemon, history)
    waited = time.monotonic() - begun
    while not append(daemon, history):
        expect(time.monotonic() - begun < 60, "a session never recovers from an append that the network keeps")
    daemon.close_session(history.session)
    other.load(history.session)
    append(other, history)
    # The log has the parameters of each statement that is performed, bytes as digits.
    kept = history.sent[1].encode().hex()
    before, performed = server.file(history.session), server.log().count(kept)
    free.set()
    until(lambda: server.log().count(kept) > performed, 10, "the late statement is performed")
    expect(server.file(history.session) == before, "a statement that comes late changes the session")
    append(other, history)
    other.close_session(history.session)
    file = check_rows(server, history.session)
    history.check(file)
    check_opened(daemon, history, file)
    return f"an append that the network keeps is {'answered' if answered else 'refused'} after {waited:.0f} s, and does nothing when it comes late"


def row_lock(world):
    """An administrator's transaction keeps the row of a session locked for longer than an append waits."""
    server = world.server()
    daemon = world.daemon(server.url())
    history = History(daemon.new())
    append(daemon, history)
    with server.holding("SELECT * FROM abridged.session FOR UPDATE"):
        begun, answered = time.monotonic(), append(daemon, history)
        waited = time.monotonic() - begun
        expect(not answered and waited < 35, f"an append to a locked row is answered, or refused after {waited:.0f} s")
        expect(daemon.texts(history.session) == list(history.answered), "a context has an append that was refused")
    until(lambda: append(daemon, history), 20, "an append is answered when the row is free")
    daemon.close_session(history.session)
    file = check_rows(server, history.session)
    history.check(file)
    check_opened(world.daemon(server.url()), history, file)
    return f"an append to a row that is locked is refused after {waited:.0f} s, and is not there when the lock ends"


def append(daemon, history):
    """Appends once. Returns whether that was answered; it may be refused for now."""
    text = history.next()
    try:
        history.answer(text, daemon.append(history.session, text))
    except Refused as error:
        expect(error.code == "storage_error" and error.data["retryable"], f"refused otherwise: {error}")
        history.refuse(text)
    return text in history.answered
