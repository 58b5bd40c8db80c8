"""What a drain means for the jobs on a node."""

from typing import Any

from support.extender.cluster import NOW, allocation, job_object, share
from synergy_view.drain import IN_TIME, LATE, LEAVING, NEVER, PROFILE, DrainRow, drain_rows
from synergy_view.seen import SeenJob, read


def on(name: str, node: str = "n1", spec: dict[str, Any] | None = None, **more: Any) -> SeenJob:
    held = allocation(share(node, gpus=2), **more)
    return read(job_object(name, gpus=2, spec=spec or {}, status={"phase": "Running", "allocation": held}))


JOBS = [
    on("d", spec={"preemption": "Never"}),
    on("a"),
    on("b", state="Revoked"),
    on("c", purpose="Profile"),
    on("elsewhere", node="n2"),
    on("over", state="Released"),
]


def leaves(empty_by_s: float) -> dict[str, str]:
    return {row.job: row.leaves for row in drain_rows(JOBS, "n1", empty_by_s=empty_by_s, now=NOW, round_s=20)}


def test_each_job_there_is_told_with_what_becomes_of_it() -> None:
    assert leaves(NOW + 20) == {"team/a": IN_TIME, "team/b": LEAVING, "team/c": PROFILE, "team/d": NEVER}
    assert leaves(NOW + 19)["team/a"] == LATE


def test_jobs_that_no_plan_moves_are_marked() -> None:
    rows = drain_rows(JOBS, "n1", empty_by_s=NOW + 60, now=NOW, round_s=20)
    assert [row.job for row in rows if row.stays] == ["team/d"]
    assert rows[0] == DrainRow(job="team/a", gpus=2, leaves=IN_TIME)
