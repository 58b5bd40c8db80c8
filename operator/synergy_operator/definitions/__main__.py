"""`python3 -m synergy_operator.definitions`: update definitions and default policy once, then exit.

Exit code 1: a retry may help. Exit code 2: the settings or the cluster must change first.
"""

import asyncio
import logging
import os
import sys

import aiohttp

from synergy_kube import KubeClient
from synergy_kube.errors import ApiError, NoClusterError
from synergy_operator.definitions.job import packaged, read_settings, run
from synergy_operator.definitions.upgrade_check import DowngradeError

_LOG = logging.getLogger("definitions")


async def _main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        settings = read_settings(os.environ)
        async with await KubeClient.connect(os.environ.get("SYNERGY_KUBECONFIG") or None) as kube:
            for line in await run(kube, settings, packaged()):
                _LOG.info("%s", line)
    except (ValueError, NoClusterError, DowngradeError) as error:
        _LOG.error("%s", error)
        return 2
    except (ApiError, aiohttp.ClientError, TimeoutError) as error:
        _LOG.error("the API server: %s", error)  # the Job retries
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
