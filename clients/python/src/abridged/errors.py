"""The errors of a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class AbridgedError(Exception):
    """A request failed. `code` tells the cause to a program, and the message says what to do next."""

    def __init__(
        self, message: str, *, code: str, retryable: bool = False, data: Mapping[str, Any] | None = None, rpc_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """`error.data.code` of the daemon, or the code of an error of the client itself."""
        self.retryable = retryable
        """Whether the same request can succeed later."""
        self.data = dict(data or {})
        """All of `error.data`."""
        self.rpc_code = rpc_code
        """The number of JSON-RPC; None for an error of the client itself."""

    @classmethod
    def of_answer(cls, error: Mapping[str, Any]) -> AbridgedError:
        data: dict[str, Any] = error.get("data") or {}
        return cls(error["message"], code=data.get("code", "internal"), retryable=data.get("retryable", False), data=data,
                   rpc_code=error["code"])


class BinaryNotFound(AbridgedError):
    """The daemon is not installed."""

    def __init__(self, places: Sequence[str], named: str = "") -> None:
        self.places = list(places)
        looked = "".join(f"\n  {place}" for place in places)
        super().__init__(f"the program abridged is in none of these places{named}:{looked}\nInstall it with `cargo install abridged`, or install "
                         "a wheel of the package abridged that is made for this platform and carries it.", code="binary_not_found")


class DaemonExited(AbridgedError):
    """The daemon ended while the client needed it. The client starts it again; a request without an answer is not repeated."""

    def __init__(self, exit_code: int | None, stderr: str) -> None:
        self.exit_code, self.stderr = exit_code, stderr
        """The last 4 KiB of stderr."""
        last = "; its last words: " + stderr.strip() if stderr.strip() else ""
        super().__init__(f"abridged ended with exit code {exit_code}; repeat the request{last}", code="daemon_exited", retryable=True,
                         data={"exitCode": exit_code, "stderr": stderr})


class CallTimedOut(AbridgedError, TimeoutError):
    """The answer did not come in time. The request is cancelled."""

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(f"{method} has no answer after {seconds:g} s; give it a longer `timeout`", code="timed_out", retryable=True)


class ClientClosed(AbridgedError):
    """The client is closed, or was never started."""

    def __init__(self) -> None:
        super().__init__("the client is not open; use it inside of `with`, or between start() and close()", code="client_closed")
