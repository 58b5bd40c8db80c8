module kube-synergy.dev/devcluster/binaries/pause

go 1.26.0
