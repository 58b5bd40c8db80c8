"""From a plan to changes of status: who is revoked, granted, admitted and told to wait. Pure."""
