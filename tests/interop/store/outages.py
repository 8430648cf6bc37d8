"""A server that is away: for seconds, for longer, from the start on, or without a word."""

import threading
import time

from daemon import Refused
from history import History, check_opened, check_rows
from world import expect, until

# The longest time for which an append waits for a server, and room for a machine that is busy.
PATIENCE, ROOM = 10.0, 4.0

# The longest time for which it waits for one that takes connections and says nothing: a request, and patience after it.
LONGEST_SILENCE = 35.0


def outages(world):
    """The server is away for 3 s, and then for longer than an append waits."""
    server = world.server()
    daemon = world.daemon(server.url())
    history = History(daemon.new())

    def append():
        text, begun = history.next(), time.monotonic()
        try:
            history.answer(text, daemon.append(history.session, text))
        except Refused as error:
            history.refuse(text)
            return time.monotonic() - begun, error
        return time.monotonic() - begun, None

    def served():
        """A context is answered, and how long that takes."""
        begun = time.monotonic()
        texts = daemon.texts(history.session)
        expect(texts == list(history.answered), "a context has other messages than those that were answered")
        return time.monotonic() - begun

    expect(append()[1] is None, "an append is refused before the outage")
    server.stop()
    threading.Timer(3, server.start).start()
    waited, error = append()
    expect(error is None, f"an outage of 3 s is not survived: {error}")
    expect(waited > 2.5, f"an append is answered {waited:.1f} s after the server went, before it came back")
    until(server.answers, 5, "the server is back")
    expect(append()[1] is None, "an append is refused after an outage of 3 s")

    begun, told = time.monotonic(), len(daemon.told)
    server.stop()
    waited, error = append()
    expect(error and error.code == "storage_error" and error.data["retryable"], f"no append is refused, or otherwise: {error}")
    expect(PATIENCE - 1 < waited < PATIENCE + ROOM, f"an append is refused after {waited:.1f} s")
    longest = served()
    _, notice = daemon.notice("store_away", 1, told)
    expect(notice["severity"] == "warning", f"the notice of an outage: {notice}")
    until(lambda: time.monotonic() - begun > PATIENCE + 2, 10, "the outage is long")
    later = []
    for _ in range(5):
        took, error = append()
        expect(error and error.data["retryable"], f"an append is answered without a server, or refused for good: {error}")
        later.append(took)
        longest = max(longest, served())
    expect(max(later) < 2, f"an append of a long outage waits {max(later):.1f} s for its refusal")
    expect(longest < 1, f"a context waits {longest:.1f} s for a server that is away")
    server.start()
    back = time.monotonic()
    daemon.notice("store_back", 5, told)
    told_after = time.monotonic() - back
    _, error = append()
    expect(error is None, f"an append is refused after the outage was told to be over: {error}")
    served()
    daemon.close_session(history.session)
    file = check_rows(server, history.session)
    history.check(file)
    check_opened(world.daemon(server.url()), history, file)
    return (
        f"3 s are waited for; a long one is told, refuses after {waited:.1f} s and then within {max(later) * 1000:.0f} ms, answers "
        f"contexts within {longest * 1000:.0f} ms, and its end is told after {told_after:.1f} s"
    )


def late_server(world):
    """The daemon starts before its server: what it is asked waits for a while, is refused, and works once the server is there."""
    server = world.server()
    server.stop()
    daemon = world.daemon(server.url())
    asked = time.monotonic()
    making = daemon.send("session/new", cwd="/project")
    begun = time.monotonic()
    daemon.call("ping")
    expect(time.monotonic() - begun < 1, "a daemon without a server does not answer")
    error, waited = daemon.refusal(making, "a session without a server"), time.monotonic() - asked
    expect(error.code == "storage_error" and error.data["retryable"], f"refused otherwise: {error}")
    expect(waited < PATIENCE + ROOM, f"a session is refused after {waited:.0f} s")
    server.start()
    session, took = until(lambda: made(daemon), 5, "a session is made once the server is there")
    daemon.append(session, "one")
    server.stop()
    begun = time.monotonic()
    expect(daemon.end() == 0, "a daemon whose server is away ends with an error")
    ended = time.monotonic() - begun
    expect(ended < 5, f"a daemon whose server is away ends after {ended:.0f} s")
    return f"without its server a daemon refuses after {waited:.1f} s, works {took:.1f} s after the server is there, and ends within {ended:.1f} s"


def made(daemon):
    """A new session, where the store takes one."""
    try:
        return daemon.new()
    except Refused as error:
        expect(error.data["retryable"], f"refused for good: {error}")
        return None


def silence(daemon, server, history):
    """The server sleeps during an append to an open session, and wakes up. Returns the seconds after which the append is refused."""
    server.pause()
    text, begun = history.next(), time.monotonic()
    error = daemon.refusal(daemon.say(history.session, text), "an append")
    waited = time.monotonic() - begun
    expect(error.code == "storage_error" and error.data["retryable"], f"refused otherwise: {error}")
    expect(waited < LONGEST_SILENCE, f"an append to a server that sleeps is refused after {waited:.0f} s")
    history.refuse(text)
    told = len(daemon.told)
    server.resume()
    daemon.notice("store_back", 15, told)
    text = history.next()
    history.answer(text, daemon.append(history.session, text))
    return waited


def frozen_server(world):
    """The server sleeps: its connections stay, and nothing answers. An append has an answer in bounded time, and it holds."""
    server = world.server()
    daemon = world.daemon(server.url())
    history = History(daemon.new())
    text = history.next()
    history.answer(text, daemon.append(history.session, text))
    waited = silence(daemon, server, history)
    daemon.close_session(history.session)
    file = check_rows(server, history.session)
    history.check(file)
    check_opened(world.daemon(server.url()), history, file)
    return f"an append to a server that sleeps is refused after {waited:.0f} s, and is not there when it wakes up"
