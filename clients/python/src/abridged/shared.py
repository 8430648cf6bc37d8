"""`fit` without a client: all calls of a process share a daemon, which ends with the process."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from typing import TYPE_CHECKING

from .sync import SyncClient

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .types import FitAnswer, FitParams

# The process is part of the key: after a fork the daemon belongs to the parent.
_clients: dict[tuple[int, str | None], SyncClient] = {}
_lock = threading.Lock()


def fit(*, binary: str | None = None, timeout: float | None = None, **params: Unpack[FitParams]) -> FitAnswer:
    """Fits messages into a window: `context/fit`."""
    return _client(binary).fit(timeout=timeout, **params)


async def afit(*, binary: str | None = None, timeout: float | None = None, **params: Unpack[FitParams]) -> FitAnswer:
    """Fits messages into a window, for asyncio. Cancelling the task cancels the request."""
    client = await asyncio.to_thread(_client, binary)
    answer: FitAnswer = await asyncio.wrap_future(client.submit("context/fit", timeout=timeout, **params))
    return answer


def _client(binary: str | None) -> SyncClient:
    key = os.getpid(), binary
    with _lock:
        if key not in _clients:
            client = SyncClient(binary=binary)
            client.start()
            _clients[key] = client
        return _clients[key]


@atexit.register
def _close() -> None:
    for (process, _), client in _clients.items():
        if process == os.getpid():
            client.close()


def _after_fork() -> None:
    # Another thread of the parent may have held the lock.
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
