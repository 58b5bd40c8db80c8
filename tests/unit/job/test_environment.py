"""What the library reads of its environment, and what it says of a wrong one."""

import pytest

from synergy_job.environment import ConfigError, LeaseAccess, Profile, Worker, read_environment

WORKER = {
    "SYNERGY_JOB": "mnist",
    "SYNERGY_NAMESPACE": "team",
    "SYNERGY_RUN": "3",
    "SYNERGY_STEPS": "100",
    "WORLD_SIZE": "2",
    "RANK": "1",
    "MASTER_ADDR": "mnist-3-0.tj-mnist.team.svc",
    "SYNERGY_PEER_PORT": "29499",
    "SYNERGY_EXTENDER_URL": "https://extender:9444",
    "SYNERGY_TOKEN_FILE": "/token",
    "SYNERGY_CA_CERT": "PEM",
    "NVIDIA_VISIBLE_DEVICES": "GPU-1,MIG-2",
}


def test_without_a_job_this_is_outside_a_cluster() -> None:
    assert read_environment({"RANK": "not even a number", "PATH": "/bin"}) is None


def test_a_worker_is_read_whole() -> None:
    assert read_environment(WORKER) == Worker(
        job="mnist",
        namespace="team",
        run=3,
        steps=100,
        rank=1,
        world_size=2,
        local_rank=0,
        master_addr="mnist-3-0.tj-mnist.team.svc",
        peer_port=29499,
        lease=LeaseAccess("https://extender:9444", "/token", "PEM"),
        gpu_uuids=("GPU-1", "MIG-2"),
        termination_log="/dev/termination-log",
    )


def test_a_profile_run_needs_no_job() -> None:
    assert read_environment({**WORKER, "SYNERGY_PROFILE_SOCKET": "@here"}) == Profile("@here", rank=1)


def test_one_process_without_control_plane_needs_little() -> None:
    names = ("SYNERGY_JOB", "SYNERGY_NAMESPACE", "SYNERGY_RUN", "SYNERGY_STEPS")
    found = read_environment({name: WORKER[name] for name in names})
    assert isinstance(found, Worker)
    assert (found.rank, found.world_size, found.lease) == (0, 1, None)


@pytest.mark.parametrize("visible", ["all", "none", "void", "", "0,1"])
def test_words_and_indices_are_no_uuids(visible: str) -> None:
    found = read_environment({**WORKER, "NVIDIA_VISIBLE_DEVICES": visible})
    assert isinstance(found, Worker)
    assert found.gpu_uuids == ()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SYNERGY_NAMESPACE", "", "SYNERGY_NAMESPACE is not set"),
        ("SYNERGY_RUN", "", "SYNERGY_RUN is not set"),
        ("SYNERGY_STEPS", "many", "SYNERGY_STEPS is 'many': it must be a whole number"),
        ("SYNERGY_STEPS", "0", "SYNERGY_STEPS is 0: it must be at least 1"),
        ("WORLD_SIZE", "0", "WORLD_SIZE is 0: it must be at least 1"),
        ("RANK", "2", "RANK is 2 but WORLD_SIZE is 2: ranks run from 0 to 1"),
        ("RANK", "-1", "RANK is -1"),
        ("MASTER_ADDR", "", "MASTER_ADDR is not set"),
        ("SYNERGY_PEER_PORT", "70000", "SYNERGY_PEER_PORT is 70000: it must be at least 1, at most 65535"),
        ("SYNERGY_EXTENDER_URL", "http://extender", "SYNERGY_EXTENDER_URL is 'http://extender': it must begin with"),
        ("SYNERGY_TOKEN_FILE", "", "SYNERGY_TOKEN_FILE is not set"),
        ("SYNERGY_CA_CERT", "", "SYNERGY_CA_CERT is not set"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_environment({**WORKER, name: value})
    assert says in str(caught.value)
