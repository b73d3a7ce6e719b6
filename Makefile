# Every target sets itself up: a fresh clone needs Python 3.11+, git and make, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow bench lint clean
.DEFAULT_GOAL := test

# $(call install,what) puts the package (and extras) into $(VENV), creating it when it is not there.
define install
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("kernelatoms needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; choose one with: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing $(1) into $(VENV): a minute or two, once."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '$(1)'
	@touch $@
endef

$(VENV)/.ready: pyproject.toml
	$(call install,.)

$(VENV)/.ready-%: pyproject.toml
	$(call install,.[$*])

# Learn K-SVD and LKDL class dictionaries on scikit-learn's digits; writes report.html.
demo: $(VENV)/.ready
	@$(BIN)/python -m kernelatoms.cli.demo

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest

# Adds what needs real data (KERNELATOMS_DATA=folder) or minutes of time.
test-slow: lint
	$(BIN)/pytest -m 'slow or not slow'

# Against scikit-learn, SPAMS and dictlearn; run it on an idle machine.
bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
