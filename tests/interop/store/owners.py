"""Sessions that go from one daemon to another: given up, taken from one that sleeps or was killed, never written by two."""

import os
import time

from daemon import Refused, text_of
from history import History, check_opened, check_rows, lines_of
from world import expect, together, until

# The time without a sign of life after which an owner counts as gone, and the time in which the next look sees it.
SILENCE, LOOK = 15.0, 6.0

# The time within which the session of a killed daemon is free, where the server has its locks. A server that has just started has
# none: it says nothing of an owner for its first five seconds.
FREE = 8.0


def hand_over(daemons, rounds):
    """Two daemons load a session, append and close it in turn. Returns its history."""
    history = History(daemons[0].new())
    daemons[0].close_session(history.session)
    leaf = None
    for number in range(rounds):
        daemon = daemons[number % 2]
        opened = daemon.load(history.session)
        expect(leaf is None or opened["leafEntryId"] == leaf, f"round {number}: the daemon sees {opened['leafEntryId']} and not {leaf}")
        text = history.next()
        history.answer(text, daemon.append(history.session, text))
        leaf = history.answered[text]
        daemon.close_session(history.session)
    return history


def handed_over(world):
    """Two daemons hand one session back and forth."""
    server, rounds = world.server(), world.of(1_000)
    daemons = [world.daemon(server.url()) for _ in range(2)]
    begun = time.monotonic()
    history = hand_over(daemons, rounds)
    took = time.monotonic() - begun
    file = check_rows(server, history.session)
    history.check(file)
    expect(len(history.answered) == rounds, "an append was not answered")
    for daemon in daemons:
        check_opened(daemon, history, file)
    return f"{rounds} times between two daemons, {took / rounds * 1000:.1f} ms each"


def taken_from_a_sleeper(world, server, url):
    """A daemon that owns a session sleeps. Another one is refused it for 15 s, and has it then; the first, awake again, is told so."""
    first, second = world.daemon(url), world.daemon(url)
    history = History(first.new())
    session = history.session
    for _ in range(3):
        text = history.next()
        history.answer(text, first.append(session, text))
    asleep = time.monotonic()
    first.pause()
    # This one reaches the daemon when it wakes up.
    unread = history.next()
    late = first.say(session, unread)
    refusal = None
    while True:
        tried = time.monotonic() - asleep
        try:
            second.load(session)
            break
        except Refused as error:
            refusal = error
            expect(error.code == "locked", f"the session of a sleeper is refused otherwise: {error}")
        expect(tried < SILENCE + LOOK, f"the session of a sleeper is not free after {tried:.0f} s")
        time.sleep(0.1)
    # Its last sign of life may be as old as the time between two of them.
    expect(tried > SILENCE - LOOK, f"the session of a sleeper is taken after {tried:.1f} s")
    expect(refusal, "the session of a sleeper is never refused")
    host, pid = os.uname().nodename, first.process.pid
    expect(refusal.data["host"] == host and refusal.data["pid"] == pid, f"the owner is {host} {pid}, and {refusal} says another")
    expect(refusal.data["since"] and host in refusal.message, f"no time, or no name: {refusal}")
    # By the server's clock, which is the one that counts.
    ((silence,),) = server.sql(f"""SELECT extract(epoch FROM s.owned - o.renewed) FROM abridged.session s, abridged.owner o
        WHERE s.id = '{session}' AND o.pid = {first.process.pid}""")
    expect(SILENCE < float(silence) < SILENCE + 2, f"the session of a sleeper is taken {silence} s after its last sign of life")
    text = history.next()
    history.answer(text, second.append(session, text))
    first.resume()
    for answers in (late, first.say(session, history.next())):
        error = first.refusal(answers, "an append of the first owner")
        expect(error.code == "locked", f"the first owner is refused otherwise: {error}")
        expect(error.data["pid"] == second.process.pid and error.data["since"], f"the first owner is not told of the second: {error}")
    history.refuse(unread)
    history.refuse(history.sent[-1])
    text = history.next()
    history.answer(text, second.append(session, text))
    for daemon in (first, second):
        daemon.close_session(session)
    file = check_rows(server, session)
    history.check(file)
    for daemon in (first, second):
        check_opened(daemon, history, file)
    return tried


def sleepers(world):
    """The owner sleeps for longer than its silence may be."""
    server = world.server()
    return f"the session of a sleeper is taken {taken_from_a_sleeper(world, server, server.url()):.1f} s after its last breath"


def no_locks(world):
    """A role that may not use advisory locks: an owner counts as gone by its silence alone, also one that was killed."""
    server = world.server()
    server.sql("REVOKE EXECUTE ON FUNCTION pg_try_advisory_xact_lock(bigint), pg_advisory_xact_lock(bigint) FROM PUBLIC")
    server.sql("CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE sessions TO plain")
    url = server.url(user="plain")

    def killed():
        first, second = world.daemon(url), world.daemon(url)
        session = first.new()
        first.append(session, "one")
        begun = time.monotonic()
        first.kill()
        while True:
            tried = time.monotonic() - begun
            try:
                second.load(session)
                break
            except Refused as error:
                expect(error.code == "locked", f"refused otherwise: {error}")
            expect(tried < SILENCE + LOOK, f"the session of a killed daemon is not free after {tried:.0f} s")
            time.sleep(0.1)
        expect(tried > SILENCE - LOOK, f"the session of a killed daemon is taken after {tried:.1f} s without a lock that is free")
        return tried

    dead, asleep = together(killed, lambda: taken_from_a_sleeper(world, server, url))
    return f"without locks, the session of a killed daemon is taken after {dead:.1f} s, that of a sleeper after {asleep:.1f} s"


