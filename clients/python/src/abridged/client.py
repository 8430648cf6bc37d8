"""The client for asyncio."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from . import _binary
from ._connection import Connection, logger
from .errors import AbridgedError, CallTimedOut, ClientClosed, DaemonExited
from .version import __version__

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .types import Call, ClientCapabilities, Envelope, FitAnswer, FitParams, Hooks, LlmCallback, On, ReopenedSession, ToolCallback

PROTOCOL_VERSION = 1
HANDSHAKE_SECONDS = 30
RESTARTS_A_MINUTE = 5
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0


class Options(TypedDict, total=False):
    """The options of a client."""

    llm: LlmCallback | None
    """Runs a model for the daemon. A coroutine function is cancelled with its request; a function runs in a thread."""
    tools: ToolCallback | None
    """Executes a tool, in turns that the daemon runs."""
    hooks: Hooks | None
    """Answers hooks, by their names."""
    capabilities: ClientCapabilities | None
    """Further capabilities, beside those of the callbacks."""
    binary: str | None
    """The program. Default: ABRIDGED_BIN, the one that the package carries, `abridged` on PATH, ~/.cargo/bin/abridged."""
    env: Mapping[str, str] | None
    """Variables beside those of this process."""
    timeout: float | None
    """Seconds for an answer. Default: no limit."""


class Client:
    """A daemon of one's own. It is started again if it ends unexpectedly, with the sessions that were open."""

    def __init__(self, **options: Unpack[Options]) -> None:
        if unknown := options.keys() - Options.__annotations__.keys():
            raise TypeError(f"no option of a client: {', '.join(sorted(unknown))}")
        self._env = {**os.environ, **(options.get("env") or {})}
        self._binary, self._timeout = options.get("binary"), options.get("timeout")
        capabilities: dict[str, Any] = dict(options.get("capabilities") or {})
        self._callbacks: dict[str, Callable[[Any], Any]] = {}
        for name, method in ("llm", "llm/complete"), ("tools", "tool/call"):
            if callback := options.get(name):
                capabilities[name] = capabilities.get(name) or {}
                self._callbacks[method] = callback  # type: ignore[assignment]
        if hooks := options.get("hooks"):
            capabilities["hooks"] = {"events": list(hooks), **(capabilities.get("hooks") or {})}
            self._callbacks |= {f"hook/{name}": callback for name, callback in hooks.items()}  # type: ignore[misc]
        self._capabilities = capabilities
        self._connection: Connection | None = None
        self._restarting: asyncio.Task[None] | None = None
        self._restarts: list[float] = []
        self._sessions: dict[str, Mapping[str, Any] | None] = {}  # params that load it again; None: it cannot be loaded
        self._seen: dict[str, Mapping[str, Any] | None] = {}  # the last event of each session; None: unsubscribed
        self._listeners: dict[str, list[Callable[[Any], object]]] = {}
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()

    async def start(self) -> None:
        self._connection = await self._open()
        self._watch(self._connection)

    async def close(self) -> None:
        """Ends the daemon. Operations that run get at most 2 s."""
        connection, self._connection = self._connection, None
        if self._restarting:
            self._restarting.cancel()
            await asyncio.wait([self._restarting])
        if connection:
            await connection.close()
        self._end_streams(None)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def call(self) -> Call:
        """Sends a request: `await client.call("session/new", cwd="/tmp")`. Cancelling the task cancels the request."""
        return self._call

    async def fit(self, *, timeout: float | None = None, **params: Unpack[FitParams]) -> FitAnswer:
        """Fits messages into a window: `context/fit`."""
        return await self.call("context/fit", timeout=timeout, **params)

    async def activity(self, session_id: str) -> None:
        """Tells that the user is active, which puts off idle maintenance: `session/activity`."""
        (await self._connected()).notify("session/activity", {"sessionId": session_id})

    @property
    def on(self) -> On:
        """Registers a listener of a notification of the daemon, or of `reconnected`. Returns a function that removes it."""
        return self._on

    def on_event(self, listener: Callable[[Envelope], object], session_id: str | None = None) -> Callable[[], None]:
        """Registers a listener of the events of all sessions, or of one. Returns a function that removes it."""
        return self._on("session/event", lambda event: listener(event) if session_id in (None, event["sessionId"]) else None)

    def events(self, session_id: str | None = None) -> EventStream:
        """The events of all sessions, or of one, from now on and in order."""
        stream = EventStream(session_id)
        self._streams.add(stream)
        return stream

    async def _call(self, method: str, /, *, timeout: float | None = None, **params: Any) -> Any:
        connection = await self._connected()
        result = await connection.request(method, params, self._timeout if timeout is None else timeout)
        if method in ("session/new", "session/load", "session/fork"):
            session = result["session"]
            load = params if method == "session/load" else {"sessionId": session["sessionId"]}
            self._sessions[session["sessionId"]] = load if session["path"] else None
        elif method in ("session/close", "session/delete"):
            self._forget(params["sessionId"])
        elif method in ("session/subscribe", "session/unsubscribe"):
            self._seen[params["sessionId"]] = result and {"epoch": result["epoch"], "seq": result["seq"]}
        return result

    def _forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)
        self._seen.pop(session_id, None)

    def _on(self, notification: str, listener: Callable[[Any], object], /) -> Callable[[], None]:
        listeners = self._listeners.setdefault(notification, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def _notified(self, notification: str, params: Any) -> None:
        if notification == "session/event":
            self._seen[params["sessionId"]] = {"epoch": params["epoch"], "seq": params["seq"]}
            if made := params["event"].get("newSessionId"):
                self._sessions.setdefault(made, {"sessionId": made})
            for stream in list(self._streams):
                stream.put(params)
        for listener in list(self._listeners.get(notification, ())):
            try:
                listener(params)
            except Exception:
                logger.exception("a listener of %s failed", notification)

    async def _open(self) -> Connection:
        """Starts a daemon, and introduces the client."""
        connection = await Connection.open(_binary.find(self._binary, self._env), self._env, self._callbacks, self._notified)
        hello = {"protocolVersion": PROTOCOL_VERSION, "clientInfo": {"name": "abridged-python", "version": __version__},
                 "processId": os.getpid(), "capabilities": self._capabilities}
        try:
            await connection.request("initialize", hello, HANDSHAKE_SECONDS)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _watch(self, connection: Connection) -> None:
        """Starts the daemon again when it ends."""
        def ended(task: asyncio.Task[DaemonExited]) -> None:
            if self._connection is connection and not task.cancelled():
                self._restarted()

        connection.ended.add_done_callback(ended)

    def _restarted(self) -> asyncio.Task[None]:
        """The restart that runs, or a new one."""
        if self._restarting is None or self._restarting.done():
            self._restarting = asyncio.create_task(self._restart())
            # Without a call that waits for it, nobody else reads its error.
            self._restarting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._restarting

    async def _connected(self) -> Connection:
        """The connection, after a restart that runs. A later call tries again where restarts have failed."""
        if self._connection and self._connection.ended.done():
            await asyncio.shield(self._restarted())
        if self._connection is None:
            raise ClientClosed()
        return self._connection

    async def _restart(self) -> None:
        """Starts the daemon again, after a delay that doubles, and opens the sessions that were open."""
        assert self._connection
        failure: Exception = self._connection.ended.result()
        now = asyncio.get_running_loop().time
        while True:
            self._restarts = [time for time in self._restarts if now() - time < 60]
            if len(self._restarts) >= RESTARTS_A_MINUTE:
                self._end_streams(failure)
                raise failure
            delay = min(FIRST_DELAY * 2 ** len(self._restarts), LONGEST_DELAY)
            self._restarts.append(now())
            await asyncio.sleep(delay)
            connection = None
            try:
                connection = await self._open()
                sessions = [await self._reopen(connection, id) for id in list(self._sessions)]
                break
            except (DaemonExited, CallTimedOut, OSError) as error:
                failure = error
            except asyncio.CancelledError:
                if connection:
                    await connection.close()
                raise
        self._connection = connection
        self._watch(connection)
        self._notified("reconnected", {"sessions": sessions})

    async def _reopen(self, connection: Connection, id: str) -> ReopenedSession:
        """Loads a session again, and asks for the events since the last one that was seen."""
        load, after = self._sessions[id], self._seen.get(id, {})
        try:
            if load is None:
                raise AbridgedError("the session was in memory only; make a new one", code="not_found")
            await connection.request("session/load", load, self._timeout)
            if after is None:
                await connection.request("session/unsubscribe", {"sessionId": id}, self._timeout)
                return {"sessionId": id, "status": "ok"}
            subscribed = await connection.request("session/subscribe", {"sessionId": id, "after": after or None}, self._timeout)
            return {"sessionId": id, "status": subscribed["status"]}
        except (DaemonExited, CallTimedOut):
            raise
        except AbridgedError as error:
            self._forget(id)
            return {"sessionId": id, "status": "lost", "error": error.message}

    def _end_streams(self, error: Exception | None) -> None:
        for stream in list(self._streams):
            stream.end(error)


class EventStream(AsyncIterator["Envelope"]):
    """Events of a client. It ends with the client, and with an error if the daemon cannot be started again."""

    def __init__(self, session_id: str | None) -> None:
        self._session_id = session_id
        self._queue: asyncio.Queue[Envelope | Exception | None] = asyncio.Queue()

    def put(self, event: Envelope) -> None:
        if self._session_id in (None, event["sessionId"]):
            self._queue.put_nowait(event)

    def end(self, error: Exception | None) -> None:
        self._queue.put_nowait(error)

    async def __anext__(self) -> Envelope:
        event = await self._queue.get()
        if event is None or isinstance(event, Exception):
            self._queue.put_nowait(event)
            raise event or StopAsyncIteration
        return event
