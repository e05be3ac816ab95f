# Everything runs in .venv, which is built once and reused until the requirements change.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Compiled modules are kept, whatever the surroundings say: the tests start more than a hundred processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test slow kill check format mutation fuzz bench docs lock locked vulnerabilities dist reproducible matrix clean
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

# About a quarter of an hour on one core. The fast tests try a few of them.
kill: $(READY)   ## kill every command within its writes, fill the disk, and try odd surroundings
	PYTHONPATH=tests $(BIN)/python -m killing --surroundings

check: $(READY)  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

mutation: $(READY) ## small changes of the code that no test notices
	$(BIN)/python benchmarks/mutation.py --write

# What is kept in .fuzz lets the next run go on; FUZZ="--seconds 60 tables" says how long, and which kinds.
fuzz: $(READY)   ## ten minutes of hostile tables, states, exports and calls
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz $(FUZZ)

bench: $(READY)  ## speed and memory as ratios, written to benchmarks/README.md
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/boosting.py
	$(BIN)/python benchmarks/rivals.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/scoring.py
	$(BIN)/python benchmarks/watch.py
	$(BIN)/python benchmarks/load.py

# -E runs notebooks again whose text has not changed.
docs: $(READY)   ## user guide, notebooks and API reference as web pages, in docs/_build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -E -W --keep-going -q docs docs/_build
	@echo docs/_build/index.html

# Versions are those of constraints.txt: change one there, or delete its line for the newest, and run this again.
# Hashes come from the index that is configured; no address is written.
lock: $(READY)   ## requirements-dev.lock: every package for development, with the hashes of its files
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra docs --universal --python-version 3.11.5 --constraint constraints.txt \
	  --generate-hashes --no-annotate --no-emit-index-url --custom-compile-command 'make lock' --quiet --output-file requirements-dev.lock

# Not the default: an index that builds wheels of its own offers other files under the same versions.
locked:          ## the environment again, from files that have the hashes of requirements-dev.lock only
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(READY)

vulnerabilities: ## known vulnerabilities of locked packages, where an index offers the data
	$(PYTHON) release/vulnerabilities.py

# The date inside of the files is that of the last commit, so that anybody can build the same bytes.
dist: $(READY)   ## wheel and sdist, in dist
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --quiet
	@ls dist

reproducible: $(READY) ## build wheel and sdist twice, and compare the bytes
	$(BIN)/python release/reproducible.py

matrix: dist     ## install both in clean environments, and run the README's commands there
	$(PYTHON) release/install_matrix.py

clean:           ## remove the environment and caches
	rm -rf $(VENV) dist docs/_build docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis
