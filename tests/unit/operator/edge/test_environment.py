"""The operator's environment."""

import os
from pathlib import Path

import pytest

from synergy_operator.edge.environment import read_environment

COMPLETE = {"SYNERGY_PROFILER_IMAGE": "p:1", "SYNERGY_EXTENDER_URL": "https://e:9444", "SYNERGY_CA_FILE": "/ca.crt"}


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="set SYNERGY_EXTENDER_URL, SYNERGY_CA_FILE in the environment"):
        read_environment({"SYNERGY_PROFILER_IMAGE": "p:1"})


@pytest.mark.parametrize("port", ["http", "70000", "-1"])
@pytest.mark.parametrize("name", ["SYNERGY_HEALTH_PORT", "SYNERGY_METRICS_PORT"])
def test_a_port_that_is_none_is_named(name: str, port: str) -> None:
    with pytest.raises(ValueError, match=name):
        read_environment({**COMPLETE, name: port})


def test_the_metrics_may_take_any_free_port_and_the_probe_may_not() -> None:
    assert read_environment({**COMPLETE, "SYNERGY_METRICS_PORT": "0"}).metrics_port == 0
    with pytest.raises(ValueError, match="SYNERGY_HEALTH_PORT"):
        read_environment({**COMPLETE, "SYNERGY_HEALTH_PORT": "0"})


def test_a_new_ca_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("old")
    environment = read_environment({**COMPLETE, "SYNERGY_CA_FILE": str(file), "SYNERGY_PRIORITY_CLASS": "low"})
    assert environment.settings().ca_cert == "old"
    assert environment.settings().priority_class == "low"
    file.write_text("new")
    os.utime(file, (1, 1))
    assert environment.settings().ca_cert == "new"


def test_profile_runs_learn_where_the_exporter_is(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("x")
    given = {**COMPLETE, "SYNERGY_CA_FILE": str(file)}
    assert (read_environment(given).settings().dcgm_url, read_environment(given).dcgm_interval_seconds) == ("", 30.0)
    given |= {"SYNERGY_DCGM_URL": "http://{hostIP}:9400/metrics", "SYNERGY_DCGM_INTERVAL_S": "1.5"}
    settings = read_environment(given).settings()
    assert (settings.dcgm_url, settings.dcgm_interval_seconds) == ("http://{hostIP}:9400/metrics", 1.5)
    with pytest.raises(ValueError, match=r"SYNERGY_DCGM_URL is 'node:9400': give an address such as http://"):
        read_environment({**given, "SYNERGY_DCGM_URL": "node:9400"})
    with pytest.raises(ValueError, match="SYNERGY_DCGM_INTERVAL_S"):
        read_environment({**given, "SYNERGY_DCGM_INTERVAL_S": "0"})


def test_only_kinds_that_are_known_are_managed() -> None:
    assert read_environment(COMPLETE).managed_kinds == ()
    assert read_environment({**COMPLETE, "SYNERGY_MANAGED_KINDS": "Job, TrainJob"}).managed_kinds == ("Job", "TrainJob")
    with pytest.raises(ValueError, match="SYNERGY_MANAGED_KINDS has 'Pod': give some of Job, JobSet"):
        read_environment({**COMPLETE, "SYNERGY_MANAGED_KINDS": "Pod"})
