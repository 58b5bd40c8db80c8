"""`python3 -m synergy_cli` is `kube-synergy`, where no program of that name is installed."""

from synergy_cli.main import main

main(prog_name="kube-synergy")
