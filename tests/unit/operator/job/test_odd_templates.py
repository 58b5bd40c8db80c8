"""Whatever stands in a pod template, the reconcile gets through: the job is told what is wrong, or gets its pods."""

from typing import Any

from hypothesis import given, settings

from support.api_server.odd_templates import odd_templates
from support.operator.world import World


@given(odd_templates())
@settings(max_examples=150)
def test_no_template_breaks_the_reconcile(template: dict[str, Any]) -> None:
    world = World(template=template)
    world.settle()
    if world.status.phase == "Pending":
        assert world.status.problem is not None
        assert world.posted() == [world.status.problem.reason]
        return
    world.grant()
    world.settle()
    assert world.status.service is not None
    assert world.status.service.run == 1


@given(odd_templates())
@settings(max_examples=100)
def test_no_template_breaks_a_profile_series(template: dict[str, Any]) -> None:
    world = World(template=template, profile={"mode": "Auto"})
    world.settle()
    if world.status.phase == "Profiling":
        world.grant(("n1", 1, 12000, 8), purpose="Profile")
        world.settle()
    assert world.status.phase in ("Pending", "Profiling")
