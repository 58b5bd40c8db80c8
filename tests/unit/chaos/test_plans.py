"""A seed gives the same faults and jobs each time, and jobs that the API takes."""

import pytest

from chaos.faults.draw import KINDS, schedule
from chaos.workload import fake_nodes, workload
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_devcluster import parse_fake_nodes


def test_the_same_seed_is_the_same_run() -> None:
    assert schedule(7, 60) == schedule(7, 60)
    assert workload(7, 30, 100.0) == workload(7, 30, 100.0)


def test_another_seed_is_another_run() -> None:
    assert schedule(7, 60) != schedule(8, 60)
    assert workload(7, 30, 100.0) != workload(8, 30, 100.0)


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_fault_comes_where_there_are_enough(seed: int) -> None:
    faults = schedule(seed, len(KINDS))
    assert {fault.kind for fault in faults} == set(KINDS)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    assert all(KINDS[fault.kind][1][0] <= fault.seconds <= KINDS[fault.kind][1][1] for fault in faults)


@pytest.mark.parametrize("seed", range(20))
def test_every_job_is_one_that_the_api_takes(seed: int) -> None:
    jobs = workload(seed, 100, 60.0)
    assert len({job.name for job in jobs}) == 100
    for job in jobs:
        spec = TrainingJobSpec.model_validate(job.spec)
        assert spec.gpus % (spec.gpus_per_worker or spec.gpus) == 0


@pytest.mark.parametrize(("jobs", "gpus"), [(1, 64), (100, 64), (101, 72), (2000, 1280)])
def test_the_cluster_grows_with_the_jobs(jobs: int, gpus: int) -> None:
    assert sum(group.nodes * group.gpus for group in parse_fake_nodes(fake_nodes(jobs))) == gpus
