# Two commands set up everything they need: `make demo` and `make test`.
# PYTHON chooses the interpreter for the virtual environment; VENV where it is kept.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check quick-tests coverage fuzz lint types docs serve-docs format clean oldest

help:  ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime  ## Train on noisy digits with and without sparse regularization; write a page
	@$(BIN)/labelproof demo $(ARGS)

test: $(VENV)/.developer  ## Lint, types, docs, wheel and all tests
	@$(MAKE) --no-print-directory --jobs=2 lint types docs
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

check: $(VENV)/.developer  ## While you work: lint, types, quick tests, in two minutes
	@$(MAKE) --no-print-directory --jobs=2 types lint quick-tests

quick-tests: $(VENV)/.developer
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow" tests/losses tests/noise

coverage: $(VENV)/.developer  ## All tests with coverage, which takes twice as long
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term $(ARGS)

# Not the oldest torch, which comes with gigabytes of CUDA.
oldest:  ## All tests with the oldest versions of the other dependencies that pyproject.toml allows
	@$(PYTHON) -m venv $(VENV)-oldest
	@sed -n '/^dependencies/,/^]/{/"torch/d; s/^  "\([A-Za-z_0-9-]*\)>=\([0-9.]*\).*/\1==\2/p}' pyproject.toml > $(VENV)-oldest/pins.txt
	@$(VENV)-oldest/bin/python -m pip install --quiet --constraint $(VENV)-oldest/pins.txt $$(grep ^torch== constraints.txt) --editable '.[dev]'
	@OMP_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -n 2 --dist worksteal -W default --ignore tests/faults $(ARGS)

fuzz: $(VENV)/.developer  ## Damaged files and hostile texts for MINUTES (1), a table of how they end
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/faults/test_readers.py -k "not damaged_example"
	@OMP_NUM_THREADS=1 $(BIN)/python tests/damage.py $(or $(MINUTES),1)

lint: $(VENV)/.developer  ## Style, formatting and the one-way dependencies
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache

types: $(VENV)/.developer  ## Static types of the package
	@$(BIN)/basedpyright

docs: $(VENV)/.developer  ## Build the docs site into site/, warnings are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "docs: built in site/"

serve-docs: $(VENV)/.developer  ## Serve the docs on this machine while you write them
	@$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8000

format: $(VENV)/.developer  ## Rewrite the sources in the house format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:  ## Remove the virtual environment and everything built
	rm -rf $(VENV) $(VENV)-oldest build dist site docs/generated .coverage .coverage.* .pytest_cache .ruff_cache

# A stamp is newer than what it was installed from, so a second call installs nothing.
$(VENV)/bin/python:
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing labelproof (a minute or two, once)"
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.developer: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing labelproof with its developer tools (a few minutes, once)"
	@$(INSTALL) --editable '.[dev]'
	@touch $(VENV)/.runtime $@
