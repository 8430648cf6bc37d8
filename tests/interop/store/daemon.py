"""A daemon on a store: requests wait for their answers in any thread, notifications are kept."""

import itertools
import json
import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path

from processes import state_of

PROGRAM = os.environ.get("ABRIDGED_BIN", "abridged")


class Refused(Exception):
    """An error answer."""

    def __init__(self, error):
        self.data = error.get("data") or {}
        self.code, self.message = self.data.get("code"), error["message"]
        super().__init__(f"{self.code}: {self.message} {json.dumps(self.data)}")


class Gone(Exception):
    """The daemon ended before its answer."""


def places(url, folder):
    """The environment of a program whose data, settings and cache are below a folder, and whose store has an address."""
    return {
        **os.environ, "ABRIDGED_STORE": url, "ABRIDGED_DATA_DIR": str(folder / "data"), "ABRIDGED_CONFIG_DIR": str(folder / "config"),
    }


def run(url, folder, *arguments, **environment):
    """Runs a command of the program to its end."""
    return subprocess.run(
        [PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        env={**places(url, folder), **environment},
    )


class Daemon:
    """A process `abridged serve --store`. Its data, settings and cache are below `folder`, which outlives it."""

    def __init__(self, url, folder, settings=None, capabilities=None, **environment):
        folder.mkdir(exist_ok=True)
        config = folder / "config"
        config.mkdir(exist_ok=True)
        if settings is not None:
            (config / "settings.json").write_text(json.dumps(settings))
        self.folder, self.errors = folder, folder / "stderr"
        with open(self.errors, "a") as errors:
            self.process = subprocess.Popen(
                [PROGRAM, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env={**places(url, folder), **environment},
            )
        self.ids, self.waiting, self.lock = itertools.count(1), {}, threading.Lock()
        self.told, self.news = [], threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        about = {"clientInfo": {"name": "store", "version": "1"}, "capabilities": capabilities or {}}
        self.limits = self.call("initialize", protocolVersion=1, **about)["limits"]

    def _read(self):
        for line in self.process.stdout:
            frame = json.loads(line)
            if "method" not in frame:
                with self.lock:
                    answers = self.waiting.pop(frame["id"], None)
                if answers:
                    answers.put(frame)
            else:
                with self.news:
                    self.told.append((time.monotonic(), frame["method"], frame["params"]))
                    self.news.notify_all()
        with self.lock:
            left, self.waiting = self.waiting, None
        for answers in left.values():
            answers.put(None)

    def send(self, method, /, **params):
        """Sends a request; `answer` waits for its answer."""
        answers = queue.SimpleQueue()
        with self.lock:
            if self.waiting is None:
                raise Gone(method)
            id = next(self.ids)
            self.waiting[id] = answers
            frame = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            try:
                self.process.stdin.write(frame.encode() + b"\n")
                self.process.stdin.flush()
            except OSError:
                raise Gone(method) from None
        return answers

    def answer(self, answers, seconds=60):
        """The result of a request that was sent."""
        try:
            frame = answers.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"no answer within {seconds} s") from None
        if frame is None:
            raise Gone("no answer")
        if "error" in frame:
            raise Refused(frame["error"])
        return frame["result"]

    def call(self, method, /, seconds=60, **params):
        """The result of a request."""
        return self.answer(self.send(method, **params), seconds)

    def new(self, cwd="/project", **params):
        """The id of a new session."""
        return self.call("session/new", cwd=cwd, **params)["session"]["sessionId"]

    def say(self, session, *texts):
        """Sends requests of the user, to be appended; `answer` waits for the answer."""
        return self.send("session/append", sessionId=session, messages=[message(text) for text in texts])

    def append(self, session, *texts, seconds=60):
        """Appends requests of the user. Returns the ids of their entries."""
        return self.answer(self.say(session, *texts), seconds)["entryIds"]

    def load(self, session, **params):
        """Opens a session."""
        return self.call("session/load", sessionId=session, **params)["session"]

    def close_session(self, session):
        """Closes a session."""
        self.call("session/close", sessionId=session)

    def entries(self, session):
        """All entries of a session."""
        entries, since = [], {}
        while True:
            page = self.call("session/entries", sessionId=session, branch="all", **since)
            entries += page["entries"]
            if not page.get("nextCursor"):
                return entries
            since = {"since": page["nextCursor"]}

    def texts(self, session):
        """The texts of the user in the context of a session."""
        messages = self.call("session/context", sessionId=session)["messages"]
        return [text_of(message) for message in messages if message["role"] == "user"]

    def refused(self, method, /, **params):
        """The error of a request, which must be refused."""
        return self.refusal(self.send(method, **params), method)

    def refusal(self, answers, what="a request"):
        """The error of a request that was sent, which must be refused."""
        try:
            result = self.answer(answers)
        except Refused as error:
            return error
        raise AssertionError(f"{what} is answered: {json.dumps(result)[:300]}")

    def wait(self, wanted, seconds, what, since=0):
        """The first notification after `since` ones for which `wanted(method, params)` holds, with its time."""
        end, seen = time.monotonic() + seconds, since
        with self.news:
            while True:
                for at, method, params in self.told[seen:]:
                    if wanted(method, params):
                        return at, params
                seen = len(self.told)
                if not self.news.wait(end - time.monotonic()) and time.monotonic() > end:
                    raise AssertionError(f"{what} is not told within {seconds} s")

    def notice(self, code, seconds, since=0):
        """The first notice with a code after `since` notifications."""
        return self.wait(lambda method, params: method == "notice" and params["code"] == code, seconds, f"the notice {code}", since)

    def kill(self):
        """Kills it."""
        self.process.kill()
        self.process.wait(10)

    def pause(self):
        """Stops its process, as a machine that sleeps."""
        self.process.send_signal(signal.SIGSTOP)
        # A thread that is not stopped yet would take the next request.
        while any(state_of(task) != "T" for task in Path(f"/proc/{self.process.pid}/task").iterdir()):
            time.sleep(0.001)

    def resume(self):
        """Ends the pause."""
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        """Ends it in order. Returns its exit code."""
        self.process.stdin.close()
        return self.process.wait(30)

    def close(self):
        """Ends it, however it is."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def said(self):
        """The end of what it wrote to stderr."""
        return self.errors.read_text(errors="replace")[-3000:]


def message(text):
    """A request of the user."""
    return {"role": "user", "content": text, "timestamp": 1}


def text_of(message):
    """The text of a message, be it a string or a list of blocks."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
