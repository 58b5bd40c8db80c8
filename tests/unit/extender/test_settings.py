"""Settings from the environment."""

import pytest

from synergy_extender.config import read_settings
from synergy_extender.leader import Timing
from synergy_service.settings import ConfigError

POD = {"SYNERGY_POD_NAME": "extender-0", "SYNERGY_POD_NAMESPACE": "kube-synergy"}


def test_the_pods_name_and_namespace_are_enough() -> None:
    settings = read_settings(POD)
    assert (settings.pod_name, settings.pod_namespace) == ("extender-0", "kube-synergy")
    assert (settings.scheduler_port, settings.api_port, settings.ops_port) == (9443, 9444, 8080)
    assert settings.leader == Timing(6.0, 5.0, 1.0)
    assert settings.scheduler_names == ("kube-synergy-scheduler", "system:kube-scheduler")
    assert str(settings.tls_dir) == "/etc/kube-synergy/tls"


def test_every_setting_is_read() -> None:
    settings = read_settings(
        {
            **POD,
            "SYNERGY_TLS_DIR": "/tls",
            "SYNERGY_HOST": "127.0.0.1",
            "SYNERGY_SCHEDULER_PORT": "1",
            "SYNERGY_API_PORT": "2",
            "SYNERGY_SCHEDULER_NAMES": "one, two",
            "SYNERGY_OPS_PORT": "0",
            "SYNERGY_PLAN_TIMEOUT_SECONDS": "7.5",
            "SYNERGY_PLANNER_PROCESSES": "3",
            "SYNERGY_LEASE_SECONDS": "6",
            "SYNERGY_RENEW_SECONDS": "4",
            "SYNERGY_RETRY_SECONDS": "1",
            "SYNERGY_LOG_LEVEL": "debug",
            "SYNERGY_KUBECONFIG": "/k",
        }
    )
    assert settings.scheduler_names == ("one", "two")
    assert (settings.host, settings.scheduler_port, settings.api_port, settings.ops_port) == ("127.0.0.1", 1, 2, 0)
    assert (settings.plan_timeout_s, settings.leader) == (7.5, Timing(6.0, 4.0, 1.0))
    assert settings.planner_processes == 3
    assert (str(settings.tls_dir), settings.log_level, settings.kubeconfig) == ("/tls", "DEBUG", "/k")


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"SYNERGY_POD_NAME": ""}, "SYNERGY_POD_NAME"),
        ({"SYNERGY_POD_NAMESPACE": ""}, "SYNERGY_POD_NAMESPACE"),
        ({"SYNERGY_API_PORT": "http"}, "SYNERGY_API_PORT"),
        ({"SYNERGY_OPS_PORT": "70000"}, "SYNERGY_OPS_PORT"),
        ({"SYNERGY_SCHEDULER_NAMES": "one,,two"}, "SYNERGY_SCHEDULER_NAMES"),
        ({"SYNERGY_PLAN_TIMEOUT_SECONDS": "soon"}, "SYNERGY_PLAN_TIMEOUT_SECONDS"),
        ({"SYNERGY_PLANNER_PROCESSES": "0"}, "SYNERGY_PLANNER_PROCESSES"),
        ({"SYNERGY_RETRY_SECONDS": "-1"}, "SYNERGY_RETRY_SECONDS"),
        ({"SYNERGY_LEASE_SECONDS": "3"}, "lease 3.0 s must be above renew 5.0 s"),
        ({"SYNERGY_LOG_LEVEL": "loud"}, "SYNERGY_LOG_LEVEL"),
    ],
)
def test_a_bad_setting_is_named(wrong: dict[str, str], names: str) -> None:
    with pytest.raises(ConfigError, match=names):
        read_settings({**POD, **wrong})
