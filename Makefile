# make demo: from nothing to a comparison of policies with pictures.    make test: everything that must hold.
# make bench: the speed figures of the README, as ratios within one run. make lint: style, types, import contracts.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
JOBS ?= auto

.PHONY: demo test lint bench coverage clean

demo: $(VENV)/.installed
	$(BIN)/qbatch demo --out .demo

test: lint $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal
	$(MAKE) --no-print-directory coverage

# The kernels are measured uncompiled: a compiled line cannot be counted.
coverage: $(VENV)/.installed-test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest -q -p no:xdist tests/engine tests/planning tests/policies \
		tests/model tests/replay/test_uncompiled.py tests/contract > .pytest-coverage.log 2>&1 \
		|| (tail -n 40 .pytest-coverage.log; exit 1)
	$(BIN)/python -m coverage report --include='qbatch/planning/*,qbatch/engine/*,qbatch/policies/*,qbatch/replay/kernels/*,qbatch/model/*'

lint: $(VENV)/.installed-test
	$(BIN)/ruff check qbatch tests
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-test
	$(BIN)/python -m tests.bench

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || (echo "make: python3 -m venv failed; on Debian: apt install python3-venv" >&2; exit 1)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[report]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) --editable '.[report,test,lint]'
	touch $@

clean:
	rm -rf $(VENV) .demo .coverage .pytest-coverage.log .mypy_cache .pytest_cache .ruff_cache .hypothesis
