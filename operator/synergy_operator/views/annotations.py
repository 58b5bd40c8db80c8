"""Annotations that only the operator writes and reads."""

from typing import Final

from synergy_api import names

ANNOTATION_UNGATED_AT: Final = f"{names.GROUP}/ungated-at"
"""When the pod's gate fell: from then on a gang has a limited time to be bound."""
ANNOTATION_JOB_UID: Final = f"{names.GROUP}/job-uid"
"""On profile pods, whose controller is a batch Job: the TrainingJob's uid."""
ANNOTATION_POINT: Final = f"{names.GROUP}/cpu-millis"
"""On profile Jobs: the CPU point that is measured."""
ANNOTATION_HIT_RATE: Final = f"{names.GROUP}/hit-rate"
"""On profile Jobs that check the memory model: the fraction of the data that counts as cached."""
ANNOTATION_STORAGE: Final = f"{names.GROUP}/storage-bytes-per-s"
"""On profile Jobs: what their reads from storage are held to, where they are."""
ANNOTATION_REPEAT: Final = f"{names.GROUP}/repeat"
"""On profile Jobs: how often their point had been measured before."""
ANNOTATION_FINGERPRINT: Final = f"{names.GROUP}/fingerprint"
"""On profile Jobs: the fingerprint of the spec that they measure."""
