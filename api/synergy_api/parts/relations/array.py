"""Arrays: one TrainingJob that stands for many, which differ in an index."""

from typing import Annotated

from pydantic import Field

from synergy_api.base import ApiModel

MOST_MEMBERS = 1000
LONGEST_SUFFIX = 4
"""Characters that a member's name has more than its array's: a dash and three digits."""


class Array(ApiModel):
    """How many jobs are made of this one."""

    count: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_MEMBERS,
            description="Jobs, named NAME-0 to NAME-(count-1). SYNERGY_ARRAY_INDEX in their environment is the index.",
            json_schema_extra={
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "count is fixed for the life of the array"}
                ]
            },
        ),
    ]
    max_parallel: Annotated[
        int | None,
        Field(ge=1, le=MOST_MEMBERS, description="Jobs that exist unfinished at a time; by default all are made."),
    ] = None


class ArrayStatus(ApiModel):
    """The jobs of an array. Owned by the operator."""

    running: Annotated[int, Field(ge=0, description="Jobs whose workers start, run or leave.")] = 0
    waiting: Annotated[int, Field(ge=0, description="Other jobs that exist and are not finished.")] = 0
    succeeded: Annotated[int, Field(ge=0, description="Jobs that succeeded.")] = 0
    failed: Annotated[int, Field(ge=0, description="Jobs that failed.")] = 0
    succeeded_indexes: Annotated[
        str, Field(max_length=5000, description="Their indexes, such as 0-3,7. They may have been deleted since.")
    ] = ""
    failed_indexes: Annotated[str, Field(max_length=5000, description="The same of those that failed.")] = ""
    progress: Annotated[str, Field(description="Finished jobs of all, such as 3/10, for `kubectl get`.")] = ""


def indexes_text(indexes: set[int]) -> str:
    """As 0-3,7."""
    parts: list[str] = []
    for index in sorted(indexes):
        if index - 1 in indexes:
            continue
        end = index
        while end + 1 in indexes:
            end += 1
        parts.append(str(index) if end == index else f"{index}-{end}")
    return ",".join(parts)


def read_indexes(text: str) -> set[int]:
    """The indexes of such a text. Raises ValueError if it is none."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
