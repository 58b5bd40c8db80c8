"""A lease endpoint over real TLS, and training scripts as real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.job_process import Job, free_port
from support.lease_server import Authority, LeaseServer, make_authority, serve_leases

SCRIPT = Path(__file__).parent / "training_script.py"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def other_authority(tmp_path: Path) -> Authority:
    return make_authority(tmp_path)


@pytest.fixture
def lease_server(authority: Authority) -> Iterator[LeaseServer]:
    with serve_leases(authority) as server:
        yield server


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("first-token\n")
    return file


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A job of 40 steps outside any control plane."""
    folder = tmp_path / "job"
    folder.mkdir()
    environ = {"SYNERGY_JOB": "mnist", "SYNERGY_NAMESPACE": "team", "SYNERGY_RUN": "1", "SYNERGY_STEPS": "40"}
    made = Job(SCRIPT, folder, environ)
    yield made
    for process in made.running:
        if process.stdout is not None and not process.stdout.closed:
            process.kill()
            process.communicate()


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
