# Everything a fresh machine needs: Python 3.11 or later, make and the package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNNABLE := $(VENV)/.runnable
INSTALLED := $(VENV)/.installed
# The lock files have a hash for every file that is installed, also for the tools that build this package. They are complete,
# so that pip resolves nothing: for `pydantic[email]` it would look for a later version, which has no hash.
LOCKS := deploy/requirements
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL_LOCKED = $(INSTALL) --no-deps --require-hashes --requirement
INSTALL_EDITABLE = $(INSTALL) --no-deps --no-build-isolation --editable .
LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	--constraint constraints.txt --group pyproject.toml:build pyproject.toml

HELM ?= helm

TEST = $(BIN)/python -m pytest --quiet
# Each process has its own PostgreSQL and Redis, unless the environment names servers. Many tests wait, so four processes keep
# two cores busy.
TEST_PROCESSES ?= 4
# Two halves that take equally long, each in a process of its own. With pytest-xdist each process would collect all tests and
# report each one to a third process, which takes longer than the tests.
FAST_ENGINE = tests/upstream
FAST_OTHERS = $(addprefix tests/,test_layout.py test_settings.py agents client foundation kinds web/console web/pages)

# Tests start hundreds of processes. Without cached bytecode each of them would compile every module again, so a
# PYTHONDONTWRITEBYTECODE of the environment is cleared here.
test test-fast-engine test-fast-others faults bench: export PYTHONDONTWRITEBYTECODE =

NPM_PACKAGE = gateway/client/typescript

.DEFAULT_GOAL := help

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(BIN)/pip:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
	{ echo "$(PYTHON) is missing, or older than Python 3.11; name a later one, such as: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(RUNNABLE): pyproject.toml $(LOCKS)/all.txt | $(BIN)/pip
	@echo "installing into $(VENV) (less than a minute, the first time) …"
	@$(INSTALL_LOCKED) $(LOCKS)/all.txt
	@$(INSTALL_EDITABLE)
	@touch $@

$(INSTALLED): pyproject.toml $(LOCKS)/dev.txt | $(BIN)/pip
	@echo "installing into $(VENV), with what checks and tests need (a minute, the first time) …"
	@$(INSTALL_LOCKED) $(LOCKS)/dev.txt
	@$(INSTALL_EDITABLE)
	@touch $(RUNNABLE) $@

install: $(INSTALLED) ## Create the virtual environment

demo: $(RUNNABLE) ## Make typical calls to the sandbox, on embedded PostgreSQL and Redis
	@$(BIN)/gateway demo

run: $(RUNNABLE) ## Serve the same set-up until Ctrl-C: front end, worker, embedded stores and sandbox
	@$(BIN)/gateway up --sandbox

test: $(INSTALLED) ## Run the tests
	@together=0; $(TEST) --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder -m 'not alone' || together=1; \
	$(TEST) -m alone tests/journeys tests/web && exit $$together

test-fast: $(INSTALLED) ## Run only the tests that start no process: engine, spec language and others
	@$(MAKE) --no-print-directory --jobs 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync) test-fast-engine test-fast-others

test-fast-engine: $(INSTALLED)
	@$(TEST) -m 'not processes' $(FAST_ENGINE)

test-fast-others: $(INSTALLED)
	@$(TEST) -m 'not processes' $(FAST_OTHERS)

faults: $(INSTALLED) ## Kill and freeze processes under load, and print a report
	@$(BIN)/python -m tests.faults

bench: $(INSTALLED) ## Run the benchmarks (half an hour); each figure is measured beside a baseline
	@$(BIN)/python -m tests.benchmarks

screenshots: $(INSTALLED) ## Take the screenshots of the console and the documents
	@mkdir -p docs/screenshots
	@GATEWAY_SCREENSHOTS=docs/screenshots $(TEST) tests/journeys/test_console_browser.py -k "every_screen or every_other or playground or live or console"
	@GATEWAY_SCREENSHOTS=docs/screenshots $(TEST) tests/web/test_docs_browser.py -k every_sort

check: $(INSTALLED) ## Check format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

lock: ## Pin all dependencies by hash, after a change to pyproject.toml or constraints.txt (needs uv)
	@$(LOCK) --extra all --extra dev --output-file $(LOCKS)/dev.txt
	@$(LOCK) --extra all --output-file $(LOCKS)/all.txt
	@$(LOCK) --extra server --extra semantic --extra s3 --extra otel --output-file $(LOCKS)/image.txt

typescript: $(INSTALLED) ## Write the types of the TypeScript package, after a change to the API (needs npm)
	@npm ci --silent --no-fund --no-audit --prefix $(NPM_PACKAGE)
	@TYPESCRIPT_CLIENT=$(NPM_PACKAGE) $(BIN)/python -m tests.client.typescript.generate_schema

sbom: $(INSTALLED) ## Write bills of materials (CycloneDX) of the wheel and the image to dist/
	@mkdir -p dist
	@$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-file dist/wheel.cdx.json $(LOCKS)/all.txt
	@$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-file dist/image.cdx.json $(LOCKS)/image.txt

image: ## Build the image (needs Docker)
	docker build --file deploy/Dockerfile --tag agent-connector-gateway .

image-test: ## Build the image, start it with its stores, and remove everything (needs Docker Compose)
	@deploy/smoke-test

release: sbom ## Build wheel, sdist, npm package, chart, bills of materials and checksums in dist/ (needs helm and npm); nothing is published
	@command -v $(HELM) >/dev/null || { echo "$(HELM) is not installed: https://helm.sh/docs/intro/install"; exit 1; }
	@command -v npm >/dev/null || { echo "npm is not installed: https://nodejs.org/en/download"; exit 1; }
	@rm -f dist/*.whl dist/*.tar.gz dist/*.tgz dist/SHA256SUMS
	@$(BIN)/hatchling build --directory dist
	@$(HELM) package deploy/helm --destination dist 2>/dev/null
	@npm ci --silent --no-fund --no-audit --prefix $(NPM_PACKAGE)
	@npm run --silent build --prefix $(NPM_PACKAGE)
	@cd $(NPM_PACKAGE) && npm pack --silent --pack-destination $(CURDIR)/dist >/dev/null
	@cd dist && sha256sum *.whl *.tar.gz *.tgz *.cdx.json > SHA256SUMS && cat SHA256SUMS

audit: $(INSTALLED) ## Check all dependencies for known vulnerabilities; skipped if the advisory database cannot be reached
	@timeout 10 $(BIN)/python -c "import socket; socket.create_connection(('api.osv.dev', 443), 5).close()" 2>/dev/null \
	|| { echo "skipped: the advisory database (api.osv.dev) cannot be reached"; exit 0; } \
	&& timeout 300 $(BIN)/pip-audit --disable-pip --require-hashes --vulnerability-service osv --requirement $(LOCKS)/dev.txt

clean: ## Remove everything that the other targets created
	rm -rf $(VENV) .gateway build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help install demo run test test-fast test-fast-engine test-fast-others faults bench screenshots check lock typescript sbom image image-test release audit clean
