# make demo: from nothing to a comparison of policies with pictures.    make test: everything that must hold.
# make check: after each change, a minute. make docs: the site. make bench: the speed figures, as ratios within one run.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# Many tests wait for a daemon: two processes more than there are cores keep them busy.
JOBS ?= $(shell expr $$(nproc) + 2)
# Real clients of PBS, and evalys (it reads an export), each in an environment of its own, made once; one that cannot be
# installed says so in its test.
CLIENTS := cobralab dask evalys ipyparallel parsl psij qtoolkit reframe signac snakemake
CLIENT_ENVIRONMENTS := $(CLIENTS:%=.venv-clients/%/.installed)

.PHONY: demo test check docs nightly lint bench coverage coverage-engine coverage-policies coverage-compiled clean clients chromium

demo: $(VENV)/.installed
	$(BIN)/qbatch demo --out .demo

test: lint $(VENV)/.installed-test chromium
	$(MAKE) --no-print-directory --jobs 3 clients
	@# Tests start hundreds of processes, which need not compile the sources again, also where none may write what it compiles.
	$(BIN)/python -m compileall -q qbatch tests
	@# Many tests wait for processes. One that comes too late beside others is tried again alone; what is wrong stays wrong.
	@# Only that second time each assertion is compiled to tell its values: done to every file in every process, it is dear.
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --assert=plain \
		|| (echo "make: what failed beside others is run again alone" \
			&& $(BIN)/python -m pytest -q -p no:xdist --last-failed --last-failed-no-failures none --maxfail 3)

# What a developer runs after each change: about a minute on two cores. The tests left out compile kernels in other processes.
COMPILING := tests/planning/test_live_kernels.py tests/planning/test_jit.py tests/planning/test_native.py
check: lint
	@QBATCH_QUICK=1 $(BIN)/python -m pytest -q -n $$(nproc) --dist worksteal --assert=plain $(COMPILING:%=--ignore=%) tests/model tests/engine \
		tests/metrics tests/wire tests/contract tests/planning tests/test_architecture.py tests/documents/test_language.py \
		tests/documents/test_citations.py

# The kernels are measured uncompiled: a compiled line cannot be counted.  Two halves side by side, and after the
# shorter one what is too slow uncompiled, or skips itself there.
COUNTED := $(BIN)/python -m coverage run --parallel-mode -m pytest -q -p no:xdist -p no:cacheprovider
COVERAGE := NUMBA_DISABLE_JIT=1 $(COUNTED)

coverage: $(VENV)/.installed-test
	rm -f .coverage .coverage.*
	$(MAKE) --no-print-directory --jobs 2 coverage-engine coverage-policies coverage-compiled
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --include='qbatch/planning/*,qbatch/engine/*,qbatch/policies/*,qbatch/simulation/kernels/*,qbatch/model/*'

coverage-engine:
	@$(COVERAGE) tests/engine tests/model tests/simulation/test_uncompiled.py tests/simulation/test_network.py > .pytest-coverage.1.log 2>&1 \
		|| (tail -n 40 .pytest-coverage.1.log; exit 1)

coverage-policies:
	@$(COVERAGE) tests/planning tests/policies tests/contract > .pytest-coverage.2.log 2>&1 \
		|| (tail -n 40 .pytest-coverage.2.log; exit 1)

coverage-compiled:
	@$(COUNTED) tests/policies/test_searched.py tests/metrics tests/planning/test_jit.py tests/planning/test_native.py \
		> .pytest-coverage.3.log 2>&1 \
		|| (tail -n 40 .pytest-coverage.3.log; exit 1)

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --quiet --check qbatch tests
	$(BIN)/ruff check qbatch tests
	$(BIN)/mypy
	$(BIN)/lint-imports

# What takes hours: hostile requests by the million, kill -9, failing disks and losses of power at every point; and every test
# that draws more at night (size and draws in tests/harness.py): thousands of random workloads beside the oracles.
nightly: $(VENV)/.installed-test
	QBATCH_NIGHTLY=1 $(BIN)/python -m pytest -q -s -n $(JOBS) --dist worksteal tests/daemon/hostile \
		$$(grep -rlE '\b(size|draws)\(|\bNIGHTLY\b' tests --include='test_*.py' | grep -v '^tests/daemon/hostile/')

# The site in .site/: strict (a dead link is an error), with search, the Python reference from the docstrings; it asks no network.
docs: $(VENV)/.installed-test
	$(BIN)/python -m tests.documents.reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --clean

bench: $(VENV)/.installed-test
	$(BIN)/python -m tests.bench

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || (echo "make: python3 -m venv failed; on Debian: apt install python3-venv" >&2; exit 1)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@$(BIN)/python -m pip --quiet --quiet uninstall --yes qbatch  # the name of another program, and of this one until 0.1.0
	$(PIP) --editable '.[report,tui]'
	@# pip compiles what it copies, and an editable installation is not copied: each qsub would compile its modules anew where
	@# Python may not keep what it compiles (PYTHONDONTWRITEBYTECODE, a tree of another user).
	$(BIN)/python -m compileall -q qbatch
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) --editable '.[report,tui,dask,catalogue,gym,test,lint,docs]'
	touch $@

# The report's page is tested in Debian's chromium; where there is none and none can be installed, those tests are skipped.
chromium:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
		|| ([ "$$(id -u)" = 0 ] && apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
			apt-get -qq install --yes --no-install-recommends chromium) > .chromium.log 2>&1 \
		|| echo "make: chromium cannot be installed, see .chromium.log; the tests in a browser are skipped" >&2

clients: $(CLIENT_ENVIRONMENTS)

.venv-clients/%/.installed: tests/clients/constraints-%.txt
	@rm -rf .venv-clients/$* && mkdir -p .venv-clients
	@$(PYTHON) -m venv .venv-clients/$* > .venv-clients/$*.log 2>&1 \
		&& .venv-clients/$*/bin/python -m pip --disable-pip-version-check install --quiet --requirement $< \
			>> .venv-clients/$*.log 2>&1 \
		&& touch $@ || echo "make: the client $* cannot be installed, see .venv-clients/$*.log" >&2

clean:
	rm -rf $(VENV) .venv-clients .demo .site .coverage* .pytest-coverage.* .chromium.log .mypy_cache .pytest_cache .ruff_cache .hypothesis
