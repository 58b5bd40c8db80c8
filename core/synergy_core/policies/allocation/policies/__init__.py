"""One file per policy; `synergy_core.policies.allocation` lists them."""
