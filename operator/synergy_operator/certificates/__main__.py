"""`python3 -m synergy_operator.certificates`: bring the Secrets up to date once, then exit."""

import asyncio
import logging
import os
import sys
from datetime import UTC, datetime

import aiohttp

from synergy_kube import KubeClient
from synergy_kube.errors import ApiError, NoClusterError
from synergy_operator.certificates.job import read_settings, run

_LOG = logging.getLogger("certificates")


async def _main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        settings = read_settings(os.environ)
    except ValueError as error:
        _LOG.error("%s", error)
        return 2
    try:
        async with await KubeClient.connect(os.environ.get("SYNERGY_KUBECONFIG") or None) as kube:
            for line in await run(kube, settings, datetime.now(UTC)):
                _LOG.info("%s", line)
    except NoClusterError as error:
        _LOG.error("%s", error)
        return 2
    except (ApiError, aiohttp.ClientError, TimeoutError) as error:
        _LOG.error("the API server: %s", error)  # the Job retries
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
