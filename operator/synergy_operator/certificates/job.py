"""Brings the Secrets in the cluster to what `renewal` decides, and restarts the scheduler when it must trust anew."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from synergy_api.names import GROUP
from synergy_api.timestamps import format_time, parse_time
from synergy_kube import Conflict, KubeClient, NotFound
from synergy_kube.resources import DEPLOYMENTS, SECRETS
from synergy_operator.certificates.renewal import Data, Lifetimes, Secrets, Wanted, renew

AUTHORITY: Final = "kube-synergy-ca"
EXTENDER: Final = "kube-synergy-extender-tls"
SCHEDULER: Final = "kube-synergy-scheduler-tls"
SCHEDULER_DEPLOYMENT: Final = "kube-synergy-scheduler"
SINCE: Final = f"{GROUP}/authorities-since"
"""On the authority's Secret: when the authorities that all shall trust last changed."""
RESTARTED: Final = f"{GROUP}/restarted-at"
_KEEP: Final = {"helm.sh/resource-policy": "keep"}
"""Secrets of an earlier release's chart would else be deleted by the upgrade that no longer names them."""
_TRIES: Final = 5

Object = dict[str, Any]


@dataclass(frozen=True)
class RenewalSettings:
    """Where the Secrets are, and what is wanted."""

    namespace: str
    wanted: Wanted
    lifetimes: Lifetimes


def read_settings(environ: Mapping[str, str]) -> RenewalSettings:
    """Settings from `SYNERGY_*` variables. Raises ValueError naming the variable."""
    namespace = environ.get("SYNERGY_NAMESPACE", "")
    hosts = tuple(name.strip() for name in environ.get("SYNERGY_EXTENDER_NAMES", "").split(",") if name.strip())
    if not namespace or not hosts:
        raise ValueError("set SYNERGY_NAMESPACE and SYNERGY_EXTENDER_NAMES in the environment")
    defaults = Lifetimes()
    lifetimes = Lifetimes(
        _days(environ, "SYNERGY_AUTHORITY_DAYS", defaults.authority),
        _days(environ, "SYNERGY_CERTIFICATE_DAYS", defaults.certificate),
        _days(environ, "SYNERGY_OVERLAP_DAYS", defaults.overlap),
    )
    scheduler = environ.get("SYNERGY_SCHEDULER_NAME", "") or "kube-synergy-scheduler"
    return RenewalSettings(namespace, Wanted(hosts, scheduler), lifetimes)


async def run(kube: KubeClient, settings: RenewalSettings, now: datetime) -> list[str]:
    """Look and change what must change; what was done, in words. May be stopped at any point and run again.

    Raises ApiError, aiohttp.ClientError or TimeoutError when the API server refuses or does not answer, and Conflict
    when somebody else goes on changing the same Secrets.
    """
    for attempt in range(_TRIES):
        try:
            return await _once(kube, settings, now)
        except Conflict:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("not reached")


async def _once(kube: KubeClient, settings: RenewalSettings, now: datetime) -> list[str]:
    found = [await _secret(kube, name, settings.namespace) for name in (AUTHORITY, EXTENDER, SCHEDULER)]
    held = Secrets(*(_data(item) for item in found))
    shall = renew(held, now, settings.lifetimes, settings.wanted)
    since = _annotations(found[0]).get(SINCE, "")
    if shall.authority["ca.crt"] != held.authority.get("ca.crt"):
        since = format_time(int(now.timestamp()))
    done = []
    # the authority first: what it signs must not be seen without it
    for name, item, data, notes in (
        (AUTHORITY, found[0], shall.authority, _KEEP | {SINCE: since}),
        (EXTENDER, found[1], shall.extender, _KEEP),
        (SCHEDULER, found[2], shall.scheduler, _KEEP),
    ):
        body = _shall_be(name, item, data, notes)
        if body != item:
            await _write(kube, settings.namespace, body, new=item is None)
            done.append(f"Secret {name} {'changed' if item else 'made'}")
    if await _restart_scheduler(kube, settings.namespace, parse_time(since), now):
        done.append(f"Deployment {SCHEDULER_DEPLOYMENT} restarted, to trust the new authority")
    return done or ["all certificates are as they shall be"]


async def _secret(kube: KubeClient, name: str, namespace: str) -> Object | None:
    try:
        return await kube.get(SECRETS, name, namespace)
    except NotFound:
        return None


def _shall_be(name: str, found: Object | None, data: Data, notes: dict[str, str]) -> Object:
    """The Secret with this data and these annotations; whatever else it has stays."""
    encoded = {key: base64.b64encode(value).decode("ascii") for key, value in data.items()}
    if found is None:
        labels = {"app.kubernetes.io/name": "kube-synergy", "app.kubernetes.io/component": "certificates"}
        metadata: Object = {"name": name, "labels": labels, "annotations": notes}
        return {"metadata": metadata, "type": "kubernetes.io/tls", "data": encoded}
    return {**found, "metadata": {**found["metadata"], "annotations": _annotations(found) | notes}, "data": encoded}


async def _write(kube: KubeClient, namespace: str, body: Object, *, new: bool) -> None:
    """Create or replace, guarded by the resource version."""
    if new:
        await kube.create(SECRETS, body, namespace)
    else:
        await kube.replace(SECRETS, body["metadata"]["name"], body, namespace)


async def _restart_scheduler(kube: KubeClient, namespace: str, since: float, now: datetime) -> bool:
    """kube-scheduler reads its own certificate anew whenever it changes, but the authorities at its start only."""
    try:
        deployment = await kube.get(DEPLOYMENTS, SCHEDULER_DEPLOYMENT, namespace)
    except NotFound:
        return False
    restarted = (deployment["spec"]["template"]["metadata"].get("annotations") or {}).get(RESTARTED)
    started = parse_time(restarted or deployment["metadata"]["creationTimestamp"])
    if since <= started:
        return False
    template = {"metadata": {"annotations": {RESTARTED: format_time(int(now.timestamp()))}}}
    await kube.merge_patch(DEPLOYMENTS, SCHEDULER_DEPLOYMENT, {"spec": {"template": template}}, namespace)
    return True


def _annotations(item: Object | None) -> dict[str, str]:
    return dict((item or {"metadata": {}})["metadata"].get("annotations") or {})


def _data(item: Object | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in ((item or {}).get("data") or {}).items()}


def _days(environ: Mapping[str, str], name: str, default: timedelta) -> timedelta:
    text = environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or not 0 < int(text) <= 36500:
        raise ValueError(f"{name} is {text!r}: give a number of days from 1 to 36500")
    return timedelta(days=int(text))
