"""One report over real TLS, and every way in which it can fail."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from support.job.lease_server import Authority, LeaseServer, go_on, leave_in, serve_leases
from support.job.process import free_port
from synergy_job.environment import ConfigError, LeaseAccess
from synergy_job.lease import client as lease
from synergy_job.lease.client import LeaseAnswer, LeaseClient, LeaseError, Report

REPORT = Report(step=120, checkpoint_step=100, steps_per_second=2.31, gpu_uuids=("GPU-1",))


@pytest.fixture
def client(lease_server: LeaseServer, token_file: Path) -> Iterator[LeaseClient]:
    with closing(
        LeaseClient(LeaseAccess(lease_server.url, str(token_file), lease_server.ca_cert), timeout_s=1.0)
    ) as it:
        yield it


def test_the_report_and_the_renewal_are_those_of_the_contract(client: LeaseClient, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: go_on(3.0)
    assert client.send(REPORT) == LeaseAnswer(leave=False, yield_in_s=0.0, next_report_s=3.0, memory_bytes=1 << 30)
    assert lease_server.reports == [
        {"step": 120, "checkpoint_step": 100, "steps_per_second": 2.31, "gpu_uuids": ["GPU-1"], "done": False}
    ]


def test_what_the_script_said_of_its_model_is_reported(client: LeaseClient, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: go_on(3.0)
    client.send(replace(REPORT, largest_tensor_bytes=30, model_bytes=40))
    assert (lease_server.reports[0]["largest_tensor_bytes"], lease_server.reports[0]["model_bytes"]) == (30, 40)


def test_an_older_extender_gets_what_it_knows(client: LeaseClient, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: (422, b"extra field") if "trained_seconds" in report else go_on(3.0)
    told = replace(REPORT, save_seconds=2.0, trained_seconds=9.0, metrics={"loss": 1.0}, ended_early="enough")
    assert client.send(told).next_report_s == 3.0
    full, plain = lease_server.reports
    assert plain == {name: full[name] for name in full.keys() - {"trained_seconds", "metrics", "ended_early"}}
    assert plain["save_seconds"] == 2.0


def test_an_older_extender_is_asked_again_after_a_while_and_at_the_end(
    client: LeaseClient, lease_server: LeaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease_server.answer = lambda report: (422, b"extra field") if "trained_seconds" in report else go_on()
    told = replace(REPORT, trained_seconds=9.0)
    for _ in range(3):
        client.send(told)
    assert ["trained_seconds" in report for report in lease_server.reports] == [True, False, False, False]
    client.send(replace(told, done=True))
    assert ["trained_seconds" in report for report in lease_server.reports[4:]] == [True, False]
    now = time.monotonic()
    monkeypatch.setattr("synergy_job.lease.client.time.monotonic", lambda: now + 601)
    lease_server.answer = lambda report: go_on()
    client.send(told)
    assert lease_server.reports[-1]["trained_seconds"] == 9.0


def test_a_report_that_no_extender_takes_is_sent_once(client: LeaseClient, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: (422, b"step is negative")
    with pytest.raises(LeaseError, match="answered 422"):
        client.send(REPORT)
    assert len(lease_server.reports) == 1


def test_a_lease_that_ends(client: LeaseClient, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: leave_in(2.4)
    assert client.send(REPORT) == LeaseAnswer(leave=True, yield_in_s=2.4, next_report_s=2.4, memory_bytes=1 << 30)


def test_the_token_is_read_anew_each_time(client: LeaseClient, lease_server: LeaseServer, token_file: Path) -> None:
    client.send(REPORT)
    token_file.write_text("second-token")
    client.send(REPORT)
    assert lease_server.tokens == ["Bearer first-token", "Bearer second-token"]


def test_many_reports_take_one_connection(client: LeaseClient, lease_server: LeaseServer, token_file: Path) -> None:
    for number in range(50):
        token_file.write_text(f"token-{number}")
        client.send(replace(REPORT, step=number))
    assert [report["step"] for report in lease_server.reports] == list(range(50))
    assert lease_server.connections == 1


def test_a_refusal_does_not_cost_the_connection(client: LeaseClient, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: (503, b"not ready")
    for _ in range(3):
        with pytest.raises(LeaseError, match="answered 503"):
            client.send(REPORT)
    lease_server.answer = lambda report: go_on()
    client.send(REPORT)
    assert lease_server.connections == 1


def test_a_connection_that_the_server_closed_meanwhile_costs_no_report(
    client: LeaseClient, lease_server: LeaseServer
) -> None:
    lease_server.hang_up = True
    for number in range(5):
        client.send(replace(REPORT, step=number))
    assert [report["step"] for report in lease_server.reports] == list(range(5))
    assert lease_server.connections == 5


def test_a_new_extender_behind_the_same_address_is_found_at_once(token_file: Path, authority: Authority) -> None:
    with serve_leases(authority) as first:
        first.hang_up = True
        client = LeaseClient(LeaseAccess(first.url, str(token_file), first.ca_cert), timeout_s=1.0)
        client.send(REPORT)
    with pytest.raises(LeaseError, match="cannot be reached"):
        client.send(REPORT)
    with serve_leases(authority, port=int(first.url.rpartition(":")[2])) as second:
        client.send(REPORT)
        client.send(REPORT)
        assert (second.connections, len(second.reports)) == (1, 2)
        client.close()


def test_a_connection_is_given_up_after_a_while(
    client: LeaseClient, lease_server: LeaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that certificates are checked anew, and a replica that has come takes its part of the workers."""
    monkeypatch.setattr(lease, "_MOST_AGE_S", 0.0)
    client.send(REPORT)
    client.send(REPORT)
    assert lease_server.connections == 2


