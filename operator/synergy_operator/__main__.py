"""`python3 -m synergy_operator`: the operator as a process, configured by its environment."""

import logging
import os
import sys

import kopf
import uvloop

from synergy_kube.nesting import admit_deep_objects
from synergy_operator.edge.environment import Environment, read_environment
from synergy_operator.edge.handlers import Operator


def main() -> int:
    """Run until told to stop. Returns 2 with one line on stderr if the environment does not suffice."""
    try:
        environment = read_environment(os.environ)
        environment.settings()
    except (ValueError, OSError) as error:
        print(f"kube-synergy-operator: {error}", file=sys.stderr)  # noqa: T201 - before any logging
        return 2
    kopf.configure(log_format=kopf.LogFormat.JSON)
    logging.getLogger().setLevel(environment.log_level)
    for chatty in ("kopf", "aiohttp.access"):  # a line for each event and each probe
        logging.getLogger(chatty).setLevel(logging.WARNING)
    admit_deep_objects()
    uvloop.run(_serve(environment))
    return 0


async def _serve(environment: Environment) -> None:
    await Operator(environment).serve()


if __name__ == "__main__":
    sys.exit(main())
