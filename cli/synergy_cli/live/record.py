"""The dashboard's history, asked with the user's own rights.

The request goes to the API server, which passes it on to the dashboard's Service. The API server takes the header
Authorization for itself, so the user's token is in a header of its own (decision 56).
"""

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import aiohttp
import click

from synergy_cli.live.access import Cluster
from synergy_cli.live.output import note
from synergy_kube import ApiError, Resource

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_SERVICE: Final = "kube-synergy-dashboard:http"
_VIEWER: Final = "kube-synergy-dashboard-viewer"
_TOKEN_HEADER: Final = "X-Synergy-Token"  # noqa: S105 - its name
_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)


class NoRecordError(Exception):
    """The history cannot be asked; the text says why."""


@dataclass(frozen=True, slots=True)
class Record:
    """The dashboard of a cluster, and the token that the user shows it."""

    cluster: Cluster
    system_namespace: str
    token: str

    async def get(self, path: str, **query: str | float | None) -> bytes:
        """The answer at a path of the API. Raises NoRecordError."""
        asked = {name: str(value) for name, value in query.items() if value is not None}
        try:
            return await self.cluster.client.get_from_service(
                _SERVICE, self.system_namespace, f"/api/v1/{path}", query=asked, headers={_TOKEN_HEADER: self.token}
            )
        except ApiError as error:
            raise NoRecordError(_refusal(error)) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoRecordError(f"it does not answer: {error or 'no answer in time'}") from None

    async def json(self, path: str, **query: str | float | None) -> Any:
        """The same, decoded."""
        return json.loads(await self.get(path, **query))


def system_namespace_option(function: F) -> F:
    """Where the chart is installed."""
    help_text = "Namespace that the chart is installed in."
    return click.option("--system-namespace", default="kube-synergy", show_default=True, help=help_text)(function)


async def from_record(
    cluster: Cluster,
    system_namespace: str,
    recorded: Callable[[Record], Coroutine[Any, Any, T]],
    otherwise: Callable[[], Coroutine[Any, Any, T]],
) -> T:
    """What the dashboard's history answers. Where it cannot be asked, what objects and events still tell, with a note
    that says so."""
    try:
        return await recorded(Record(cluster, system_namespace, await _token(cluster, system_namespace)))
    except NoRecordError as error:
        note(f"only what objects and events still tell, because the dashboard's history cannot be asked: {error}")
    return await otherwise()


async def _token(cluster: Cluster, system_namespace: str) -> str:
    """The user's own; that of the viewer for administrators who authenticate with a certificate."""
    own = await cluster.client.bearer_token()
    if own:
        return own
    request: Mapping[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    try:
        made = await cluster.client.create_subresource(_ACCOUNTS, _VIEWER, "token", request, system_namespace)
    except ApiError as error:
        if error.code == 404:
            raise NoRecordError(f"no dashboard is installed in namespace {system_namespace}") from None
        raise NoRecordError(f"your kubeconfig has no token, and you get none of {_VIEWER}: {error.message}") from None
    return str(made["status"]["token"])


def _refusal(error: ApiError) -> str:
    """In words of the user: the API server's refusals have a reason, those of the dashboard have none."""
    if not error.reason:
        return error.message
    if error.code == 404:
        return "no dashboard is installed"
    if error.code == 403:
        return "it is not installed, or you may not get its Service through the API server (services/proxy)"
    return f"it does not answer: {error.message}"
