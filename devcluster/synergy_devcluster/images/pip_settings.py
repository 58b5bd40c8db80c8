"""The machine's pip settings, handed to image builds without becoming part of the image."""

import configparser
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_NOT_SETTINGS = {"PIP_CONFIG_FILE", "PIP_REQUIRE_VIRTUALENV"}
Mount = tuple[Path, str]


def host_settings() -> configparser.RawConfigParser:
    """Return what pip on this machine reads: its configuration files, then the PIP_ variables over them."""
    settings = configparser.RawConfigParser()
    files = ["/etc/pip.conf", "/etc/xdg/pip/pip.conf", str(Path.home() / ".config/pip/pip.conf")]
    settings.read([*files, str(Path.home() / ".pip/pip.conf"), os.environ.get("PIP_CONFIG_FILE", "")])
    if not settings.has_section("global"):
        settings.add_section("global")
    for name, value in os.environ.items():
        if name.startswith("PIP_") and name not in _NOT_SETTINGS:
            settings.set("global", name.removeprefix("PIP_").lower().replace("_", "-"), value)
    return settings


@contextmanager
def pip_settings() -> Iterator[list[Mount]]:
    """Yield (path here, path in the build) mounts: a pip.conf, the CA bundle, and local folders that it names."""
    settings = host_settings()
    mounts: list[Mount] = [(CA_BUNDLE, str(CA_BUNDLE))] if CA_BUNDLE.exists() else []
    for value in settings["global"].values():
        for word in value.split():
            path = Path(word)
            if path.is_absolute() and path.exists() and path != CA_BUNDLE:
                mounts.append((path, word))
    with tempfile.NamedTemporaryFile("w", suffix=".conf", encoding="utf-8") as file:
        settings.write(file)
        file.flush()
        Path(file.name).chmod(0o644)
        yield [*mounts, (Path(file.name), "/etc/pip.conf")]
