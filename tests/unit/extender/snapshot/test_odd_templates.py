"""Whatever stands in the pod template of one job, the cluster is read and the others are planned."""

from typing import Any

from hypothesis import given, settings

from support.api_server.odd_templates import odd_templates
from support.extender.cluster import NOW, cluster, job_object, node_object
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_extender.cluster.views import read_job
from synergy_extender.snapshot.snapshot import build_snapshot


@given(odd_templates())
@settings(max_examples=150)
def test_no_template_keeps_another_job_from_its_place(template: dict[str, Any]) -> None:
    odd = job_object("odd", spec={"template": template})
    node = node_object("n1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    node["metadata"]["labels"]["zone"] = "a"
    good = job_object("good", template={"tolerations": [{"operator": "Exists"}]})
    state = cluster([node], [read_job(odd), read_job(good)], tolerated=["k"])
    built = build_snapshot(state, mode="round", now=NOW, round_s=20)
    found = plan(built.snapshot, PlanConfig(policy="fifo", mechanism="tune", mode="round"))
    assert "team/good" in {place.job for place in found.allocations}
