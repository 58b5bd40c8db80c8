"""Workers that train with Debian's PyTorch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.job import debian_torch
from support.job.example import Example
from support.job.lease_server import LeaseServer
from support.job.process import free_port, kill_what_is_left


@pytest.fixture(autouse=True)
def with_torch() -> None:
    debian_torch.required()


@pytest.fixture
def example(tmp_path: Path, lease_server: LeaseServer, token_file: Path) -> Iterator[Example]:
    """A job of 240 steps whose leases the server renews."""
    key = tmp_path / "gang-key"
    key.write_text("0123456789abcdef" * 4)
    environ = {
        **debian_torch.ENVIRON,
        "SYNERGY_JOB": "torch",
        "SYNERGY_NAMESPACE": "team",
        "SYNERGY_RUN": "1",
        "SYNERGY_STEPS": "240",
        "SYNERGY_EXTENDER_URL": lease_server.url,
        "SYNERGY_TOKEN_FILE": str(token_file),
        "SYNERGY_CA_CERT": lease_server.ca_cert,
        "SYNERGY_GANG_KEY_FILE": str(key),
        "SYNERGY_PEER_PORT": str(free_port()),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(free_port()),
    }
    made = Example(tmp_path, environ, str(debian_torch.PYTHON))
    yield made
    kill_what_is_left(made.running)
