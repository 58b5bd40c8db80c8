"""The client of the API server."""

from synergy_kube.reads import Reads
from synergy_kube.writes import Writes


class KubeClient(Reads, Writes):
    """An asynchronous client. Every method raises ApiError (NotFound, Conflict, Gone) with the API server's words, and
    aiohttp.ClientError or TimeoutError when the server cannot be reached."""
