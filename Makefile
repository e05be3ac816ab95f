# Everything runs in .venv, which is built once and reused until the requirements change.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Compiled modules are kept, whatever the surroundings say: the tests start more than a hundred processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test slow check format mutation reproduce bench docs dist matrix clean
help:            ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 17

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dafh needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(READY)   ## the paper's synthetic experiment: a table and a figure
	$(BIN)/dafh demo

test: $(READY)   ## the fast tests and the docstring examples
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Without flags, networks are compiled as for users; the fast tests do without most optimisations (tests/conftest.py).
slow: $(READY)   ## simulations, full studies, and laws with fifteen times as many examples
	XLA_FLAGS= $(BIN)/python -m pytest -m 'slow or hypothesis' --hypothesis-profile thorough

check: $(READY)  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# MUTATE="dafh.stats.paired*" looks at one module only. Settings are in pyproject.toml.
mutation: $(READY) ## small changes of the method, the statistics and the guard that no test notices
	$(BIN)/mutmut run $(MUTATE)
	$(BIN)/mutmut results

# For a first look in a minute: make reproduce DATA=german TABLE=k2 SPLITS=1
reproduce: $(READY) ## the paper's tables, figures and claims with the published numbers beside ours, in reproduction
	$(BIN)/python -m research.paper $(TABLE) $(DATA:%=--data %) $(SPLITS:%=--splits %)

bench: $(READY)  ## speed and memory as ratios, filled into the pages of research/benchmarks
	for name in speed boosting scale; do $(BIN)/python -m research.benchmarks.$$name || exit 1; done

# -E runs notebooks again whose text has not changed.
docs: $(READY)   ## user guide, notebooks and API reference as web pages, in docs/_build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -E -W --keep-going -q docs docs/_build
	@echo docs/_build/index.html

# The date inside of the files is that of the last commit, so that anybody can build the same bytes.
dist: $(READY)   ## wheel and sdist, in dist
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --quiet
	@ls dist

matrix: dist     ## run the demo from wheel and sdist, each in a clean environment
	for file in dist/*; do \
	  rm -rf .matrix && $(PYTHON) -m venv .matrix && .matrix/bin/pip install --quiet --constraint constraints.txt "$$file[network]" && \
	  .matrix/bin/dafh demo --samples 2000 --out .matrix/demo.png || exit 1; \
	done; rm -rf .matrix

clean:           ## remove the environment and caches
	rm -rf $(VENV) dist mutants docs/_build docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis
