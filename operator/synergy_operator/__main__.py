"""`python3 -m synergy_operator`: runs the operator, configured by its environment."""

import logging
import os
import socket
import sys

import kopf
import uvloop

from synergy_operator.edge.environment import Environment, read_environment
from synergy_operator.edge.handlers import Operator
from synergy_service.nesting import admit_deep_objects
from synergy_service.tracing import tracing


def main() -> int:
    """Run until a signal arrives. Return 2, with one line on stderr, if the environment is incomplete or invalid."""
    try:
        environment = read_environment(os.environ)
        environment.settings()
    except (ValueError, OSError) as error:
        print(f"kube-synergy-operator: {error}", file=sys.stderr)  # noqa: T201 - logging is not set up yet
        return 2
    kopf.configure(log_format=kopf.LogFormat.JSON)
    logging.getLogger().setLevel(environment.log_level)
    for chatty in ("kopf", "aiohttp.access"):  # they log each event and each probe
        logging.getLogger(chatty).setLevel(logging.WARNING)
    admit_deep_objects()
    uvloop.run(_serve(environment))
    return 0


async def _serve(environment: Environment) -> None:
    with tracing(environment.tracing_endpoint, "kube-synergy-operator", socket.gethostname()):
        await Operator(environment).serve()


if __name__ == "__main__":
    sys.exit(main())