def raced(world):
    """Daemons that start at once on an empty database make its tables once; of those that load a session at once, one has it."""
    server, rounds = world.server(), world.of(100)
    server.sql("CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE sessions TO plain")
    server.sql("CREATE DATABASE others OWNER plain")
    server.sql("REVOKE EXECUTE ON FUNCTION pg_advisory_xact_lock(bigint) FROM PUBLIC", database="others")
    for url, database in ((server.url(user="plain", database="others"), "others"), (server.url(), "sessions")):
        daemons = [world.daemon(url) for _ in range(4)]
        making = [daemon.send("session/new", cwd="/project") for daemon in daemons]
        for daemon, answers in zip(daemons, making):
            daemon.append(daemon.answer(answers)["session"]["sessionId"], "one")
        expect(len(server.sql("SELECT * FROM abridged.about", database)) == 1, "the tables are made twice")
    session = daemons[0].new()
    daemons[0].close_session(session)
    for number in range(rounds):
        loading = [daemon.send("session/load", sessionId=session) for daemon in daemons]
        winners = []
        for daemon, answers in zip(daemons, loading):
            try:
                daemon.answer(answers)
                winners.append(daemon)
            except Refused as error:
                expect(error.code == "locked", f"a loser of a race is refused otherwise: {error}")
        expect(len(winners) == 1, f"in round {number}, {len(winners)} daemons have the session")
        winners[0].append(session, f"{number}")
        winners[0].close_session(session)
    file = check_rows(server, session)
    texts = [text_of(entry["message"]) for entry in lines_of(file) if entry["type"] == "message"]
    expect(texts == [str(number) for number in range(rounds)], f"a race leaves {texts}")
    return f"4 daemons make the tables at once, and race {rounds} times for a session, which one of them has"


def new_owner(world):
    """A daemon that has just started makes a session before it could say that it lives: the session is its own all the same."""
    server = world.server()
    second = world.daemon(server.url())
    second.close_session(second.new())
    with server.holding("LOCK TABLE abridged.owner IN EXCLUSIVE MODE"):
        first = world.daemon(server.url())
        making = first.send("session/new", cwd="/project")
        # A daemon may wait with its first session for the end of this.
        time.sleep(1.5)
        for (session,) in server.sql("SELECT id FROM abridged.session WHERE owner IS NOT NULL"):
            error = second.refused("session/load", sessionId=session)
            expect(error.code == "locked", f"a new session is refused otherwise: {error}")
    session = first.answer(making)["session"]["sessionId"]
    error = second.refused("session/load", sessionId=session)
    expect(error.code == "locked" and error.data["pid"] == first.process.pid, f"a new session is refused otherwise: {error}")
    first.append(session, "one")
    return "a session that is new is its daemon's, even where that was kept from saying so"


def killed_owner(world):
    """The owner is killed, also in the middle of a compaction: the next one has the session at once, and ends what ran."""
    server, times = world.server(), []
    second = world.daemon(server.url())
    second.new()
    time.sleep(5)  # the server has just started
    for number in range(world.of(20)):
        first = world.daemon(server.url())
        session = first.new()
        first.append(session, "one")
        first.kill()
        _, took = until(lambda: loads(second, session), FREE, "the session of a killed daemon is free")
        times.append(took)
        second.append(session, "two")
        expect(second.texts(session) == ["one", "two"], f"the session has {second.texts(session)}")
        second.close_session(session)
    compacted = killed_compaction(world, server, second)
    times.sort()
    return f"the session of a killed daemon is free after {times[len(times) // 2] * 1000:.0f} ms, {times[-1] * 1000:.0f} ms at most; {compacted}"


def killed_compaction(world, server, second):
    """A compaction asks the client for its summary when its daemon is killed."""
    first = world.daemon(server.url(), capabilities={"llm": {}})
    session = first.new(contextWindow=16_384, model="local/qwen3")
    for number in range(30):
        first.append(session, f"{number} " + "many words of a long request " * 40)
    first.send("session/compact", sessionId=session, method="llm", keepRecentTokens=500)
    is_start = lambda method, params: method == "session/event" and params["event"]["type"] == "compaction_start"
    _, params = first.wait(is_start, 10, "the start of a compaction")
    started = params["operationId"]
    first.wait(lambda method, _: method == "llm/complete", 10, "the request for a summary")
    before = server.file(session)
    ((running,),) = server.sql(f"SELECT running FROM abridged.session WHERE id = '{session}'")
    expect("compaction" in running, f"the store has no record of the compaction: {running}")
    first.kill()
    until(lambda: loads(second, session), FREE, "the session of a killed daemon is free")
    is_end = lambda method, params: method == "session/event" and params["sessionId"] == session and params["event"]["type"] == "compaction_end"
    _, params = second.wait(is_end, 5, "the end of the compaction")
    expect(params["event"]["outcome"] == "failed", f"the compaction ended otherwise: {params}")
    expect(params["operationId"] == started, f"another operation ended: {params}, {running}")
    expect(server.file(session) == before, "the end of the compaction changed lines")
    second.close_session(session)
    third = world.daemon(server.url())
    third.load(session)
    third.call("session/status", sessionId=session)
    with third.news:
        expect(not any(is_end(method, params) for _, method, params in third.told), "the compaction ends twice")
    return "a compaction that ran there ends as failed, once"


def loads(daemon, session):
    """Whether a daemon takes a session. Only a lock keeps it from that."""
    try:
        return daemon.load(session)
    except Refused as error:
        expect(error.code == "locked", f"a session is refused otherwise: {error}")
        return None
