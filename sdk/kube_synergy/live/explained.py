"""What the client of the API server raises, as errors of this package."""

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from kube_synergy.errors import (
    ForbiddenError,
    InvalidJobError,
    JobNotFoundError,
    NameTakenError,
    NotInstalledError,
    SynergyError,
    UnreachableError,
)
from synergy_kube import ApiError, Conflict, NoClusterError, NotFound


@contextmanager
def explained() -> Iterator[None]:
    """Turn what the client of the API server raises into errors of this package."""
    try:
        yield
    except SynergyError:
        raise
    except NoClusterError as error:
        raise UnreachableError(str(error)) from error
    except ApiError as error:
        raise of_api_error(error) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise UnreachableError(f"the API server does not answer: {error or 'no answer in time'}") from error
    except ValueError as error:  # of synergy_view.seen.read, which names the field
        raise SynergyError(f"the job is of another version of kube-synergy: {error}") from error


def of_api_error(error: ApiError) -> SynergyError:
    """The exception for an answer of the API server."""
    if error.code in (401, 403):
        return ForbiddenError(f"{error.message}; ask an administrator of the cluster for this right")
    if isinstance(error, NotFound):
        return _not_found(error)
    if isinstance(error, Conflict) and error.reason == "AlreadyExists":
        return NameTakenError(f"{error.message}; pass another name=, or leave it out for a name with a random end")
    if error.code in (400, 422):
        return InvalidJobError(error.message)
    return SynergyError(str(error))


def _not_found(error: NotFound) -> SynergyError:
    # kube-apiserver answers with a text, or without a name, where it does not know the kind of object at all
    if error.reason != "NotFound" or "could not find the requested resource" in error.message:
        return NotInstalledError(
            "the cluster does not know TrainingJobs: install kube-synergy there, or choose another context"
        )
    if error.message.startswith("namespaces "):
        return InvalidJobError(f"namespace: {error.message}; name one that exists")
    return JobNotFoundError(error.message)
