"""What the API server refuses, as exceptions that carry its own words."""

from collections.abc import Mapping
from typing import Any


class NoClusterError(OSError):
    """Nothing says where an API server is, or what says so cannot be read."""


class ApiError(Exception):
    """The API server answered with an error. `reason` and `message` are the Status object's; `retry_after_s` is the
    time in seconds that it asks its clients to wait before another try (Retry-After), None where it says nothing."""

    def __init__(self, code: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{code} {reason}: {message}" if reason else f"{code}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s


class NotFound(ApiError):  # noqa: N818 - named as Kubernetes names it
    """There is no such object (404)."""


class Conflict(ApiError):  # noqa: N818 - named as Kubernetes names it
    """It exists already, or changed since it was read (409)."""


class Gone(ApiError):  # noqa: N818 - named as Kubernetes names it
    """The resource version is too old to watch from (410)."""


class LongAnswer(Exception):  # noqa: N818 - named as the others
    """An answer is longer than the limit that was set for it. Nothing of it is kept."""


_BY_CODE: Mapping[int, type[ApiError]] = {404: NotFound, 409: Conflict, 410: Gone}


def error_of(code: int, status: Any, retry_after: str | None = None) -> ApiError:
    """The exception for an error answer; `status` is the decoded body, a Status object where all is well. A Service
    behind the API server may answer `{"error": "..."}` instead, which is a message without a reason.

    `retry_after` is the header of that name. Kubernetes writes whole seconds; another form counts as none.
    """
    if isinstance(status, Mapping):
        reason, message = str(status.get("reason") or ""), str(status.get("message") or status.get("error") or status)
    else:
        reason, message = "", str(status)
    wait = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
    return _BY_CODE.get(code, ApiError)(code, reason, message, wait)
