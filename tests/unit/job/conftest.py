"""A lease endpoint over real TLS."""

from support.job.fixtures import authority, lease_client, lease_server, other_authority, token_file

__all__ = ["authority", "lease_client", "lease_server", "other_authority", "token_file"]
