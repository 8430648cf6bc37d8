"""A store behind pgbouncer, which gives each transaction a connection of its own choice."""

import shutil
import socket
import subprocess
import time

import server as servers
from followers import SOON, delays
from history import check_opened, check_rows
from outages import silence
from owners import FREE, hand_over, loads
from world import Skipped, expect, until


class Pooler:
    """A pgbouncer in transaction mode before a server."""

    def __init__(self, server, folder):
        self.folder, self.port = folder, servers.port()
        folder.mkdir()
        (folder / "pgbouncer.ini").write_text(f"""
[databases]
sessions = host=127.0.0.1 port={server.port} dbname=sessions user=owner
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
logfile = {folder}/log
""")
        servers.give(folder / "pgbouncer.ini", 0o600)
        servers.give(folder, 0o700)
        self.process = subprocess.Popen(
            [program(), "-q", str(folder / "pgbouncer.ini")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/", **servers.user(),
        )
        until(self.answers, 10, "pgbouncer answers")

    def answers(self):
        """Whether it takes connections."""
        expect(self.process.poll() is None, f"pgbouncer does not start: {self.said()}")
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self):
        """Ends it."""
        self.process.kill()
        self.process.wait(10)

    def said(self):
        """The end of its log."""
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""


def program():
    """The program, which Debian keeps out of an ordinary user's PATH."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/sbin")


def behind_a_pooler(world):
    """Behind pgbouncer, two daemons hand a session back and forth, one of them is killed, another one reads, and the server sleeps."""
    if not program():
        raise Skipped("pgbouncer is not installed (apt-get install pgbouncer)")
    server = world.server()
    pooler = world.keep(Pooler(server, world.place("pooler")))
    url, rounds = server.url(port=pooler.port), world.of(50)
    # Both keep their caches in one folder, as two daemons of a machine do.
    folder = world.place("daemons")
    daemons = [world.daemon(url, folder) for _ in range(2)]
    begun = time.monotonic()
    history = hand_over(daemons, rounds)
    took = (time.monotonic() - begun) / rounds
    first, second = daemons
    first.load(history.session)
    text = history.next()
    history.answer(text, first.append(history.session, text))
    error = second.refused("session/load", sessionId=history.session)
    expect(error.code == "locked" and error.data["pid"] == first.process.pid, f"a session that is open elsewhere: {error}")
    first.kill()
    _, free = until(lambda: loads(second, history.session), FREE, "the session of a killed daemon is free")
    text = history.next()
    history.answer(text, second.append(history.session, text))
    reader = world.daemon(url)
    reader.load(history.session, readOnly=True)
    seen = delays(second, reader, history.session, history, world.of(10))
    expect(seen[-1] < SOON, f"behind a pooler, an entry is seen after {seen[-1]:.1f} s")
    silent = silence(second, server, history)
    second.close_session(history.session)
    file = check_rows(server, history.session)
    history.check(file)
    check_opened(second, history, file)
    return (
        f"{rounds} times between two daemons, {took * 1000:.1f} ms each; the session of a killed one is free after {free:.1f} s; new entries are "
        f"seen after {seen[len(seen) // 2] * 1000:.0f} ms ({seen[-1] * 1000:.0f} ms at most); a server that sleeps is given up after {silent:.0f} s"
    )
