"""From a plan to changes of status: which runs are revoked, granted and admitted, and why jobs wait. Pure."""
