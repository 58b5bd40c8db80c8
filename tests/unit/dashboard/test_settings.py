"""Settings come from the environment, and a bad one is named."""

from pathlib import Path

import pytest

from synergy_dashboard.config import read_settings
from synergy_service.settings import ConfigError


def test_the_defaults() -> None:
    settings = read_settings({})
    assert (settings.port, settings.ops_port, settings.tls_dir, settings.proxy_secret) == (8080, 8081, None, None)
    assert (settings.kubeconfig, settings.log_level, settings.keep_days) == (None, "INFO", 90.0)
    assert settings.database.startswith("sqlite:////")


def test_all_that_can_be_set() -> None:
    settings = read_settings(
        {
            "SYNERGY_DASHBOARD_DATABASE": "sqlite:////tmp/h.db",
            "SYNERGY_DASHBOARD_PORT": "1",
            "SYNERGY_OPS_PORT": "2",
            "SYNERGY_TLS_DIR": "/tls",
            "SYNERGY_DASHBOARD_TRUSTED_PROXY": "TRUE",
            "SYNERGY_DASHBOARD_PROXY_SECRET_FILE": "/secret",
            "SYNERGY_DASHBOARD_KEEP_DAYS": "0.5",
            "SYNERGY_LOG_LEVEL": "debug",
            "SYNERGY_KUBECONFIG": "/config",
            "SYNERGY_HOST": "::",
        }
    )
    assert (settings.database, settings.host, settings.port, settings.ops_port) == ("sqlite:////tmp/h.db", "::", 1, 2)
    assert (settings.tls_dir, settings.proxy_secret) == (Path("/tls"), Path("/secret"))
    assert (settings.keep_days, settings.log_level, settings.kubeconfig) == (0.5, "DEBUG", "/config")


def test_a_secret_alone_makes_no_proxy_trusted() -> None:
    assert read_settings({"SYNERGY_DASHBOARD_PROXY_SECRET_FILE": "/secret"}).proxy_secret is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("SYNERGY_DASHBOARD_PORT", "web"), ("SYNERGY_OPS_PORT", "70000"), ("SYNERGY_DASHBOARD_TRUSTED_PROXY", "maybe"),
     ("SYNERGY_DASHBOARD_KEEP_DAYS", "-1"), ("SYNERGY_DASHBOARD_KEEP_DAYS", "nan"), ("SYNERGY_LOG_LEVEL", "loud")],
)  # fmt: skip
def test_a_bad_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        read_settings({name: value})


def test_a_trusted_proxy_needs_a_secret() -> None:
    with pytest.raises(ConfigError, match="SYNERGY_DASHBOARD_PROXY_SECRET_FILE"):
        read_settings({"SYNERGY_DASHBOARD_TRUSTED_PROXY": "true"})
