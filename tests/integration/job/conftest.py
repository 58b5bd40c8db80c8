"""Training scripts as real processes, with a lease endpoint over real TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.job.fixtures import authority, lease_server, token_file
from support.job.lease_server import LeaseServer
from support.job.process import Job, free_port, kill_what_is_left

__all__ = ["authority", "lease_server", "token_file"]

SCRIPT = Path(__file__).parent / "training_script.py"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A job of 40 steps outside any control plane."""
    folder = tmp_path / "job"
    folder.mkdir()
    environ = {"SYNERGY_JOB": "mnist", "SYNERGY_NAMESPACE": "team", "SYNERGY_RUN": "1", "SYNERGY_STEPS": "40"}
    made = Job(SCRIPT, folder, environ)
    yield made
    kill_what_is_left(made.running)


@pytest.fixture
def leased_job(job: Job, lease_server: LeaseServer, token_file: Path) -> Job:
    """The same job with the lease server as its control plane."""
    job.environ.update(
        SYNERGY_EXTENDER_URL=lease_server.url,
        SYNERGY_TOKEN_FILE=str(token_file),
        SYNERGY_CA_CERT=lease_server.ca_cert,
        NVIDIA_VISIBLE_DEVICES="GPU-1234",
    )
    return job


@pytest.fixture
def gang(job: Job) -> Job:
    """A job of three processes that know their run's key."""
    key = job.folder / "gang-key"
    key.write_text("0123456789abcdef" * 4)
    job.environ.update(WORLD_SIZE="3", MASTER_ADDR="localhost", SYNERGY_PEER_PORT=str(free_port()), SYNERGY_STEPS="60")
    job.environ.update(SYNERGY_GANG_KEY_FILE=str(key))
    return job
