# One target for each thing a person does here. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PY := .venv/bin/python
REGISTRY ?= localhost/
TAG ?= dev
BIN := .venv/bin
# the suites share the devcluster that runs, or one that is there for their time; its third GPU is a spare
ON_DEVCLUSTER := $(BIN)/kube-synergy devcluster run --gpus 3 --fake-nodes V100=25x8,T4=25x8 --
DEVCLUSTER_SUITE := tests/integration/devcluster/
APART := PYTHONPATH=tests $(PY) -m support.apart
# suites of real processes, which a busy machine can trouble
AGAIN := env PYTHONPATH=tests $(PY) -m support.again
# before pytest, which gives each test 300 s: on a slow disk images take minutes
IMAGES := $(BIN)/kube-synergy devcluster images
# real processes, but no cluster
PROCESS_SUITES := $(addprefix tests/integration/,chaos/ chart/ cli/ docs/ examples/ job/ monitoring/ profiler/ release/ simulator/)
PAGE_SUITE := tests/integration/dashboard_page/
CLUSTERS_SUITE := tests/integration/clusters/
PRODUCT_SUITES := $(filter-out $(DEVCLUSTER_SUITE) $(PROCESS_SUITES) $(PAGE_SUITE) $(CLUSTERS_SUITE),$(wildcard tests/integration/*/))

SEED ?= 1
FAULTS ?= 200
JOBS ?= 100
REPORT ?=
RELEASE ?=
MINUTES ?= 5
TIMES ?= 10
PART ?= 1
GPUS ?= 10000
OUT ?= soak
PACKAGE ?= .
DRAW ?=
NEAR ?=

.PHONY: worker-clusters job-long help setup lock format lint types imports prose check crds images images-docker sbom release unit properties coverage mutants prerequisites programs prometheus postgres chromium torch integrations newer-torch dashboards integration integration-processes integration-page integration-product integration-devcluster test-e2e test-kind test-docker e2e-long demo-kind-test faketime chaos chaos-outage chaos-short pairings fidelity shared-day soak performance performance-small storm recorder plots docs test everything test-long installs check-and-docs side-by-side demo demo-kind kind-node-image kind-down

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

setup: .venv/.installed ## make .venv with everything locked in requirements/dev.txt

.venv/.installed: requirements/dev.txt pyproject.toml
	@python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo 'python3 has to be 3.11 or newer and have venv (Debian: apt-get install python3-venv)' >&2; exit 1; }
	@echo 'setup 1/3: Python environment in .venv'
	@python3 -m venv .venv
	@echo "setup 2/3: $$(grep -c '^[a-z].*==' requirements/dev.txt) packages of requirements/dev.txt, in about two minutes"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.txt
	@echo 'setup 3/3: the packages of this project'
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: ## resolve requirements/*.txt anew from pyproject.toml (needs uv)
	for extra in dev operator extender dashboard dask; do \
	  case $$extra in operator|extender) more='--extra tracing';; *) more=;; esac; \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	    --quiet --extra $$extra $$more pyproject.toml -o requirements/$$extra.txt; done
	for extra in docs mutants; do \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	    --quiet --constraint requirements/dev.txt --extra $$extra pyproject.toml -o requirements/$$extra.txt; done
	echo 'hatchling>=1.27' | uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --no-header --no-annotate --quiet - -o requirements/build.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	  --quiet examples/requirements.in -o requirements/examples.txt
	uv pip compile --python-version 3.11 --no-deps --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	  --no-annotate --quiet tests/integration/job/integrations/requirements.in -o requirements/integrations.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	  --no-annotate --quiet --constraint requirements/dev.txt images/gpu-plugin/requirements.in -o requirements/gpu-plugin.txt

format: setup ## rewrite the code in the house format
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: setup ## format and lint, changing nothing
	$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: setup ## mypy, strict
	$(BIN)/mypy
	MYPYPATH=examples:job $(BIN)/mypy examples/*.py
	MYPYPATH=docs/site $(BIN)/mypy docs/site/plots.py docs/site/soak.py docs/site/history.py docs/site/flames.py
	MYPYPATH=helm $(BIN)/mypy helm/monitoring
	MYPYPATH=tests:core:api:kube:service:operator:extender:profiler-job:job:view:clusters:sdk:dashboard:cli:devcluster:simulator $(BIN)/mypy tests/support tests/chaos tests/fidelity tests/soak tests/performance

imports: setup ## which room may import which
	$(BIN)/lint-imports

prose: setup ## the words of the documentation, by Vale (built with Go on the first run)
	PYTHONPATH=tests $(PY) -m support.prose

crds: setup ## write crds/, the chart's copy, docs/api.md and docs/troubleshooting.md from api/
	$(PY) -m synergy_api.generation.generate

images: setup ## build the images without Docker and load them into the running devcluster
	$(IMAGES)

images-docker: ## the project's images with Docker: REGISTRY=registry.example.com/team/ TAG=0.2.0
	for room in operator extender dashboard profiler-job examples; do \
	  docker build --file $$room/Dockerfile --tag $(REGISTRY)kube-synergy-$${room%-job}:$(TAG) .; done

sbom: setup prerequisites ## what is in the images and under which licences: sbom/*.cdx.json, sbom/licences.csv
	$(PY) -m synergy_devcluster.images.sbom sbom

dashboards: setup ## write the chart's Grafana dashboards from helm/monitoring
	cd helm && $(CURDIR)/$(PY) -m monitoring

release: setup prerequisites ## everything a release has, in dist/: wheel, chart, image archives, SBOMs, SHA256SUMS
	$(PY) -m synergy_devcluster.release dist

unit: setup ## fast, pure tests
	$(BIN)/pytest tests/unit -n auto

properties: setup ## the planner's promises on a thousand random clusters each; allocations against a second solver
	$(BIN)/pytest tests/unit/core/test_promises.py tests/unit/core/selection/tenancy tests/unit/core/policies/allocation/test_against_a_second_solver.py -n auto --hypothesis-profile=many

performance-small: setup ## ratios to references at small sizes, in declared ranges
	$(BIN)/pytest tests/performance

performance: setup prerequisites ## the same at large sizes, with the product's processes, on an idle machine: RELEASE=0.3.0 keeps the figures
	PYTHONPATH=tests $(PY) -m performance --size large $(if $(RELEASE),--record $(RELEASE))

coverage: setup ## the pure tests with coverage of lines and branches
	$(BIN)/pytest tests/unit -n auto --cov --cov-report=term:skip-covered

mutants: setup .venv/.mutants-installed ## which flipped operators the tests notice: PACKAGE=policies/rounds or extender/decisions, DRAW=50 SEED=1
	@PYTHONPATH=tests $(PY) -m support.mutants $(PACKAGE) --seed $(SEED) $(if $(DRAW),--draw $(DRAW)) $(if $(NEAR),--near)

.venv/.mutants-installed: requirements/mutants.txt .venv/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/mutants.txt
	touch $@

prerequisites: setup ## what the devcluster needs of this machine; installs missing Debian packages when run as root
	$(BIN)/kube-synergy devcluster prerequisites --install

# before a command in a network namespace, from which nothing can be downloaded
programs: prerequisites
	$(BIN)/kube-synergy devcluster build

check: lint types imports prose ## format, lint, types, import rules, the documentation's words

integration: integration-processes integration-page integration-product integration-devcluster ## real processes; real API server and kube-scheduler, kwok nodes

integration-processes: setup prometheus chromium torch integrations newer-torch
	$(AGAIN) $(PROCESS_SUITES) -n auto

# a network namespace of its own: Chromium gives up all that it loads when an interface comes or goes
integration-page: setup prerequisites chromium
	$(APART) $(AGAIN) $(PAGE_SUITE) -n auto

integration-product: setup prerequisites postgres
	$(ON_DEVCLUSTER) sh -c 'set -e; $(IMAGES); bad=0; for suite in $(PRODUCT_SUITES); do $(AGAIN) $$suite || bad=1; done; exit $$bad'

# in a network namespace of its own, beside whatever else runs
integration-devcluster: setup prerequisites
	$(AGAIN) $(DEVCLUSTER_SUITE)

test-e2e: setup prerequisites prometheus chromium ## real kubelet and containers, the chart installed
	$(ON_DEVCLUSTER) sh -c '$(IMAGES) && $(AGAIN) tests/e2e'

# what needs the network comes first: the namespace has no way out
test-kind: setup prerequisites ## a real kind cluster with the node image built here, on a Docker of its own
	$(PY) -m synergy_devcluster.kind prepare
	$(IMAGES) --build-only && $(IMAGES) --build-only gpu-plugin
	$(APART) $(BIN)/pytest tests/kind $(if $(LONG),-m long)

# the Docker daemon alone: what of test-kind fits into each change
test-docker: setup prerequisites
	$(PY) -m synergy_devcluster.kind docker
	$(APART) $(AGAIN) tests/kind/test_a_docker.py

pairings: setup prerequisites ## jobs come to the planned shared GPUs on a real kubelet, again and again: TIMES=10
	$(ON_DEVCLUSTER) sh -c '$(IMAGES) && PAIRINGS=$(TIMES) $(BIN)/pytest tests/e2e/test_shared_gpus.py -k planned_pairs'

# Debian's package without its service, for tests of alerts and dashboards
prometheus: setup
	@test -x .venv/.prometheus/usr/bin/promtool || { set -e; apt-get update -qq; mkdir -p .venv/.prometheus; \
	  cd .venv/.prometheus; apt-get -o APT::Sandbox::User=root download -qq prometheus; dpkg-deb -x prometheus_*.deb .; }

# Debian's package without a server of its own, for tests of the dashboard's history
postgres:
	@compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || { set -e; mkdir -p /etc/postgresql-common; \
	  echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf; \
	  apt-get update -qq; apt-get install -y -qq --no-install-recommends postgresql; }

# the browser for tests of the dashboard's page
chromium: setup
	@test -x /usr/bin/chromium || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }

# Debian's PyTorch for its Python, which runs the training scripts of tests
torch:
	@test -e /usr/lib/python3/dist-packages/torch/__init__.py || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-torch; }

# the PyTorch of the next Debian, which has torch.distributed.checkpoint, beside the machine's: for tests of sharded states
newer-torch: prerequisites
	@test -e .newer-torch/.done || { rm -rf .newer-torch && debootstrap --variant=minbase --include=python3-torch trixie \
	  .newer-torch "$$($(PY) -c 'from synergy_devcluster.images.base import debian_mirror; print(debian_mirror())')" \
	  >/dev/null && rm -rf .newer-torch/var/cache/apt .newer-torch/var/lib/apt/lists && touch .newer-torch/.done; }

integrations: torch ## the frameworks of synergy_job.integrations, for their tests, in .integrations
	@test -e .integrations/.done || { rm -rf .integrations && $(BIN)/pip --python /usr/bin/python3 install --quiet \
	  --root-user-action ignore --no-deps --require-hashes --only-binary :all: --target .integrations \
	  -r requirements/integrations.txt && touch .integrations/.done; }

# sets the wall clocks of processes under test
faketime:
	@compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends libfaketime; }

# in network namespaces of their own too
chaos: setup programs faketime ## faults of all kinds while jobs run: SEED=1 FAULTS=200 JOBS=100 REPORT=out.json
	$(APART) $(PY) -m chaos --seed $(SEED) --faults $(FAULTS) --jobs $(JOBS) $(if $(REPORT),--report $(REPORT))

chaos-outage: setup prerequisites faketime ## jobs train on while the control plane is away: MINUTES=5
	$(IMAGES) --build-only
	OUTAGE_SECONDS=$$((60 * $(MINUTES))) $(APART) $(BIN)/pytest tests/chaos/test_outage.py

chaos-short: setup prerequisites faketime ## each kind of fault once, a short outage, gangs that got stuck
	$(IMAGES) --build-only
	$(APART) $(BIN)/pytest tests/chaos

fidelity: setup prerequisites ## is a cluster of three GPU types as fast as the simulator says: 15 minutes
	$(IMAGES) --build-only
	$(BIN)/pytest tests/fidelity -s

shared-day: setup programs ## 1,000 jobs of 12 tenants on 200 nodes: are guarantees and limits kept, and is it as simulated (an hour): PART=4 for a quarter
	SHARED_DAY_PART=$(PART) $(APART) $(BIN)/pytest tests/shared_day -m long -s

soak: setup programs .venv/.docs-installed ## jobs come and go at 90 % load, parts are restarted, nodes fail: MINUTES=60 GPUS=10000 OUT=soak; soak.json, soak.md, soak.svg
	code=0; $(APART) $(PY) -m soak --gpus $(GPUS) --minutes $(MINUTES) --out $(OUT) || code=$$?; \
	  if test -e $(OUT)/soak.json; then $(PY) docs/site/soak.py $(OUT)/soak.json; fi; exit $$code

plots: setup .venv/.docs-installed ## docs/reproductions/*.svg from the results in docs/reproductions/results
	$(PY) docs/site/plots.py && $(PY) docs/site/history.py && $(PY) docs/site/flames.py

# not --quiet, with which broken links pass
docs: setup .venv/.docs-installed ## the documentation site in site/, with every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

.venv/.docs-installed: requirements/docs.txt .venv/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/docs.txt
	touch $@

# what failed is told once more after all output; an interrupt leaves the time for that
test: setup ## everything; from nothing on a new machine
	@rm -f .failures; trap : INT; $(MAKE) everything || \
	  { code=$$?; echo 'what failed:'; cat .failures 2>/dev/null || echo 'no test: see above'; exit $$code; }

everything: export FAILURES := $(CURDIR)/.failures
everything: setup
	$(MAKE) --jobs=2 --output-sync=line installs check-and-docs
	$(ON_DEVCLUSTER) $(MAKE) side-by-side test-e2e

# the network's part and the processor's part of what comes before the tests, at the same time
check-and-docs:
	$(MAKE) --jobs=1 check docs

# one after the other: Debian's packages have one lock
installs:
	$(MAKE) --jobs=1 prerequisites prometheus postgres chromium torch integrations newer-torch programs

# a storm of one tenant's requests, which measures what others feel of it
storm: setup prerequisites
	$(ON_DEVCLUSTER) $(BIN)/pytest tests/integration/hostile -m long

# the dashboard's recorder is killed again and again while 200 jobs live
recorder: setup prerequisites postgres
	$(ON_DEVCLUSTER) env RECORDED_JOBS=200 $(BIN)/pytest tests/integration/dashboard/test_recorder_killed.py

worker-clusters: setup prerequisites ## a hub and two worker clusters: jobs start where they start soonest, and never in two
	$(ON_DEVCLUSTER) $(BIN)/pytest $(CLUSTERS_SUITE) -m long

# what needs PyTorch's image, every manifest of the examples, an export that is simulated again
e2e-long: setup prerequisites
	$(ON_DEVCLUSTER) sh -c '$(IMAGES) && $(IMAGES) examples-torch && $(BIN)/pytest tests/e2e -m long'

# the whole demo on a real kind cluster
demo-kind-test: setup prerequisites
	$(MAKE) test-kind LONG=1

# the other kinds of sharded states, of which each change sees one in each test
job-long: setup newer-torch
	$(BIN)/pytest tests/integration/job -m long

test-long: properties job-long storm recorder worker-clusters chaos chaos-outage fidelity shared-day e2e-long test-kind demo-kind-test ## what takes too long for each change: SEED=1 FAULTS=200 JOBS=100 MINUTES=5

# what waits for a cluster leaves the other core to what computes, and the longest comes first; output comes suite by
# suite. The end-to-end tests, which measure jobs, have the machine to themselves
side-by-side:
	$(MAKE) --jobs=2 --output-sync=target integration-product unit integration-processes chaos-short performance-small integration-devcluster integration-page test-docker

demo: setup prerequisites ## from nothing to training jobs finishing on a real cluster, told as it happens
	$(BIN)/kube-synergy demo

demo-kind: setup ## the same on a kind cluster of kind-config.yaml: your Docker, kind and Helm, else its own
	$(BIN)/kube-synergy demo --on kind

kind-node-image: setup prerequisites ## a node image for kind, from Debian packages and programs built here
	$(PY) -m synergy_devcluster.kind node-image

kind-down: setup ## end the Docker that demo-kind started, with its cluster
	$(PY) -m synergy_devcluster.kind down
