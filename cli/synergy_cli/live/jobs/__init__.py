"""Live commands about jobs: `queue`, `why`, `when`, `profile`, `history`, `logs`, `submit`, `suspend`, `resume`."""
