"""An older CustomResourceDefinition: the operator goes on without the fields that it lacks, and says so."""

from pathlib import Path

import pytest

from support.api_server.crds import without_fields
from support.operator.stage import NODES, OperatorProcess, Stage
from support.waiting import eventually
from synergy_kube import KubeClient

pytestmark = pytest.mark.integration

FIELD = "status.conditions[].observedGeneration"


async def test_a_job_starts_under_an_older_definition_and_its_status_is_whole_after_the_upgrade(
    kube: KubeClient, repository: Path, stage: Stage, operator: OperatorProcess
) -> None:
    before = operator.log.read_text()

    async def logged(words: str) -> None:
        """New since the test's start: the operator also tells at its own that all is well."""

        async def there() -> bool:
            return operator.log.read_text().count(words) > before.count(words)

        await eventually(there, seconds=40, what=f"the operator to log {words}", every=0.1)

    path = ("status", "conditions", "[]", "observedGeneration")
    async with without_fields(kube, repository, "trainingjobs", path):
        await logged(f"trainingjobs.kube-synergy.dev: {FIELD}; upgrade it with")
        await stage.submit()
        status = await stage.phase("Queued")
        assert not [item for item in status["conditions"] if "observedGeneration" in item]
        await stage.grant((NODES[0], 1, 1000, 8))
        await eventually(stage.pods, seconds=20, what="the worker's pod", every=0.1)
    await logged("declare every field that the operator writes")
    await stage.submit("later")
    status = await stage.phase("Queued", name="later")
    assert any("observedGeneration" in item for item in status["conditions"])