def test_two_threads_that_send_at_once_disturb_each_other_in_nothing(
    client: LeaseClient, lease_server: LeaseServer
) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda number: client.send(replace(REPORT, step=number)), range(100)))
    assert len(answers) == 100
    assert sorted(report["step"] for report in lease_server.reports) == list(range(100))
    client.send(REPORT)
    used = lease_server.connections
    client.send(REPORT)
    assert lease_server.connections == used, "one of them is kept"


def test_a_server_of_another_authority_gets_no_token(
    lease_server: LeaseServer, token_file: Path, other_authority: Authority
) -> None:
    client = LeaseClient(LeaseAccess(lease_server.url, str(token_file), other_authority.pem))
    with pytest.raises(LeaseError, match=r"cannot be reached: .*CERTIFICATE_VERIFY_FAILED"):
        client.send(REPORT)
    assert lease_server.tokens == []


def test_a_server_of_another_name_gets_no_token(lease_server: LeaseServer, token_file: Path) -> None:
    url = lease_server.url.replace("127.0.0.1", "127.0.0.2")
    with pytest.raises(LeaseError, match="cannot be reached"):
        LeaseClient(LeaseAccess(url, str(token_file), lease_server.ca_cert)).send(REPORT)
    assert lease_server.tokens == []


@pytest.mark.parametrize(("status", "refused"), [(401, True), (403, True), (503, False), (500, False), (302, False)])
def test_any_other_status_is_a_failure(
    client: LeaseClient, lease_server: LeaseServer, status: int, refused: bool
) -> None:
    lease_server.answer = lambda report: (status, b"the reason in words")
    with pytest.raises(LeaseError, match=f"answered {status}: b'the reason in words'") as caught:
        client.send(REPORT)
    assert caught.value.refused is refused


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"verdict": "maybe", "next_report_s": 1}',
        b'{"verdict": "continue"}',
        b'{"verdict": "continue", "next_report_s": "soon"}',
        b'{"verdict": "continue", "next_report_s": NaN}',
        b'{"verdict": "continue", "next_report_s": Infinity}',
        b'{"verdict": "yield", "yield_in_s": null, "next_report_s": 1}',
        b'{"verdict": "yield", "yield_in_s": -1, "next_report_s": 1}',
        b'{"verdict": ["yield"], "next_report_s": 1}',
    ],
)
def test_an_answer_that_makes_no_sense_is_a_failure(
    client: LeaseClient, lease_server: LeaseServer, answer: bytes
) -> None:
    lease_server.answer = lambda report: (200, answer)
    with pytest.raises(LeaseError, match="makes no sense"):
        client.send(REPORT)


@pytest.mark.parametrize(("asked", "used"), [(0.0, 0.2), (1e9, 3600.0)])
def test_the_next_report_is_neither_at_once_nor_never(
    client: LeaseClient, lease_server: LeaseServer, asked: float, used: float
) -> None:
    lease_server.answer = lambda report: (200, json.dumps({"verdict": "continue", "next_report_s": asked}).encode())
    assert client.send(REPORT).next_report_s == used


def test_nobody_listens(token_file: Path, authority: Authority) -> None:
    client = LeaseClient(LeaseAccess(f"https://127.0.0.1:{free_port()}", str(token_file), authority.pem))
    with pytest.raises(LeaseError, match=r"cannot be reached: .*refused"):
        client.send(REPORT)


def test_a_server_that_never_answers_is_given_up(client: LeaseClient, lease_server: LeaseServer) -> None:
    def stall(report: object) -> tuple[int, bytes]:
        time.sleep(3)
        return go_on()

    lease_server.answer = stall
    begun = time.monotonic()
    with pytest.raises(LeaseError, match="timed out"):
        client.send(REPORT)
    assert time.monotonic() - begun < 2.5


def test_a_missing_token_is_a_failure(lease_server: LeaseServer, tmp_path: Path) -> None:
    client = LeaseClient(LeaseAccess(lease_server.url, str(tmp_path / "none"), lease_server.ca_cert))
    with pytest.raises(LeaseError, match="No such file"):
        client.send(REPORT)


def test_a_token_that_cannot_be_a_header_is_a_failure(client: LeaseClient, token_file: Path) -> None:
    token_file.write_text("two\nlines")
    with pytest.raises(LeaseError, match="Invalid header"):
        client.send(REPORT)


def test_a_certificate_that_is_none_is_named(token_file: Path) -> None:
    with pytest.raises(ConfigError, match="SYNERGY_CA_CERT is no certificate"):
        LeaseClient(LeaseAccess("https://extender", str(token_file), "-----BEGIN"))


def test_an_address_without_host_is_named(token_file: Path, authority: Authority) -> None:
    with pytest.raises(ConfigError, match="SYNERGY_EXTENDER_URL is 'https://:9444': it names no host"):
        LeaseClient(LeaseAccess("https://:9444", str(token_file), authority.pem))
