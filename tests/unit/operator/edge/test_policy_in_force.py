"""Which SchedulingPolicy the operator goes by."""

from typing import Any

import pytest

from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_operator.edge.caches.policy import PolicyReader

GOOD: dict[str, Any] = {"spec": {"policy": "hierarchical", "tenants": [{"name": "vision", "weight": 2}]}}
BAD: dict[str, Any] = {"spec": {"policy": "of-a-newer-version"}}


def test_the_last_good_policy_holds_where_the_written_one_does_not_parse(caplog: pytest.LogCaptureFixture) -> None:
    policy = PolicyReader()
    assert policy.read(BAD) == SchedulingPolicySpec()
    assert "does not parse, the defaults apply" in caplog.text
    assert [tenant.name for tenant in policy.read(GOOD).tenants] == ["vision"]
    caplog.clear()
    assert policy.read(BAD) == SchedulingPolicySpec.model_validate(GOOD["spec"])
    assert "does not parse, the last valid one applies" in caplog.text
    assert "of-a-newer-version" in caplog.text
    assert policy.read(None) == SchedulingPolicySpec()
