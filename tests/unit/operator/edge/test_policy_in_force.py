"""Which SchedulingPolicy the operator goes by."""

from pathlib import Path
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, connected
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_operator.edge.controller import Controller
from synergy_operator.edge.environment import Environment

GOOD: dict[str, Any] = {"spec": {"policy": "hierarchical", "tenants": [{"name": "vision", "weight": 2}]}}
BAD: dict[str, Any] = {"spec": {"policy": "of-a-newer-version"}}


async def test_the_last_good_policy_holds_where_the_written_one_does_not_parse(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async with connected(WatchServer()) as client:
        controller = Controller(client, Environment("image", "https://extender", tmp_path), lambda: 0.0)

        def with_written(policy: dict[str, Any] | None) -> SchedulingPolicySpec:
            monkeypatch.setattr(controller._policies, "get", lambda *_: policy)
            return controller._policy()

        assert with_written(BAD) == SchedulingPolicySpec()
        assert "does not parse, the defaults apply" in caplog.text
        assert [tenant.name for tenant in with_written(GOOD).tenants] == ["vision"]
        caplog.clear()
        assert with_written(BAD) == SchedulingPolicySpec.model_validate(GOOD["spec"])
        assert "does not parse, the last valid one applies" in caplog.text
        assert "of-a-newer-version" in caplog.text
        assert with_written(None) == SchedulingPolicySpec()
