"""One run of the daemon: a child process, and the frames that are exchanged with it."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import logging
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from typing import Any

from .errors import AbridgedError, CallTimedOut, DaemonExited

logger = logging.getLogger("abridged")

Callbacks = Mapping[str, Callable[[Any], Any]]
"""The functions that answer requests of the daemon, by method."""

STDERR_KEPT = 4096
CLOSING_SECONDS = 3


class Connection:
    """Requests to a daemon, and its requests and notifications to the client."""

    def __init__(self, process: Process, callbacks: Callbacks, notified: Callable[[str, Any], None]) -> None:
        assert process.stdin and process.stdout and process.stderr
        self._process, self._stdin, self._stdout, self._stderr = process, process.stdin, process.stdout, process.stderr
        self._callbacks, self._notified = callbacks, notified
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked: dict[str | int, asyncio.Task[None]] = {}
        self._last_words = b""
        self._draining = asyncio.create_task(self._drain())
        self.ended: asyncio.Task[DaemonExited] = asyncio.create_task(self._read())
        """Done when the process has ended."""

    @classmethod
    async def open(cls, binary: str, env: Mapping[str, str], callbacks: Callbacks, notified: Callable[[str, Any], None]) -> Connection:
        # In a session of its own the daemon does not get the Ctrl-C of a terminal, and the client ends it in good order.
        process = await asyncio.create_subprocess_exec(binary, "serve", stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env,
                                                       limit=1 << 20, start_new_session=True)
        return cls(process, callbacks, notified)

    async def request(self, method: str, params: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Sends a request and returns its result. A cancelled task and a timeout cancel the request."""
        if self.ended.done():
            raise self.ended.result()
        loop = asyncio.get_running_loop()
        id, answer = next(self._ids), loop.create_future()
        timer = loop.call_later(timeout, fail, answer, CallTimedOut(method, timeout)) if timeout is not None else None
        self._waiting[id] = answer
        try:
            self._send(id=id, method=method, params=params)
            return await answer
        except (asyncio.CancelledError, CallTimedOut):
            self.notify("$/cancelRequest", {"id": id})
            raise
        finally:
            del self._waiting[id]
            if timer:
                timer.cancel()

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send(method=method, params=params)

    async def close(self) -> None:
        """Ends the daemon by the end of its input, and kills it if it takes longer than 3 s."""
        self._stdin.close()
        await asyncio.wait([self.ended], timeout=CLOSING_SECONDS)
        if not self.ended.done():
            self._process.kill()
        await self.ended

    def _send(self, **frame: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0"} | frame, ensure_ascii=False, separators=(",", ":"))
        if not self._stdin.is_closing():
            self._stdin.write(line.encode("utf-8", "surrogatepass") + b"\n")

    async def _read(self) -> DaemonExited:
        """Reads frames until the process ends."""
        parts: list[bytes] = []
        try:
            while chunk := await self._stdout.read(1 << 20):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    await self._receive(b"".join([*parts, line]))
                    parts.clear()
                parts.append(rest)
        except Exception:
            logger.exception("the program wrote a line that is no frame of JSON-RPC")
            self._stdin.close()
        try:
            exit_code = await asyncio.wait_for(self._process.wait(), CLOSING_SECONDS)
        except asyncio.TimeoutError:
            self._process.kill()
            exit_code = await self._process.wait()
        # A child of the daemon may hold its stderr open.
        await asyncio.wait([self._draining], timeout=0.5)
        self._draining.cancel()
        exited = DaemonExited(exit_code, self._last_words.decode(errors="replace"))
        for task in self._asked.values():
            task.cancel()
        for answer in self._waiting.values():
            fail(answer, DaemonExited(exited.exit_code, exited.stderr))
        return exited

    async def _receive(self, line: bytes) -> None:
        if not line.strip():
            return
        frame = json.loads(line)
        method, id = frame.get("method"), frame.get("id")
        if method == "$/cancelRequest":
            if task := self._asked.get(frame["params"]["id"]):
                task.cancel()
        elif method and id is not None:
            self._asked[id] = task = asyncio.create_task(self._answer(id, method, frame.get("params")))
            task.add_done_callback(lambda _: self._asked.pop(id, None))
        elif method:
            self._notified(method, frame.get("params"))
        elif (answer := self._waiting.get(id)) and not answer.done():
            if error := frame.get("error"):
                fail(answer, AbridgedError.of_answer(error))
            else:
                answer.set_result(frame["result"])
            # The task that waits goes on before the next frame, which may be an event about the answer.
            await asyncio.sleep(0)

    async def _answer(self, id: str | int, method: str, params: Any) -> None:
        """Runs the callback of a request. An exception is an answer, too: the daemon goes on without the callback."""
        try:
            callback = self._callbacks.get(method)
            if callback is None:
                return self._send(id=id, error={"code": -32601, "message": f"the client has no callback for {method}"})
            is_async = inspect.iscoroutinefunction(callback)
            result = callback(params) if is_async else await asyncio.to_thread(callback, params)
            self._send(id=id, result=await result if inspect.isawaitable(result) else result)
        except asyncio.CancelledError:
            self._send(id=id, error={"code": -32800, "message": f"{method} was cancelled"})
        except Exception as error:
            self._send(id=id, error={"code": -32603, "message": str(error) or repr(error)})

    async def _drain(self) -> None:
        while chunk := await self._stderr.read(STDERR_KEPT):
            self._last_words = (self._last_words + chunk)[-STDERR_KEPT:]


def fail(answer: asyncio.Future[Any], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
