"""A client of abridged, the daemon that keeps the sessions of LLM agents inside the model's context window."""

from __future__ import annotations

from .client import Client, EventStream
from .errors import AbridgedError, BinaryNotFound, CallTimedOut, ClientClosed, DaemonExited
from .shared import afit, fit
from .sync import SyncClient
from .version import __version__

connect = Client
"""Starts a daemon: `async with abridged.connect() as client`."""
connect_sync = SyncClient
"""Starts a daemon: `with abridged.connect_sync() as client`."""

__all__ = [
    "AbridgedError",
    "BinaryNotFound",
    "CallTimedOut",
    "Client",
    "ClientClosed",
    "DaemonExited",
    "EventStream",
    "SyncClient",
    "__version__",
    "afit",
    "connect",
    "connect_sync",
    "fit",
]
