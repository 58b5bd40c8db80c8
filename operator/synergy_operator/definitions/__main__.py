"""`python3 -m synergy_operator.definitions`: update definitions and default policy once, then exit."""

import sys

from synergy_kube import KubeClient
from synergy_operator.definitions.job import UpgradeSettings, packaged, read_settings, run
from synergy_operator.definitions.upgrade_check import DowngradeError
from synergy_service.once import run_once


async def _update(kube: KubeClient, settings: UpgradeSettings) -> list[str]:
    return await run(kube, settings, packaged())


if __name__ == "__main__":
    sys.exit(run_once("definitions", read_settings, _update, (ValueError, DowngradeError)))
