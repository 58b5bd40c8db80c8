"""Writes the Secrets that `renewal` decides on, and restarts the scheduler if it must load new authorities."""

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
from synergy_service.settings import EnvironmentReader

AUTHORITY: Final = "kube-synergy-ca"
EXTENDER: Final = "kube-synergy-extender-tls"
SCHEDULER: Final = "kube-synergy-scheduler-tls"
SCHEDULER_DEPLOYMENT: Final = "kube-synergy-scheduler"
SINCE: Final = f"{GROUP}/authorities-since"
"""On the authority's Secret: when the set of trusted authorities last changed."""
RESTARTED: Final = f"{GROUP}/restarted-at"
_KEEP: Final = {"helm.sh/resource-policy": "keep"}
"""Without it, the upgrade from an earlier release would delete Secrets that the new chart no longer contains."""
_TRIES: Final = 5

Object = dict[str, Any]


@dataclass(frozen=True)
class RenewalSettings:
    """The namespace of the Secrets, the names to certify, and the lifetimes."""

    namespace: str
    wanted: Wanted
    lifetimes: Lifetimes


def read_settings(environ: Mapping[str, str]) -> RenewalSettings:
    """Settings from `SYNERGY_*` variables. Raises ValueError that names the variable."""
    read = EnvironmentReader(environ)
    namespace = read.text("SYNERGY_NAMESPACE", "")
    hosts = tuple(name.strip() for name in read.text("SYNERGY_EXTENDER_NAMES", "").split(",") if name.strip())
    if not namespace or not hosts:
        raise ValueError("set SYNERGY_NAMESPACE and SYNERGY_EXTENDER_NAMES in the environment")
    defaults = Lifetimes()
    lifetimes = Lifetimes(
        _days(read, "SYNERGY_AUTHORITY_DAYS", defaults.authority),
        _days(read, "SYNERGY_CERTIFICATE_DAYS", defaults.certificate),
        _days(read, "SYNERGY_OVERLAP_DAYS", defaults.overlap),
    )
    scheduler = read.text("SYNERGY_SCHEDULER_NAME", "kube-synergy-scheduler")
    return RenewalSettings(namespace, Wanted(hosts, scheduler), lifetimes)


async def run(kube: KubeClient, settings: RenewalSettings, now: datetime) -> list[str]:
    """Bring the Secrets up to date, and return what was done, one line each. It may be interrupted and run again.

    Raises ApiError, aiohttp.ClientError or TimeoutError if the API server refuses or does not answer. Raises Conflict
    if somebody else keeps changing the same Secrets.
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
    wanted = renew(held, now, settings.lifetimes, settings.wanted)
    since = _annotations(found[0]).get(SINCE, "")
    if wanted.authority["ca.crt"] != held.authority.get("ca.crt"):
        since = format_time(int(now.timestamp()))
    done = []
    # the authority first: what it signed must not be visible without it
    for name, item, data, notes in (
        (AUTHORITY, found[0], wanted.authority, _KEEP | {SINCE: since}),
        (EXTENDER, found[1], wanted.extender, _KEEP),
        (SCHEDULER, found[2], wanted.scheduler, _KEEP),
    ):
        body = _wanted_secret(name, item, data, notes)
        if body != item:
            await _write(kube, settings.namespace, body, new=item is None)
            done.append(f"Secret {name} {'changed' if item else 'made'}")
    if await _restart_scheduler(kube, settings.namespace, parse_time(since), now):
        done.append(f"Deployment {SCHEDULER_DEPLOYMENT} restarted, to trust the new authority")
    return done or ["all certificates are up to date"]


async def _secret(kube: KubeClient, name: str, namespace: str) -> Object | None:
    try:
        return await kube.get(SECRETS, name, namespace)
    except NotFound:
        return None


def _wanted_secret(name: str, found: Object | None, data: Data, notes: dict[str, str]) -> Object:
    """The Secret with this data and these annotations. Its other fields stay."""
    encoded = {key: base64.b64encode(value).decode("ascii") for key, value in data.items()}
    if found is None:
        labels = {"app.kubernetes.io/name": "kube-synergy", "app.kubernetes.io/component": "certificates"}
        metadata: Object = {"name": name, "labels": labels, "annotations": notes}
        return {"metadata": metadata, "type": "kubernetes.io/tls", "data": encoded}
    return {**found, "metadata": {**found["metadata"], "annotations": _annotations(found) | notes}, "data": encoded}


async def _write(kube: KubeClient, namespace: str, body: Object, *, new: bool) -> None:
    """Create or replace the Secret, guarded by its resourceVersion."""
    if new:
        await kube.create(SECRETS, body, namespace)
    else:
        await kube.replace(SECRETS, body["metadata"]["name"], body, namespace)


async def _restart_scheduler(kube: KubeClient, namespace: str, since: float, now: datetime) -> bool:
    """Restart kube-scheduler if the authorities changed after its start.

    It reloads its own certificate whenever that changes, but reads the authorities at its start only.
    """
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


def _days(read: EnvironmentReader, name: str, default: timedelta) -> timedelta:
    return timedelta(days=read.whole(name, default.days, least=1, most=36500, what="a number of days"))
