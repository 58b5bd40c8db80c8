"""`python3 -m synergy_operator.certificates`: bring the Secrets up to date once, then exit."""

import sys
from datetime import UTC, datetime

from synergy_kube import KubeClient
from synergy_operator.certificates.job import RenewalSettings, read_settings, run
from synergy_service.once import run_once


async def _renew(kube: KubeClient, settings: RenewalSettings) -> list[str]:
    return await run(kube, settings, datetime.now(UTC))


if __name__ == "__main__":
    sys.exit(run_once("certificates", read_settings, _renew))
