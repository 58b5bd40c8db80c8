"""Settings from environment variables. A bad value is refused with the variable's name."""

from collections.abc import Mapping
from typing import Final

LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")


class ConfigError(ValueError):
    """A setting that cannot be used. The text names its variable."""


class EnvironmentReader:
    """Reads the variables of a program. An empty variable counts as not set. Every method raises ConfigError."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str, default: str) -> str:
        """The value, unchanged."""
        return self._variables.get(name, "") or default

    def required(self, name: str) -> str:
        """The value of a variable that the chart sets."""
        if value := self.text(name, ""):
            return value
        raise ConfigError(f"{name} is not set: the chart sets it from the pod's own metadata")

    def names(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Names with commas between them."""
        text = self.text(name, ",".join(default))
        listed = tuple(part.strip() for part in text.split(","))
        if not all(listed):
            raise ConfigError(f"{name} is {text!r}: give names with commas between them")
        return listed

    def switch(self, name: str, *, default: bool) -> bool:
        """`true` or `false`, in any case."""
        text = self.text(name, str(default))
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{name} is {text!r}: give true or false")
        return text.lower() == "true"

    def whole(self, name: str, default: int, *, least: int, most: int, what: str = "a whole number") -> int:
        """A whole number from `least` to `most`; `what` says in the error what it counts."""
        text = self.text(name, str(default))
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ConfigError(f"{name} is {text!r}: give {what} from {least} to {most}")
        return int(text)

    def port(self, name: str, default: int, *, least: int = 0) -> int:
        """A port. Port 0 means any that is free."""
        return self.whole(name, default, least=least, most=65535, what="a port")

    def positive(
        self, name: str, default: float, *, most: float, what: str = "a number of seconds above zero"
    ) -> float:
        """A number above zero and below `most`; `what` says in the error what it counts."""
        text = self.text(name, "")
        try:
            value = float(text) if text else default
        except ValueError:
            value = -1.0
        if not 0 < value < most:
            raise ConfigError(f"{name} is {text!r}: give {what}")
        return value

    def log_level(self) -> str:
        """`SYNERGY_LOG_LEVEL`, by default INFO."""
        value = self.text("SYNERGY_LOG_LEVEL", "INFO").upper()
        if value not in LOG_LEVELS:
            raise ConfigError(f"SYNERGY_LOG_LEVEL is {value!r}: give DEBUG, INFO, WARNING or ERROR")
        return value
