# Every target sets itself up: a fresh clone needs Python 3.11+, git and make, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Hundreds of processes are started: without .pyc files each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo reproduce test test-slow test-lowest test-torch test-dask test-gpu fuzz bench lint docs dist clean
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
	$(call install,.[cli])

$(VENV)/.ready-%: pyproject.toml
	$(call install,.[$*])

# Learn K-SVD and LKDL class dictionaries on scikit-learn's digits; writes report.html.
demo: $(VENV)/.ready
	@$(BIN)/kernelatoms demo

# Run figures of the papers again: make reproduce FIGURE="lkdl/fig2a --full". Without FIGURE: a list.
reproduce: $(VENV)/.ready
	@$(BIN)/python -m reproduction $(or $(FIGURE),--list)

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One worker per core, a file of tests at a time: half the time on two cores. Further threads of
# BLAS, which wait by spinning, would take time from the other workers.
test test-slow test-lowest test-torch: export OPENBLAS_NUM_THREADS = 1
PYTEST := pytest --numprocesses auto --dist loadfile

# Loops are compiled first, one type per core, which two workers would both do; one core lints before.
COMPILE := $(BIN)/python tests/engine/cpu/public_outputs.py
test: $(VENV)/.ready-dev
	@$(COMPILE) float32 > /dev/null & single=$$!; \
	$(MAKE) --no-print-directory lint && $(COMPILE) float64 > /dev/null; rest=$$?; \
	wait $$single && exit $$rest
	$(BIN)/$(PYTEST)

# Adds what needs real data (KERNELATOMS_DATA=folder) or minutes of time, with fresh random numbers.
test-slow: lint
	KERNELATOMS_TESTS=random $(BIN)/$(PYTEST) -m 'not cluster'

# The lowest versions that pyproject.toml allows, on the lowest Python, in an environment of their own.
LOWEST := build/lowest

test-lowest: $(LOWEST)/.ready
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba $(LOWEST)/venv/bin/$(PYTEST)

$(LOWEST)/.ready: pyproject.toml tests/lowest.py
	@mkdir -p $(@D)
	$(PYTHON) tests/lowest.py > $(LOWEST)/versions.txt
	$(PYTHON) -m venv --clear $(LOWEST)/venv
	@echo "Installing the lowest versions into $(LOWEST): a minute or two, once."
	@$(LOWEST)/venv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint $(LOWEST)/versions.txt --editable '.[dev]'
	@touch $@

# The tensor machine on CPU tensors, in plain torch and by Triton's interpreter, in an environment of its own.
# A build of torch without CUDA will do, and is far smaller: TORCH="torch==2.13.0+cpu --extra-index-url ...".
TORCH ?= torch==2.13.0
TRITON ?= triton==3.9.0
SAFETENSORS ?= safetensors==0.8.0
TORCH_ROOM := build/torch
TENSOR_TESTS := tests/engine/contracts tests/engine/gpu tests/estimators/test_tensors.py
TENSOR_TESTS += tests/estimators/test_dask_devices.py
TENSOR_KERNELS := tests/engine/gpu/test_*kernels.py tests/engine/gpu/test_ksvd.py
TENSOR_PAGE := 'docs/test_pages.py::test_examples_on_the_page_do_what_it_says[guide/gpu.md]'

test-torch: $(TORCH_ROOM)/.ready
	$(TORCH_ROOM)/venv/bin/$(PYTEST) -k 'not on_numpy' $(wildcard $(TENSOR_TESTS) tests/estimators/test_streaming.py) $(TENSOR_PAGE)
	TRITON_INTERPRET=1 $(TORCH_ROOM)/venv/bin/$(PYTEST) --dist load $(wildcard $(TENSOR_KERNELS))

$(TORCH_ROOM)/.ready: pyproject.toml
	@mkdir -p $(@D)
	@test -x $(TORCH_ROOM)/venv/bin/python || $(PYTHON) -m venv $(TORCH_ROOM)/venv
	@echo "Installing $(TORCH) into $(TORCH_ROOM): some minutes, once."
	@$(TORCH_ROOM)/venv/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	@$(TORCH_ROOM)/venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' \
	  "$(SAFETENSORS)" "$(TRITON); sys_platform == 'linux'"
	@touch $@

# Worker processes of Dask: same bits, death, the command line. Minutes.
test-dask: export OPENBLAS_NUM_THREADS = 1
test-dask: $(VENV)/.ready-dev
	$(BIN)/pytest -m cluster tests/cluster

# The same tests on a card, kernels compiled; for a Python whose torch sees one.
test-gpu:
	$(PYTHON) -c 'import sys, torch; torch.cuda.is_available() or sys.exit("test-gpu needs a card that torch sees; choose a Python with: make test-gpu PYTHON=...")'
	PYTHONPATH=src $(PYTHON) -m pytest -k 'not on_numpy' $(wildcard $(TENSOR_TESTS) tests/estimators/test_streaming.py)

# Random model files, tables and numbers, for SECONDS; prints its seed, and SEED=... goes on with it.
SECONDS ?= 600
fuzz: $(VENV)/.ready-dev
	$(BIN)/python -m fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# Against scikit-learn, SPAMS and dictlearn; run it on an idle machine.
bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks.run

# The documentation, gallery and paper pages included: docs/_build/html/index.html.
docs: $(VENV)/.ready-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

# Wheel and sdist, then the wheel in an empty environment: command line, demo data.
dist: $(VENV)/.ready-dev
	rm -rf dist build/trial
	$(BIN)/python -m build --quiet
	$(PYTHON) -m venv build/trial
	build/trial/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[cli]"
	cd build/trial && bin/kernelatoms --version \
	  && bin/kernelatoms datasets iris --output iris.csv \
	  && bin/kernelatoms fit iris.csv --label species && bin/kernelatoms predict model.skops iris.csv --output p.csv \
	  && bin/kernelatoms demo --quick --output demo.html
	rm -rf build/trial
	@ls dist

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache report.html
	rm -rf dist build docs/_build docs/gallery docs/api/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
