"""Annotations that only the operator writes and reads."""

from typing import Final

from synergy_api import names

ANNOTATION_UNGATED_AT: Final = f"{names.GROUP}/ungated-at"
"""On worker pods: when the operator removed its scheduling gate. The time that a gang has to be bound starts here."""
ANNOTATION_POINT: Final = f"{names.GROUP}/cpu-millis"
"""On profile Jobs: the CPU of the point that they measure, in milli-CPU."""
ANNOTATION_HIT_RATE: Final = f"{names.GROUP}/hit-rate"
"""On profile Jobs that check the memory model: the fraction of the data set that counts as cached."""
ANNOTATION_STORAGE: Final = f"{names.GROUP}/storage-bytes-per-s"
"""On profile Jobs: the limit on reads from storage in bytes per second, if there is one."""
ANNOTATION_REPEAT: Final = f"{names.GROUP}/repeat"
"""On profile Jobs: how many runs of the same point came before."""
ANNOTATION_REFERENCE: Final = f"{names.GROUP}/reference"
"""On the two profile Jobs of a pair: the name of the reference job. The reference's own Job has rank 1."""
ANNOTATION_REFERENCE_MODEL: Final = f"{names.GROUP}/reference-model"
"""On the two profile Jobs of a pair: the model of the reference job."""
ANNOTATION_FINGERPRINT: Final = f"{names.GROUP}/fingerprint"
"""On profile Jobs: the fingerprint of the spec that they measure."""
