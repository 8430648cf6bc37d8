"""The things of a scenario: servers, daemons and proxies, each in a folder of its own, all ended with it."""

import itertools
import shutil
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from daemon import Daemon
from proxy import Proxy
from server import server_of


class Skipped(Exception):
    """A scenario needs something that is not there."""


class World:
    """A scenario's own world in a folder. `share` is the part of the whole counts that is wanted, and `seed` that of all chance."""

    def __init__(self, folder, template, share, seed):
        self.folder, self.template, self.share, self.seed = folder, template, share, seed
        self.numbers, self.ends, self.parts = itertools.count(), ExitStack(), {}
        folder.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind and kind is not Skipped:
            for part in self.parts.values():
                print(f"--- {part.folder.name} said\n{part.said()}", file=sys.stderr)
        self.close()

    def close(self):
        """Ends all parts of it."""
        self.ends.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def of(self, count):
        """As much of a whole count as is wanted."""
        return max(1, round(count * self.share))

    def place(self, name):
        """A fresh folder, which is not made yet."""
        return self.folder / f"{name}{next(self.numbers)}"

    def server(self, configuration="", **environment):
        """A server of its own."""
        return self.keep(server_of(self.template, self.place("server"), configuration, environment))

    def replica(self, server):
        """A replica of a server."""
        return self.keep(server.replica(self.place("replica")))

    def daemon(self, url, folder=None, **more):
        """A daemon. `folder` is that of an earlier one, whose cache it finds."""
        return self.keep(Daemon(url, folder or self.place("daemon"), **more))

    def proxy(self, server, **more):
        """A proxy before a server."""
        proxy = Proxy(server.port, **more)
        self.ends.callback(proxy.close)
        return proxy

    def silent_port(self):
        """A port that takes connections and never answers."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.ends.callback(listener.close)
        return listener.getsockname()[1]

    def keep(self, part):
        """A part that ends with the scenario, and tells what it said if the scenario fails."""
        self.parts[part.folder] = part
        self.ends.callback(part.close)
        return part


def expect(holds, what):
    """Fails the scenario where something does not hold."""
    if not holds:
        raise AssertionError(what)


def together(*functions):
    """The results of functions that run at once, in their order. A failure of one is that of all."""
    with ThreadPoolExecutor(len(functions)) as pool:
        return [running.result() for running in [pool.submit(function) for function in functions]]


def until(wanted, seconds, what):
    """Polls until something holds. Returns its value and the seconds that it took."""
    begun = time.monotonic()
    while True:
        value = wanted()
        took = time.monotonic() - begun
        if value:
            return value, took
        expect(took < seconds, f"{what}: not within {seconds} s")
        time.sleep(0.02)
