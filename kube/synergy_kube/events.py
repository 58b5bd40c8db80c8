"""Kubernetes events. One that cannot be posted is logged and lost: nothing depends on it."""

import logging
import secrets
from dataclasses import dataclass
from typing import Final, Literal

import aiohttp

from synergy_kube.client import KubeClient
from synergy_kube.errors import ApiError
from synergy_kube.resources import EVENTS, Resource

_LOG = logging.getLogger(__name__)
_LONGEST_MESSAGE: Final = 1000
_OF_THE_CLUSTER: Final = "default"
"""Where Kubernetes keeps the events of objects without a namespace."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an event is about. `namespace` is empty for one without; `uid` may be empty where it is gone."""

    resource: Resource
    name: str
    uid: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.resource.kind} {'/'.join(part for part in (self.namespace, self.name) if part)}"


async def post_event(
    client: KubeClient,
    subject: Subject,
    *,
    kind: Literal["Normal", "Warning"],
    reason: str,
    message: str,
    component: str,
    at: str,
) -> None:
    """Post one event and write it to the log. `component` is its source, `at` is RFC 3339 in whole seconds."""
    level = logging.WARNING if kind == "Warning" else logging.INFO
    _LOG.log(level, "%s: %s: %s", subject, reason, message)
    namespace = subject.namespace or _OF_THE_CLUSTER
    involved = {
        "apiVersion": subject.resource.api_version,
        "kind": subject.resource.kind,
        "name": subject.name,
        "uid": subject.uid,
        "namespace": subject.namespace,
    }
    body = {
        "metadata": {"name": f"{subject.name}.{secrets.token_hex(8)}", "namespace": namespace},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "type": kind,
        "reason": reason,
        "message": message[:_LONGEST_MESSAGE],
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    try:
        await client.create(EVENTS, body, namespace)
    except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
        _LOG.warning("%s: event %s not posted: %s", subject, reason, error)
