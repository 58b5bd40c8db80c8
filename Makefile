# One target for each thing a person does here. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PY := .venv/bin/python
BIN := .venv/bin

.PHONY: help setup lock format lint types imports unit integration test-e2e test demo crds docs clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

setup: .venv/.installed ## make .venv with everything locked in requirements/dev.txt

.venv/.installed: requirements/dev.txt pyproject.toml
	python3 -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

lock: ## resolve requirements/*.txt anew from pyproject.toml (needs uv)
	for extra in dev operator extender; do \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	    --quiet --extra $$extra pyproject.toml -o requirements/$$extra.txt; done

format: setup ## rewrite the code in the house format
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: setup ## format and lint, changing nothing
	$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: setup ## mypy, strict
	$(BIN)/mypy

imports: setup ## which room may import which
	$(BIN)/lint-imports

unit: setup ## fast, pure tests
	$(BIN)/pytest tests/unit
