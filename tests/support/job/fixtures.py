"""Fixtures of the library's tests: a lease endpoint over real TLS, and a token for it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.job.lease_server import Authority, LeaseServer, make_authority, serve_leases
from synergy_job.environment import LeaseAccess
from synergy_job.lease.client import LeaseClient


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
def lease_client(lease_server: LeaseServer, token_file: Path) -> Iterator[LeaseClient]:
    """A client of the lease server, with the time-out that the library has."""
    with closing(LeaseClient(LeaseAccess(lease_server.url, str(token_file), lease_server.ca_cert))) as client:
        yield client
