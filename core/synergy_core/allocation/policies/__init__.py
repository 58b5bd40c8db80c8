"""One file per policy; `synergy_core.allocation` lists them."""
