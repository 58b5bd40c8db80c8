"""Kubernetes events of TrainingJobs. An event that cannot be posted is logged and lost: nothing depends on it."""

import logging
import secrets
from typing import Final

import aiohttp

from synergy_api import names
from synergy_api.timestamps import format_time
from synergy_kube import ApiError, KubeClient
from synergy_kube.resources import EVENTS
from synergy_operator.actions import PostEvent
from synergy_operator.views import JobView

_LOG = logging.getLogger(__name__)
_LONGEST_MESSAGE: Final = 1000


async def post_event(client: KubeClient, job: JobView, event: PostEvent, now: float) -> None:
    """Post one event and write it to the log."""
    level = logging.WARNING if event.kind == "Warning" else logging.INFO
    _LOG.log(level, "%s/%s: %s: %s", job.namespace, job.name, event.reason, event.message)
    moment = format_time(float(int(now)))
    body = {
        "metadata": {"name": f"{job.name}.{secrets.token_hex(8)}", "namespace": job.namespace},
        "involvedObject": {
            "apiVersion": names.API_VERSION,
            "kind": "TrainingJob",
            "namespace": job.namespace,
            "name": job.name,
            "uid": job.uid,
        },
        "type": event.kind,
        "reason": event.reason,
        "message": event.message[:_LONGEST_MESSAGE],
        "source": {"component": names.MANAGER_OPERATOR},
        "reportingComponent": names.MANAGER_OPERATOR,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
    try:
        await client.create(EVENTS, body, job.namespace)
    except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
        _LOG.warning("%s/%s: event %s not posted: %s", job.namespace, job.name, event.reason, error)
