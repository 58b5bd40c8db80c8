"""The SchedulingPolicy's spec, also while what is written does not parse."""

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicySpec

_LOG = logging.getLogger(__name__)


class PolicyReader:
    """Remembers the last spec that was valid."""

    def __init__(self) -> None:
        self._good = SchedulingPolicySpec()

    def read(self, policy: Mapping[str, Any] | None) -> SchedulingPolicySpec:
        """The policy's spec, or the defaults if there is none. If it does not parse, the last valid one since the
        start."""
        try:
            self._good = SchedulingPolicySpec.model_validate((policy or {}).get("spec") or {})
        except ValidationError as error:
            found = "the last valid one applies" if self._good != SchedulingPolicySpec() else "the defaults apply"
            _LOG.warning("SchedulingPolicy %s does not parse, %s: %s", DEFAULT_POLICY_NAME, found, error)
        return self._good
