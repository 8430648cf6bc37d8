"""`fit` without a client: all calls of a process share a daemon, which ends with the process."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import threading
from typing import TYPE_CHECKING

from .sync import SyncClient

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .types import FitAnswer, FitParams, SettingsInput

# The process is part of the key: after a fork the daemon belongs to the parent.
_clients: dict[tuple[int, str | None, str | None], SyncClient] = {}
_lock = threading.Lock()


def fit(
    *, binary: str | None = None, settings: SettingsInput | None = None, timeout: float | None = None, **params: Unpack[FitParams]
) -> FitAnswer:
    """Fits messages into a window: `context/fit`. `settings` stand in the place of ABRIDGED_SETTINGS, in a daemon of their own."""
    return _client(binary, settings).fit(timeout=timeout, **params)


async def afit(
    *, binary: str | None = None, settings: SettingsInput | None = None, timeout: float | None = None, **params: Unpack[FitParams]
) -> FitAnswer:
    """`fit` for asyncio. Cancelling the task cancels the request."""
    client = await asyncio.to_thread(_client, binary, settings)
    answer: FitAnswer = await asyncio.wrap_future(client.submit("context/fit", timeout=timeout, **params))
    return answer


def _client(binary: str | None, settings: SettingsInput | None) -> SyncClient:
    text = json.dumps(settings, sort_keys=True) if settings else None
    key = os.getpid(), binary, text
    with _lock:
        if key not in _clients:
            client = SyncClient(binary=binary, env={"ABRIDGED_SETTINGS": text} if text else None)
            client.start()
            _clients[key] = client
        return _clients[key]


@atexit.register
def _close() -> None:
    for (process, *_), client in _clients.items():
        if process == os.getpid():
            client.close()


def _after_fork() -> None:
    # Another thread of the parent may have held the lock.
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
