"""A daemon over pipes, with a folder of its own."""

import itertools
import json
import os
import select
import subprocess

PROGRAM = os.environ.get("ABRIDGED_BIN", "abridged")


class Refused(Exception):
    """An error answer, with the code of its data."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.message, self.rpc_code = error["message"], error["code"]
        self.code = (error.get("data") or {}).get("code")


class Daemon:
    """One request at a time; events are not read. An answer comes within `seconds`."""

    def __init__(self, folder, seconds=60):
        folders = {"ABRIDGED_DATA_DIR": str(folder / "data"), "ABRIDGED_CONFIG_DIR": str(folder / "config")}
        program = [PROGRAM, "serve"]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **folders})
        self.ids, self.rest, self.seconds = itertools.count(1), b"", seconds
        self.call("initialize", protocolVersion=1, clientInfo={"name": "importers", "version": "1"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()

    def line(self):
        """The next line. select() bounds the wait, so the pipe is read without a buffer of Python's."""
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], self.seconds)[0]:
                raise TimeoutError(f"no answer within {self.seconds} s")
            more = os.read(self.process.stdout.fileno(), 1 << 20)
            if not more:
                raise RuntimeError(f"the daemon ended with {self.process.wait()}")
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def call(self, command, **params):
        id = next(self.ids)
        frame = json.dumps({"jsonrpc": "2.0", "id": id, "method": command, "params": params})
        self.process.stdin.write(frame.encode() + b"\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.line())
            if answer.get("id") == id and "method" not in answer:
                if "error" in answer:
                    raise Refused(answer["error"])
                return answer["result"]

    def entries(self, session):
        """All entries of a session, of all branches, and the id of its leaf."""
        entries, since = [], {}
        while True:
            page = self.call("session/entries", sessionId=session, branch="all", limit=1000, **since)
            entries += page["entries"]
            if not page.get("nextCursor"):
                return entries, page["leafEntryId"]
            since = {"since": page["nextCursor"]}

    def read(self, path):
        """A session of another agent, read in place: what it is, its entries, its leaf and its context."""
        loaded = self.call("session/load", path=str(path), readOnly=True)
        id = loaded["session"]["sessionId"]
        try:
            entries, leaf = self.entries(id)
            context = self.call("session/context", sessionId=id)
        finally:
            self.call("session/close", sessionId=id)
        return {"session": loaded["session"], "repairs": loaded["repairs"], "entries": entries, "leaf": leaf, "context": context}
