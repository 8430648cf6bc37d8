"""The client without asyncio: the client for asyncio in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from .client import Client, EventStream, Options
from .errors import ClientClosed

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .types import Envelope, FitAnswer, FitParams, On, SyncCall

T = TypeVar("T")


class SyncClient:
    """A daemon of one's own, for any thread. Listeners run in the thread of the client, and must not wait for a call."""

    def __init__(self, **options: Unpack[Options]) -> None:
        self._client = Client(**options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="abridged", daemon=True)

    def start(self) -> None:
        self._thread.start()
        try:
            self._wait(self._client.start())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the daemon. Operations that run get at most 2 s."""
        if self._thread.is_alive():
            self._wait(self._client.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if not self._loop.is_closed():
            self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def call(self) -> SyncCall:
        """Sends a request: `client.call("session/new", cwd="/tmp")`. An interrupt cancels the request."""
        return self._call

    def fit(self, *, timeout: float | None = None, **params: Unpack[FitParams]) -> FitAnswer:
        """Fits messages into a window: `context/fit`."""
        return self.call("context/fit", timeout=timeout, **params)

    def activity(self, session_id: str) -> None:
        """Tells that the user is active, which puts off idle maintenance: `session/activity`."""
        self._wait(self._client.activity(session_id))

    @property
    def on(self) -> On:
        """Registers a listener of a notification of the daemon, or of `reconnected`. Returns a function that removes it."""
        return self._client.on

    def on_event(self, listener: Callable[[Envelope], object], session_id: str | None = None) -> Callable[[], None]:
        """Registers a listener of the events of all sessions, or of one. Returns a function that removes it."""
        return self._client.on_event(listener, session_id)

    def events(self, session_id: str | None = None) -> Iterator[Envelope]:
        """The events of all sessions, or of one, from now on and in order."""
        async def registered() -> EventStream:
            return self._client.events(session_id)

        return self._iterate(self._wait(registered()))

    def submit(self, method: str, /, *, timeout: float | None = None, **params: Any) -> Future[Any]:
        """Sends a request without waiting. Cancelling the future cancels the request."""
        return self._start(self._client._call(method, timeout=timeout, **params))

    def _call(self, method: str, /, *, timeout: float | None = None, **params: Any) -> Any:
        return self._wait(self._client._call(method, timeout=timeout, **params))

    def _iterate(self, stream: EventStream) -> Iterator[Envelope]:
        while True:
            try:
                event = self._wait(anext(stream))
            except (StopAsyncIteration, ClientClosed):
                return
            yield event

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if not self._thread.is_alive() or self._thread is threading.current_thread():
            work.close()
            if self._thread.is_alive():
                raise RuntimeError("a listener cannot wait for a call; make the call in another thread")
            raise ClientClosed()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = self._start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
