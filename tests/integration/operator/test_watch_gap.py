"""A TrainingJob that is deleted while the operator's watch is cut, and that the API server has forgotten by then."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

import synergy_devcluster
from chaos.faults.api_server import UNREACHABLE, start_again
from chaos.faults.link import Break, Link
from chaos.stage import API_SERVER_PORT, through
from support.operator.stage import OperatorProcess, Stage, condition, running_operator, template
from support.waiting import eventually
from synergy_kube import NotFound
from synergy_kube.resources import TRAINING_JOBS

pytestmark = pytest.mark.integration


@asynccontextmanager
async def another_operator(other: OperatorProcess, kubeconfig: Path, folder: Path) -> AsyncIterator[OperatorProcess]:
    """An operator that runs meanwhile in the place of the other one."""
    await other.end(signal.SIGTERM)
    try:
        async with running_operator(kubeconfig, folder) as operator:
            yield operator
    finally:
        await other.start()


async def test_a_job_that_was_deleted_in_a_watch_gap_keeps_no_identical_job_from_being_profiled(
    stage: Stage,
    operator: OperatorProcess,
    devcluster: synergy_devcluster.Cluster,
    least_rights: Path,
    tmp_path: Path,
) -> None:
    pod = template()
    pod["spec"]["containers"][0]["args"] = [stage.namespace]  # identical to no job of another test
    spec = {"profile": {"mode": "Auto"}, "template": pod}
    async with Link("operator-api", lambda: [API_SERVER_PORT]) as link:
        kubeconfig = tmp_path / "cut.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(through(least_rights, link.port)))
        async with another_operator(operator, kubeconfig, tmp_path):
            await stage.submit("first", **spec)
            await stage.until("the first to ask", lambda s: (s.get("profile") or {}).get("request"), name="first")
            await stage.submit("second", **spec)
            await stage.until("the second to wait", waits, name="second")

            link.fail(Break.CUT)
            await stage.kube.delete(TRAINING_JOBS, "first", stage.namespace)

            async def gone() -> bool:
                try:
                    await stage.job("first")
                except NotFound:
                    return True
                return False

            async def served() -> bool:
                """The API server serves its own resources first."""
                try:
                    await stage.job("second")
                except UNREACHABLE:
                    return False
                return True

            await eventually(gone, seconds=20, what="the first job to go")
            await start_again(devcluster, stage.kube)
            await eventually(served, seconds=60, what="TrainingJobs to be served")
            link.heal()
            await stage.until(
                "the second to ask", lambda s: (s.get("profile") or {}).get("request"), name="second", seconds=60
            )


def waits(status: dict[str, object]) -> bool:
    """The job waits for an identical one's profile."""
    return bool(status.get("conditions")) and condition(status, "Profiled")["reason"] == "ProfileShared"
