"""The chart's certificate Job on a real API server, with the rights that the chart gives it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from support.on_cluster.service_account import kubeconfig_of
from support.programs import run as run_program
from synergy_devcluster import Cluster
from synergy_kube import KubeClient
from synergy_kube.errors import ApiError, NotFound
from synergy_kube.resources import DEPLOYMENTS, SECRETS
from synergy_operator.certificates.job import (
    AUTHORITY,
    EXTENDER,
    RESTARTED,
    SCHEDULER,
    SCHEDULER_DEPLOYMENT,
    SINCE,
    RenewalSettings,
    run,
)
from synergy_operator.certificates.renewal import Lifetimes, Wanted

pytestmark = pytest.mark.integration

DAY = timedelta(days=1)
LIFETIMES = Lifetimes(authority=60 * DAY, certificate=9 * DAY, overlap=5 * DAY)
Rules = list[dict[str, Any]]


@pytest_asyncio.fixture(scope="module")
async def rules(devcluster: Cluster, repository: Path) -> Rules:
    """What the chart lets the Job do."""
    chart = str(repository / "helm" / "kube-synergy")
    rendered = await run_program(devcluster, "helm", "template", "kube-synergy", chart, "--kube-version=1.36")
    roles = {item["metadata"]["name"]: item["rules"] for item in yaml.safe_load_all(rendered) if item["kind"] == "Role"}
    assert roles["kube-synergy-certificates"] == roles["kube-synergy-certificates-install"]
    found: Rules = roles["kube-synergy-certificates"]
    return found


@pytest.fixture
def settings(namespace: str) -> RenewalSettings:
    return RenewalSettings(namespace, Wanted(("extender.svc",), "kube-synergy-scheduler"), LIFETIMES)


@pytest_asyncio.fixture
async def with_rules(devcluster: Cluster, kube: KubeClient, tmp_path: Path) -> AsyncIterator[Callable[[Rules], Any]]:
    """Makes a client that may do what the rules say and nothing else."""
    async with AsyncExitStack() as stack:

        @asynccontextmanager
        async def client(allowed: Rules) -> AsyncIterator[KubeClient]:
            async with (
                kubeconfig_of(kube, devcluster.kubeconfig, allowed, tmp_path) as file,
                await KubeClient.connect(kubeconfig=str(file)) as made,
            ):
                yield made

        async def make(allowed: Rules) -> KubeClient:
            return await stack.enter_async_context(client(allowed))

        yield make


async def _deployment(kube: KubeClient, namespace: str) -> None:
    labels = {"app": "scheduler"}
    container = {"name": "scheduler", "image": "fake"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    await kube.create(DEPLOYMENTS, {"metadata": {"name": SCHEDULER_DEPLOYMENT}, "spec": spec}, namespace)


async def _restarted(kube: KubeClient, namespace: str) -> str | None:
    template = (await kube.get(DEPLOYMENTS, SCHEDULER_DEPLOYMENT, namespace))["spec"]["template"]
    stamp: str | None = (template["metadata"].get("annotations") or {}).get(RESTARTED)
    return stamp


async def _life(kube: KubeClient, job: KubeClient, settings: RenewalSettings) -> list[tuple[int, list[str]]]:
    """From the first install through a whole authority: what was done on which day."""
    namespace, now, story = settings.namespace, datetime.now(UTC).replace(microsecond=0), []
    for day in range(62):
        if day == 1:
            await _deployment(kube, namespace)
        done = await run(job, settings, now + day * DAY)
        if done != ["all certificates are up to date"]:
            story.append((day, [line.split()[1] for line in done]))
    return story


async def test_the_job_makes_renews_and_replaces_with_its_rights_and_restarts_the_scheduler_when_it_must(
    kube: KubeClient, settings: RenewalSettings, rules: Rules, with_rules: Callable[[Rules], Any]
) -> None:
    story = await _life(kube, await with_rules(rules), settings)
    assert story[0] == (0, [AUTHORITY, EXTENDER, SCHEDULER])
    assert story[1] == (7, [EXTENDER, SCHEDULER])  # the first day of their last third
    restarts = [day for day, done in story if SCHEDULER_DEPLOYMENT in done]
    changes = [day for day, done in story if AUTHORITY in done]
    assert restarts == [41, 51]  # a new authority is trusted; the old one no more
    assert changes == [0, 41, 46, 51]
    secret = await kube.get(SECRETS, AUTHORITY, settings.namespace)
    assert secret["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert secret["metadata"]["annotations"][SINCE] == await _restarted(kube, settings.namespace)


async def test_without_any_one_of_its_rights_the_job_does_not_get_through(
    kube: KubeClient, settings: RenewalSettings, rules: Rules, with_rules: Callable[[Rules], Any]
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    await _deployment(kube, settings.namespace)
    removed = []
    for verb, name, left in _each_right_removed(rules):
        for secret in (AUTHORITY, EXTENDER, SCHEDULER):
            with suppress(NotFound):
                await kube.delete(SECRETS, secret, settings.namespace)
        await run(kube, settings, now)
        if verb == "create":
            await kube.delete(SECRETS, EXTENDER, settings.namespace)
        job = await with_rules(left)
        with pytest.raises(ApiError, match="forbidden") as refused:
            await run(job, settings, now + 41 * DAY)
        assert refused.value.code == 403, (verb, name)
        removed.append((verb, name))
    assert len(removed) == 9


def _each_right_removed(rules: Rules) -> Iterator[tuple[str, str, Rules]]:
    """Each verb and name, and what is left of the rules without it."""
    for number, rule in enumerate(rules):
        others = [*rules[:number], *rules[number + 1 :]]
        for verb in rule["verbs"]:
            less = [{**rule, "verbs": [other for other in rule["verbs"] if other != verb]}]
            for name in rule.get("resourceNames", [""]):
                names = [other for other in rule.get("resourceNames", []) if other != name]
                still = [{**rule, "verbs": [verb], "resourceNames": names}] if names else []
                yield verb, name, [part for part in (*others, *less, *still) if part["verbs"]]


async def test_a_secret_of_an_earlier_release_is_kept_and_its_authority_stays_trusted(
    kube: KubeClient, settings: RenewalSettings
) -> None:
    """The release before this one had Helm make certificates and threw the authority's key away."""
    now = datetime.now(UTC).replace(microsecond=0)
    await run(kube, settings, now)
    await kube.delete(SECRETS, AUTHORITY, settings.namespace)
    before = await kube.get(SECRETS, EXTENDER, settings.namespace)
    owned = {"annotations": {"helm.sh/resource-policy": None, "meta.helm.sh/release-name": "kube-synergy"}}
    await kube.merge_patch(SECRETS, EXTENDER, {"metadata": owned}, settings.namespace)

    await run(kube, settings, now + DAY)

    after = await kube.get(SECRETS, EXTENDER, settings.namespace)
    assert after["data"]["tls.crt"] == before["data"]["tls.crt"]
    assert len(after["data"]["ca.crt"]) > len(before["data"]["ca.crt"])
    annotations = after["metadata"]["annotations"]
    assert annotations["helm.sh/resource-policy"] == "keep"
    assert annotations["meta.helm.sh/release-name"] == "kube-synergy"


async def test_two_jobs_at_once_agree(kube: KubeClient, settings: RenewalSettings) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    await asyncio.gather(*(run(kube, settings, now) for _ in range(3)))
    assert await run(kube, settings, now) == ["all certificates are up to date"]
    await asyncio.gather(*(run(kube, settings, now + 41 * DAY) for _ in range(3)))
    assert await run(kube, settings, now + 41 * DAY) == ["all certificates are up to date"]
