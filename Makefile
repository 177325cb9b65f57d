# Every target makes the environment it needs: a fresh clone, Python 3.11 or newer and pip suffice.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
BENCH := .venv-bench
UV_COMPILE = $(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --annotation-style line pyproject.toml

.DEFAULT_GOAL := help
.SECONDARY:
.PHONY: help demo test integration_tests lint type format bench bench_surfaces bench_writes bench-quality bench_stores survival docs_check studio drawings lowest locks clean

help: ## Show the targets.
	@grep -hE '^[a-z_-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: $(VENV)/demo.stamp ## Show memory at work: offline, without a key.
	$(BIN)/python examples/demo.py

test: $(VENV)/dev.stamp ## Run the unit tests: no network, no key; TESTS=path runs a part of them.
	$(BIN)/python -m pytest -n 2 $(or $(TESTS),tests/unit_tests)

integration_tests: $(VENV)/integration.stamp ## Run the tests with real servers, kills and builds.
	$(BIN)/python -m pytest -n 2 --force-enable-socket --timeout 300 $(or $(TESTS),tests/integration_tests)

lint: $(VENV)/dev.stamp ## Check style, format and the shape of the code.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/check_shape.py

type: $(VENV)/dev.stamp ## Check types.
	$(BIN)/mypy

format: $(VENV)/dev.stamp ## Format the code and repair what the linter can.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs_check: $(VENV)/dev.stamp ## Run the code blocks of the documentation.
	$(BIN)/python -m pytest -n 0 tests/unit_tests/test_docs.py

studio: $(VENV)/integration.stamp ## Open the graphs in LangGraph Studio, without a key; ARGS=... passes options.
	LANGGRAPH_CLI_NO_ANALYTICS=1 $(BIN)/langgraph dev $(ARGS)

drawings: $(VENV)/dev.stamp ## Draw the graphs into the documentation anew.
	$(BIN)/python scripts/drawings.py

bench: bench_surfaces bench_writes bench_stores ## Measure speed, half an hour: surfaces, the write path, stores.

bench_surfaces: $(VENV)/dev.stamp ## Measure what each surface costs; SURFACES=... passes options.
	$(BIN)/python benchmarks/surfaces.py $(SURFACES)

bench_writes: $(VENV)/dev.stamp ## Measure what writing with a model costs beside LangMem; WRITES=... passes options.
	$(BIN)/python benchmarks/write_path.py $(WRITES)

bench-quality: $(VENV)/integration.stamp ## Measure recall as in the README: DATA=folder; ARGS=... passes options.
	@test -n "$(DATA)" || { echo "Name the folder of data: make bench-quality DATA=folder"; exit 1; }
	$(BIN)/agentmem bench --data $(DATA) --memory RAGMemory --memory RAGMemory:embed=minilm \
		--out build/bench-quality $(ARGS)

bench_stores: $(BENCH)/bench.stamp ## Compare stores in one run, minutes long; STORES=... passes options.
	$(BENCH)/bin/python benchmarks/stores.py $(STORES)

survival: $(VENV)/dev.stamp ## Kills, contention and random work at length, 10 to 15 minutes; ARGS=... passes options.
	$(BIN)/python -m tests.survival $(ARGS)

lowest: $(LOWEST)/lowest.stamp ## Run the unit tests with the lowest dependencies that are allowed.
	$(LOWEST)/bin/python -m pytest -n 2 $(or $(TESTS),tests/unit_tests)

locks: $(VENV)/dev.stamp ## Renew requirements/*.lock; each is a part of the one before.
	$(UV_COMPILE) --universal --extra all --extra studio --group dev --group test_integration \
		-o requirements/integration.lock
	$(UV_COMPILE) --universal --extra openai --extra langmem --extra classic --extra postgres \
		--group dev -c requirements/integration.lock -o requirements/dev.lock
	$(UV_COMPILE) --universal --group build -c requirements/dev.lock -o requirements/demo.lock
	$(UV_COMPILE) --group build --group test --resolution lowest-direct -o requirements/lowest.lock
	$(UV_COMPILE) --universal --group build --group bench -c requirements/integration.lock \
		-o requirements/bench.lock

clean: ## Remove the environments and caches that these targets made.
	rm -rf $(VENV) $(LOWEST) $(BENCH) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist

# One environment grows from demo to dev to integration: the locks agree on every version.
define install
	$(1)/bin/python -m pip install -qq --no-deps --require-hashes -r $(2)
	$(1)/bin/python -m pip install -qq --no-deps --no-build-isolation -e .
	touch $@
endef

$(VENV)/%.stamp: requirements/%.lock pyproject.toml | $(VENV)/bin/python
	$(call install,$(VENV),$<)

$(BENCH)/%.stamp: requirements/%.lock pyproject.toml | $(BENCH)/bin/python
	$(call install,$(BENCH),$<)

$(LOWEST)/lowest.stamp: requirements/lowest.lock pyproject.toml | $(LOWEST)/bin/python
	$(call install,$(LOWEST),$<)

%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $*
