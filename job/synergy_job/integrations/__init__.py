"""Frameworks that own the training loop: one module each, imported by its name.

- `synergy_job.integrations.transformers`: the `Trainer` of Hugging Face.
- `synergy_job.integrations.lightning`: the `Trainer` of Lightning.
- `synergy_job.integrations.accelerate`: scripts with Accelerate, which own their loop themselves.

Each module imports its framework, and this package imports none.
"""
