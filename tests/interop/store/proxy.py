"""A way to a server that can be cut: between a daemon and its database, on loopback."""

import socket
import threading

# Moments at which a connection is cut, as seen from a statement of the client: it does not leave; a part of it leaves; the
# server has it all and its answer is lost; the server has answered, and that is lost.
BEFORE, INSIDE, SENT, DONE = MOMENTS = ("before", "inside", "sent", "done")


class Proxy:
    """Listens on a port of loopback, and connects each client with the server.

    `plan(bytes, pair)` sees each piece that a client sends, and may name the moment at which its connection is cut."""

    def __init__(self, port, plan=lambda *_: None):
        self.target, self.plan = port, plan
        self.refuses, self.cuts = False, 0
        self.pairs, self.lock = set(), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.refuses:
                    raise OSError("refused")
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = Pair(self, client, server)
            with self.lock:
                self.pairs.add(pair)
            for pump in (pair.up, pair.down):
                threading.Thread(target=pump, daemon=True).start()

    def cut(self, but=None):
        """Cuts all connections, or all but one."""
        with self.lock:
            pairs = [pair for pair in self.pairs if pair is not but]
        for pair in pairs:
            pair.cut()

    def close(self):
        """Ends it."""
        # A listener that is closed keeps a thread in accept(), and one that is shut down does not.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


class Pair:
    """A connection of a client and the one to the server."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.drops_answers = False

    def up(self):
        """Moves the bytes of the client."""
        while data := received(self.client):
            moment = self.proxy.plan(data, self)
            if moment:
                self.proxy.cuts += 1
            if moment == BEFORE:
                break
            self.drops_answers = moment == DONE
            if not sent(self.server, data[: len(data) // 2] if moment == INSIDE else data):
                break
            if moment in (INSIDE, SENT):
                break
        if not self.drops_answers:
            self.cut()

    def down(self):
        """Moves the bytes of the server."""
        while data := received(self.server):
            if self.drops_answers or not sent(self.client, data):
                break
        self.drops_answers = False
        self.cut()

    def cut(self):
        """Closes both. The server reads first all that was sent to it."""
        with self.proxy.lock:
            self.proxy.pairs.discard(self)
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


def received(end):
    """The next bytes, or none."""
    try:
        return end.recv(1 << 18)
    except OSError:
        return b""


def sent(end, data):
    """Whether bytes could be sent."""
    try:
        end.sendall(data)
        return True
    except OSError:
        return False
