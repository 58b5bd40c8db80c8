"""Commands that ask a cluster: `kubectl synergy queue`, `why`, `top` and the others, with the user's own rights."""
