# Everything a fresh machine needs: Python 3.11 or later, make and the package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNNABLE := $(VENV)/.runnable
INSTALLED := $(VENV)/.installed
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

TEST = $(BIN)/python -m pytest --quiet
# Each has a PostgreSQL and a Redis of its own, unless the environment names servers. Many tests wait: three fill two cores.
TEST_PROCESSES ?= 3
# Two halves that take equally long, a process for each: those of pytest-xdist would each collect all, and tell of each test
# to a third, which takes longer than the tests.
FAST_ENGINE = tests/upstream
FAST_OTHERS = $(addprefix tests/,test_layout.py test_settings.py agents aio client http/console http/pages kinds telemetry)

# Tests start hundreds of processes. Where the environment forbids to keep what Python has compiled, each would compile
# everything anew, which takes longer than what it does.
test test-fast-engine test-fast-others faults bench: export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help

help: ## Show what there is to make
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(BIN)/pip:
	@$(PYTHON) -m venv $(VENV)

$(RUNNABLE): pyproject.toml constraints.txt | $(BIN)/pip
	@echo "installing into $(VENV) (less than a minute, the first time) …"
	@$(INSTALL) '.[all]'
	@touch $@

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/pip
	@echo "installing into $(VENV), with what checks and tests need (a minute, the first time) …"
	@$(INSTALL) '.[all,dev]'
	@touch $(RUNNABLE) $@

install: $(INSTALLED) ## Make the virtual environment

demo: $(RUNNABLE) ## Run the main job for real: embedded stores, sandbox, one tour
	@$(BIN)/gateway demo

run: $(RUNNABLE) ## Leave the same set-up serving, sandbox included
	@$(BIN)/gateway up --sandbox

test: $(INSTALLED) ## Run the tests
	@together=0; $(TEST) --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder -m 'not alone' || together=1; \
	$(TEST) -m alone tests/journeys && exit $$together

test-fast: $(INSTALLED) ## Run the tests of engine, spec language and others that start no process, for a change on its way
	@$(MAKE) --no-print-directory --jobs 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync) test-fast-engine test-fast-others

test-fast-engine: $(INSTALLED)
	@$(TEST) -m 'not processes' $(FAST_ENGINE)

test-fast-others: $(INSTALLED)
	@$(TEST) -m 'not processes' $(FAST_OTHERS)

faults: $(INSTALLED) ## Kill and freeze real processes under load and print the report
	@$(BIN)/python -m tests.faults

bench: $(INSTALLED) ## Measure, each figure beside its baseline in the same run
	@$(BIN)/python -m tests.benchmarks

screenshots: $(INSTALLED) ## Take the pictures of the console that the README shows
	@mkdir -p docs/screenshots
	@GATEWAY_SCREENSHOTS=docs/screenshots $(TEST) tests/journeys/test_console_browser.py -k "overview or playground or live"

check: $(INSTALLED) ## Format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

clean: ## Remove what the above made
	rm -rf $(VENV) .gateway build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help install demo run test test-fast test-fast-engine test-fast-others faults bench screenshots check clean
