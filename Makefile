# Few targets; CI calls the same ones.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test foreign mutants check bench scorecard scenarios docs requirements format clean

help:  ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  %-14s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install -q -e ".[local]"
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	@$(BIN)/python -m pip install -q --group dev
	@touch $@

run: $(INSTALLED)  ## Set up and run the agent once on the bundled example project
	@$(BIN)/trimtab demo

test: $(INSTALLED_DEV)  ## Set up and run all tests
	@$(BIN)/python -m pytest -n 3 --dist worksteal

foreign: $(INSTALLED_DEV)  ## Fetch large foreign programs and run the tests that need them
	@PYTHONPATH=tests $(BIN)/python tests/foreign.py
	@$(BIN)/python -m pytest -m foreign

mutants: $(INSTALLED_DEV)  ## Change the code at random and list the changes no test notices
	@$(BIN)/python -m pip install -q --group mutants
ifeq ($(PACKAGE),statements)
	@$(BIN)/python tests/statement_mutants.py --seed $(or $(SEED),1)
else
	@$(BIN)/python tests/mutants.py $(PACKAGE) --sample $(or $(SAMPLE),40) --seed $(or $(SEED),1)
endif

check: $(INSTALLED_DEV)  ## Format, lint, types, layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(INSTALLED_DEV)  ## Measure speed and memory, as ratios to a bare-asyncio program
	@$(BIN)/python bench/run.py

scorecard: $(INSTALLED_DEV)  ## Measure the promises at full size
	@$(BIN)/python bench/scorecard.py

scenarios: $(INSTALLED_DEV)  ## Accept what the recorded sessions come to now; `make test` compares
	@$(BIN)/trimtab simulate tests/scenarios --update

docs: $(INSTALLED_DEV)  ## Write the generated reference pages
	@$(BIN)/python docs/generate.py

requirements: $(INSTALLED_DEV)  ## Proven and open statements by group
	@$(BIN)/python tests/requirements.py

format: $(INSTALLED_DEV)  ## Format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
