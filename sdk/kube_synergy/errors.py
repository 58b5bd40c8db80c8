"""What goes wrong, as exceptions whose messages say what to change."""


class SynergyError(Exception):
    """Base of all errors of this package."""


class InvalidJobError(SynergyError, ValueError):
    """The job cannot be submitted as it is. The message names the argument, the field or the captured name."""


class UnreachableError(SynergyError):
    """No kubeconfig says where the cluster is, or its API server does not answer."""


class ForbiddenError(SynergyError):
    """Your account may not do this. The message has the API server's words."""


class NotInstalledError(SynergyError):
    """The cluster does not know TrainingJobs: kube-synergy is not installed there."""


class NameTakenError(SynergyError):
    """There is an object of this name already."""


class JobNotFoundError(SynergyError):
    """There is no job of this name in the namespace."""


class JobDeletedError(SynergyError):
    """The job was deleted while it was waited for."""


class JobTimeoutError(SynergyError, TimeoutError):
    """The job did not get so far in the time given. It goes on: wait again, or delete it."""


class JobFailedError(SynergyError):
    """The job has ended with the phase Failed.

    `reason` and `message` are those of its condition Finished. `traceback` is the one of the submitted function, empty
    where the function has not raised an exception or its pod is gone.
    """

    def __init__(self, job: str, reason: str, message: str, traceback: str = "") -> None:
        told = f"{job} failed: {reason}" + (f": {message}" if message else "")
        super().__init__(f"{told}\n{traceback}".rstrip())
        self.job = job
        self.reason = reason
        self.message = message
        self.traceback = traceback


class NoResultError(SynergyError):
    """The job has succeeded, but what its function returned is not there. The message says why."""
