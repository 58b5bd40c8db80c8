"""The custom resources of kube-synergy as pydantic models; `crds/` is generated from them."""
