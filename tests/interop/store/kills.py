"""Daemons, servers and connections that end at any moment, while sessions are written."""

import random
import signal
import threading
import time
from functools import partial

from daemon import Gone, Refused
from history import History, check_opened, check_rows
from owners import FREE, loads
from proxy import MOMENTS
from world import expect, together, until

# The beginning of a line: bytes of a daemon that have it append.
APPEND = b'{"type":"'


class Seat:
    """The place of a daemon: after a kill another one starts there, with the same cache."""

    def __init__(self, world, url):
        self.world, self.url, self.folder = world, url, world.place("daemon")
        self.daemon = world.daemon(url, self.folder)

    def kill(self):
        self.daemon.kill()
        self.daemon = self.world.daemon(self.url, self.folder)


class Cuts:
    """A plan that cuts a share of the appends and of the other statements, each at a moment of chance, and counts those of appends."""

    def __init__(self, seed, of_appends, of_others):
        self.random, self.shares, self.lock = random.Random(seed), (of_others, of_appends), threading.Lock()
        self.of = dict.fromkeys(MOMENTS, 0)

    def plan(self, data, _):
        with self.lock:
            if self.random.random() > self.shares[APPEND in data]:
                return None
            moment = self.random.choice(MOMENTS)
            self.of[moment] += APPEND in data
            return moment


class Writer(threading.Thread):
    """A client that appends to one session, now through one daemon and now through another."""

    def __init__(self, history, seats, seed):
        super().__init__(daemon=True)
        self.history, self.seats, self.random = history, seats, random.Random(seed)
        self.loads, self.compactions = 0, 0
        self.ends, self.failure = threading.Event(), None

    def run(self):
        try:
            while not self.ends.is_set():
                self._visit(self.random.choice(self.seats).daemon)
        except Exception as error:  # a thread has no other way to tell it
            self.failure = error

    def _visit(self, daemon):
        """Opens the session in a daemon, appends for a while, and closes it. Any of that may end early."""
        session = self.history.session
        try:
            daemon.load(session)
        except (Gone, Refused):
            time.sleep(0.02)
            return
        self.loads += 1
        for _ in range(self.random.randint(1, 25)):
            if self.random.random() < 0.05 and not self._compact(daemon):
                return
            text = self.history.next()
            try:
                self.history.answer(text, daemon.append(session, text))
            except Gone:
                return
            except Refused as error:
                expect(error.code in ("storage_error", "locked"), f"an append is refused otherwise: {error}")
                self.history.refuse(text)
                break
        try:
            daemon.close_session(session)
        except (Gone, Refused):
            pass


    def _compact(self, daemon):
        """Compacts the session, which appends lines of other kinds. Returns whether the daemon is there to go on."""
        try:
            daemon.call("session/compact", sessionId=self.history.session, method="extractive", keepRecentTokens=1, wait=True)
            self.compactions += 1
        except Gone:
            return False
        except Refused as error:
            expect(error.code in ("nothing_to_compact", "storage_error", "locked"), f"a compaction is refused otherwise: {error}")
        return True


def kills(world):
    """Daemons and the server are killed in random order while four sessions are written through two daemons, and the connections of one
    are cut now and then."""
    server, wanted, chance = world.server(), world.of(200), random.Random(world.seed)
    cuts = Cuts(world.seed, of_appends=0.03, of_others=0.005)
    proxy = world.proxy(server, plan=cuts.plan)
    seats = [Seat(world, server.url()), Seat(world, server.url(port=proxy.port))]
    histories = [History(seats[0].daemon.new()) for _ in range(4)]
    for history in histories:
        seats[0].daemon.close_session(history.session)
    writers = [Writer(history, seats, world.seed + number) for number, history in enumerate(histories)]
    for writer in writers:
        writer.start()
    killed, begun = {"daemon": 0, "server": 0}, time.monotonic()

    def answered():
        for writer in writers:
            if writer.failure:
                raise writer.failure
        return sum(len(history.answered) for history in histories)

    longest = 0.0
    # A goal may wait for seconds: the session of a killed daemon is free some time after a start of the server.
    for _ in range(wanted):
        goal, waited = answered() + chance.randint(1, 12), time.monotonic()
        while answered() < goal:
            time.sleep(0.002)
            expect(time.monotonic() - waited < 30, "no append is answered for 30 s after a kill")
        longest = max(longest, time.monotonic() - waited)
        time.sleep(chance.random() * 0.02)
        who = chance.choice(("daemon", "daemon", "server"))
        killed[who] += 1
        if who == "daemon":
            chance.choice(seats).kill()
        else:
            server.kill() if chance.random() < 0.5 else server.stop(signal.SIGQUIT)
            server.start()
    for writer in writers:
        writer.ends.set()
    for writer in writers:
        writer.join(60)
        expect(not writer.is_alive(), "a client does not end")
    for seat in seats:
        seat.kill()
    # A cache that is empty, and those that the killed daemons left.
    judges = [world.daemon(server.url()), *(seat.daemon for seat in seats)]
    count = answered()
    unanswered = 0
    for history in histories:
        file = check_rows(server, history.session)
        # A daemon that is killed after a refusal cannot take the rows back, if the server has them.
        unanswered += history.check(file, refused_may_stay=True)
        # Its owner was killed just now, perhaps just after a start of the server.
        until(lambda: loads(judges[0], history.session), FREE, "the session of a killed daemon is free")
        judges[0].close_session(history.session)
        for judge in judges:
            check_opened(judge, history, file)
    unknown = sum(len(history.unknown) for history in histories)
    took = time.monotonic() - begun
    return (
        f"{killed['daemon']} daemons and {killed['server']} servers killed in {took:.0f} s: {count} answered appends are there, "
        f"{unanswered} of {unknown} without an answer, too; longest wait {longest:.1f} s, {sum(writer.loads for writer in writers)} loads, "
        f"{sum(writer.compactions for writer in writers)} compactions, {proxy.cuts} connections cut"
    )


def cut_connections(world):
    """One daemon appends to eight sessions at once behind a proxy that cuts its connections at any moment of a statement."""
    server, wanted = world.server(), world.of(800)
    cuts = Cuts(world.seed, of_appends=0.25, of_others=0.02)
    proxy = world.proxy(server)
    daemon = world.daemon(server.url(port=proxy.port))
    histories = [History(daemon.new()) for _ in range(8)]
    proxy.plan = cuts.plan
    begun = time.monotonic()

    def write(history):
        for _ in range(wanted // len(histories)):
            text = history.next()
            try:
                history.answer(text, daemon.append(history.session, text))
            except Refused as error:
                expect(error.code == "storage_error" and error.data["retryable"], f"an append is refused otherwise: {error}")
                history.refuse(text)

    together(*(partial(write, history) for history in histories))
    took = time.monotonic() - begun
    proxy.plan = lambda *_: None
    for history in histories:
        text = history.next()
        history.answer(text, daemon.append(history.session, text))
    judge = world.daemon(server.url())
    for history in histories:
        daemon.close_session(history.session)
        file = check_rows(server, history.session)
        history.check(file)
        check_opened(judge, history, file)
    refused = sum(len(history.refused) for history in histories)
    expect(all(cuts.of.values()) or world.share < 1, f"no append was cut at one of the moments: {cuts.of}")
    moments = ", ".join(f"{count} {moment}" for moment, count in cuts.of.items())
    sent = sum(len(history.sent) for history in histories)
    return f"{sent} appends in {took:.0f} s over connections cut {proxy.cuts} times (appends: {moments}), {refused} refused and not there"
