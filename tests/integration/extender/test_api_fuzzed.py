"""The API under what its own OpenAPI page allows and forbids (schemathesis), for nobody, a worker and people."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.extender.world import Operator, Replica
from support.on_cluster.service_account import allowed_to_read_jobs
from support.waiting import eventually
from synergy_kube.resources import TRAINING_JOBS

pytestmark = pytest.mark.integration

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
THOROUGH = settings(
    max_examples=15,  # of each operation and kind of input
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def _fuzz(replica: Replica, description: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, set[int]]:
    """Sends right and wrong requests to every operation; the statuses of the answers, by path."""
    answered: dict[str, set[int]] = {}

    def fuzz(operation: Any, mode: schemathesis.GenerationMode) -> None:
        @THOROUGH
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            address, authority = f"https://localhost:{replica.api_port}", str(replica.authority.certificate)
            answer = case.call(base_url=address, headers=dict(headers), verify=authority)
            answered.setdefault(case.path, set()).add(answer.status_code)
            case.validate_response(answer, checks=CHECKS)

        ask()

    for found in schemathesis.openapi.from_dict(dict(description)).get_all_operations():
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            wrong = mode is schemathesis.GenerationMode.NEGATIVE
            with suppress(*[Unsatisfiable] if wrong else []):  # there is nothing that could be wrong with some requests
                fuzz(found.ok(), mode)  # type: ignore[union-attr]
    return answered


async def _state(operator: Operator) -> dict[str, str]:
    """The version of each job, which changes with whatever is written to it."""
    items = (await operator.kube.list(TRAINING_JOBS, operator.namespace))["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}


async def test_no_request_breaks_the_api_or_changes_what_is_not_the_callers(
    operator: Operator, extender: Replica, rounds_of_an_hour: None
) -> None:
    await operator.submit("mine", gpus=1)
    granted = await operator.allocation("mine", state="Granted", admitted=True)
    (worker,) = await operator.start("mine", granted)
    await operator.submit("others", suspend=True)
    async with extender.api() as api:
        description = (await api.get("/openapi.json")).json()
    tokens = {
        "nobody": "",
        "a worker": await operator.token(worker),
        "a stranger": await operator.token(None, audience=None),
    }
    before = await _state(operator)
    answered = {}
    for who, token in tokens.items():
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answered[who] = await asyncio.to_thread(_fuzz, extender, description, headers)
    assert answered["nobody"]["/v1/lease"] <= {400, 401, 422}
    assert {200, 422} <= answered["a worker"]["/v1/lease"] <= {200, 400, 422}
    assert answered["a worker"]["/v1/snapshot"] <= {401, 422}
    assert answered["a stranger"]["/v1/lease"] <= {400, 401, 422}
    assert answered["a stranger"]["/v1/plan"] == {403}
    after = await _state(operator)
    assert after["others"] == before["others"]
    allocation = (await operator.job("mine"))["status"]["allocation"]
    its_own = {"round": allocation["round"], "leaseUntil": allocation["leaseUntil"]}  # an hour may have struck
    assert allocation == {**granted, **its_own}
    async with allowed_to_read_jobs(operator.kube, operator.namespace):
        headers = {"Authorization": f"Bearer {tokens['a stranger']}"}

        async def known() -> bool:
            async with extender.api() as api:
                return (await api.get("/v1/snapshot", headers=headers)).status_code == 200

        await eventually(known, seconds=15, what="the new role to be known")
        versions = await _state(operator)
        answered["a reader"] = await asyncio.to_thread(_fuzz, extender, description, headers)
        assert answered["a reader"]["/v1/snapshot"] >= {200, 422}
        assert await _state(operator) == versions
