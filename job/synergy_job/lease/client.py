"""One lease report: what is said to the extender and what it answers."""

from __future__ import annotations

import json
import ssl
import time
from dataclasses import asdict, dataclass
from http.client import BadStatusLine, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from synergy_job.environment import ConfigError
from synergy_job.forking import undivided
from synergy_job.lease.tls import Connection, tls_to
from synergy_job.wire import close_in_children

if TYPE_CHECKING:
    from synergy_job.environment import LeaseAccess

PATH = "/v1/lease"
TIMEOUT_S = 5.0
_LONGEST_ANSWER = 65536
_MOST_AGE_S = 600.0
"""How long one connection is used: another one may find another replica of the extender, and checks its certificate."""
_REPORT_EVERY_S = (0.2, 3600.0)
_NOT_VALID = 422
_FIRST_FIELDS = (
    "step",
    "checkpoint_step",
    "steps_per_second",
    "gpu_uuids",
    "done",
    "largest_tensor_bytes",
    "model_bytes",
    "save_seconds",
    "resume_seconds",
)
"""What every extender knows. An older one, as after a rollback, refuses reports with other fields."""


class LeaseError(Exception):
    """A report did not get through; the message says why. `refused` means that trying again will not help."""

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


@dataclass(frozen=True)
class Report:
    """What rank 0 says of its job."""

    step: int
    checkpoint_step: int
    steps_per_second: float
    gpu_uuids: tuple[str, ...] = ()
    done: bool = False
    largest_tensor_bytes: int | None = None
    model_bytes: int | None = None
    save_seconds: float | None = None
    resume_seconds: float | None = None
    epoch_steps: int | None = None
    trained_seconds: float | None = None
    paused_seconds: float | None = None
    metrics: dict[str, float] | None = None
    ended_early: str | None = None
    sent_bytes_per_step: int | None = None
    world_size: int | None = None


@dataclass(frozen=True)
class LeaseAnswer:
    """What the extender answers: whether to leave, after how many seconds, and when to report again; the pod's memory
    in the plan, None where it does not say."""

    leave: bool
    yield_in_s: float
    next_report_s: float
    memory_bytes: int | None = None


class LeaseClient:
    """Sends reports over TLS. The token is read anew for each, since the kubelet rotates it.

    The connection of one report is kept for the next. Two threads may send at once: the second opens its own.
    """

    def __init__(self, access: LeaseAccess, timeout_s: float = TIMEOUT_S) -> None:
        self._kept: list[tuple[Connection, float]] = []
        self._older_until = 0.0
        """Until then reports have only the fields of an older extender."""
        parts = urlsplit(access.url)
        if not parts.hostname:
            raise ConfigError(f"SYNERGY_EXTENDER_URL is {access.url!r}: it names no host")
        self._host, self._port = parts.hostname, parts.port or 443
        self._path = parts.path.rstrip("/") + PATH
        self._token_file = access.token_file
        self._timeout_s = timeout_s
        try:
            self._tls = tls_to(access.ca_cert, timeout_s)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"SYNERGY_CA_CERT is no certificate in PEM: {error}") from error

    def send(self, report: Report) -> LeaseAnswer:
        """One report. If the extender does not know all of its fields, the others are left out, and for 10 minutes not
        sent again: it may have been upgraded by then. The last report always tries all fields.

        Raises `LeaseError` when it did not get through or the answer makes no sense.
        """
        told = {k: v for k, v in asdict(report).items() if v is not None}
        first = {k: v for k, v in told.items() if k in _FIRST_FIELDS}
        if time.monotonic() < self._older_until and not report.done:
            told = first
        try:
            status, body = self._post(json.dumps(told))
            if status == _NOT_VALID and told != first:
                status, body = self._post(json.dumps(first))
                if status == 200:
                    self._older_until = time.monotonic() + _MOST_AGE_S
        except (OSError, HTTPException, ValueError) as error:
            raise LeaseError(f"{self._host}:{self._port} cannot be reached: {error or type(error).__name__}") from error
        if status != 200:
            raise LeaseError(f"the extender answered {status}: {body[:200]!r}", refused=status in (401, 403))
        return _verdict(body)

    def close(self) -> None:
        """Close the connection that is kept, if there is one."""
        while self._kept:
            self._kept.pop()[0].close()

    def __del__(self) -> None:
        # a collection may run it in a thread that holds what a fork waits for
        if undivided.acquire(blocking=False):
            try:
                self.close()
            finally:
                undivided.release()

    def _post(self, body: str) -> tuple[int, bytes]:
        with open(self._token_file, "rb") as file:  # as text it would import a codec, which a fork must not meet
            token = file.read().strip().decode("ascii")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        kept = self._take()
        if kept is not None:
            try:
                return self._exchange(*kept, body, headers)
            except (ConnectionError, BadStatusLine, ssl.SSLError):
                pass  # the server closed it meanwhile: a report says what is so, and may be said twice
        return self._exchange(self._open(), time.monotonic(), body, headers)

    def _open(self) -> Connection:
        connection = Connection(self._host, self._port, self._tls, self._timeout_s)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        close_in_children(connection.sock)
        return connection

    def _take(self) -> tuple[Connection, float] | None:
        """The kept connection and when it was opened, for the caller alone; None where there is none to use."""
        try:
            connection, opened = self._kept.pop()
        except IndexError:
            return None
        if time.monotonic() - opened < _MOST_AGE_S:
            return connection, opened
        connection.close()
        return None

    def _exchange(self, connection: Connection, opened: float, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
        """One report over the connection, which is kept if the answer has been read to its end."""
        try:
            connection.request("POST", self._path, body=body, headers=headers)
            answer = connection.getresponse()
            content = answer.read(_LONGEST_ANSWER)
        except BaseException:
            connection.close()
            raise
        if answer.isclosed() and connection.sock is not None and not self._kept:
            self._kept.append((connection, opened))
        else:
            connection.close()
        return answer.status, content


def _verdict(body: bytes) -> LeaseAnswer:
    try:
        answer = json.loads(body)
        leave = {"continue": False, "yield": True}[answer["verdict"]]
        yield_in_s = _seconds(answer, "yield_in_s") if leave else 0.0
        next_report_s = _seconds(answer, "next_report_s")
        memory_bytes = None if answer.get("memory_bytes") is None else int(answer["memory_bytes"])
    except (ValueError, KeyError, TypeError) as error:
        raise LeaseError(f"the extender's answer makes no sense ({error!r}): {body[:200]!r}") from error
    shortest, longest = _REPORT_EVERY_S
    return LeaseAnswer(leave, yield_in_s, min(max(next_report_s, shortest), longest), memory_bytes)


def _seconds(answer: dict[str, Any], field: str) -> float:
    value = float(answer[field])
    if not 0 <= value < float("inf"):
        raise ValueError(f"{field} is {value}")
    return value
