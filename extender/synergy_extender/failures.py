"""The ways in which calls of the API server fail."""

import aiohttp

from synergy_kube import ApiError

NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)
"""The API server cannot be reached, or did not answer in time."""
CALL_FAILED = (ApiError, *NO_ANSWER)
"""It refused, or gave no answer."""


def explain(error: BaseException) -> str:
    """What happened, in words; a timeout has none of its own."""
    return str(error) or type(error).__name__
