"""The devcluster's own exceptions: each message is one line that names what to change."""


class DevclusterError(Exception):
    """Something on the machine or in the cluster went wrong."""


class BadInputError(DevclusterError):
    """The caller asked for something that cannot be: an option, a file or a name to change."""
