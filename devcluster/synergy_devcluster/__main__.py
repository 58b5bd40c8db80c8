"""``python -m synergy_devcluster``: the devcluster's commands without the rest of ``kube-synergy``."""

from synergy_devcluster.cli import devcluster

if __name__ == "__main__":
    devcluster(prog_name="kube-synergy devcluster")
