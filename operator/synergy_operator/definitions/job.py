"""Applies the packaged definitions, and creates the SchedulingPolicy `default` if there is none."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from synergy_api.generation.crd import KINDS, custom_resource_definition
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicySpec
from synergy_kube import Conflict, KubeClient, NotFound
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULING_POLICIES
from synergy_operator.definitions.upgrade_check import check_upgrade, version_of
from synergy_service.settings import EnvironmentReader

MANAGER: Final = "kube-synergy-definitions"
_ESTABLISHED_TRIES: Final = 60
_PAUSE_S: Final = 0.5

Object = dict[str, Any]


@dataclass(frozen=True)
class UpgradeSettings:
    """What the Job does. `policy` is the spec of the default policy, None to create none."""

    upgrade: bool = True
    allow_downgrade: bool = False
    policy: Mapping[str, Any] | None = None


def read_settings(environ: Mapping[str, str]) -> UpgradeSettings:
    """Settings from `SYNERGY_*` variables. Raises ValueError that names the variable."""
    read = EnvironmentReader(environ)
    text = read.text("SYNERGY_DEFAULT_POLICY", "")
    return UpgradeSettings(
        upgrade=read.switch("SYNERGY_UPGRADE_DEFINITIONS", default=True),
        allow_downgrade=read.switch("SYNERGY_ALLOW_DOWNGRADE", default=False),
        policy=_policy(text) if text else None,
    )


def packaged() -> list[Object]:
    """The definitions of this image."""
    return [custom_resource_definition(kind) for kind in KINDS]


async def run(kube: KubeClient, settings: UpgradeSettings, definitions: Sequence[Object]) -> list[str]:
    """Apply the definitions and return what was done, one line each. It may be interrupted and run again.

    Raises DowngradeError before any change if a definition would be downgraded. Raises ApiError, aiohttp.ClientError or
    TimeoutError if the API server refuses or does not answer.
    """
    done: list[str] = []
    if settings.upgrade:
        done += await _upgrade(kube, definitions, allow_downgrade=settings.allow_downgrade)
    if settings.policy is not None:
        done.append(await _make_policy(kube, settings.policy))
    return done


async def _upgrade(kube: KubeClient, definitions: Sequence[Object], *, allow_downgrade: bool) -> list[str]:
    before = [await _found(kube, item["metadata"]["name"]) for item in definitions]
    if not allow_downgrade:
        for there, wanted in zip(before, definitions, strict=True):
            check_upgrade(there, wanted)
    done = []
    for there, wanted in zip(before, definitions, strict=True):
        name = wanted["metadata"]["name"]
        applied = await kube.apply(CUSTOM_RESOURCE_DEFINITIONS, name, wanted, manager=MANAGER)
        old = "none" if there is None else version_of(there) or "one without a version"
        generation = (there or {}).get("metadata", {}).get("generation")
        changed = "unchanged" if generation == applied["metadata"]["generation"] else f"applied over {old}"
        done.append(f"definition {name} {version_of(wanted)}: {changed}")
    for wanted in definitions:
        await _established(kube, wanted["metadata"]["name"])
    return done


async def _found(kube: KubeClient, name: str) -> Object | None:
    try:
        return await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except NotFound:
        return None


async def _established(kube: KubeClient, name: str) -> None:
    for _ in range(_ESTABLISHED_TRIES):
        status = (await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)).get("status") or {}
        if any(item["type"] == "Established" and item["status"] == "True" for item in status.get("conditions") or ()):
            return
        await asyncio.sleep(_PAUSE_S)
    raise TimeoutError(f"CustomResourceDefinition {name} is not established")


async def _make_policy(kube: KubeClient, spec: Mapping[str, Any]) -> str:
    """Create the default policy. An existing one belongs to somebody and is not changed."""
    try:
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": DEFAULT_POLICY_NAME}, "spec": dict(spec)})
    except Conflict:
        return f"SchedulingPolicy {DEFAULT_POLICY_NAME}: there already, left as it is"
    return f"SchedulingPolicy {DEFAULT_POLICY_NAME}: created"


def _policy(text: str) -> Mapping[str, Any]:
    try:
        spec = json.loads(text)
        SchedulingPolicySpec.model_validate(spec)
    except (json.JSONDecodeError, ValidationError) as error:
        raise ValueError(f"SYNERGY_DEFAULT_POLICY is not a valid spec of a SchedulingPolicy: {error}") from None
    return dict(spec)
