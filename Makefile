# Every target makes .venv and installs what it needs by itself. Another Python: make PYTHON=python3.12 test
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What `make test` installs: the engine, the tools, and the frameworks whose adapters are tested.
EXTRAS := dev,tensorflow,torch,huggingface,export,backbones,studio
STAMP := $(VENV)/.installed
# The scripts of the pages; frontend/build.py needs Node, and the installation brings one where there is none.
SCRIPTS := src/ziggurat/web/static/vendor/.built
BENCH_STAMP := $(VENV)/.installed-bench
# Twice quiet: errors only. Versions are pinned in constraints.txt.
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-input -c constraints.txt

.PHONY: help setup demo quick test test-rest test-nightly test-all test-matrix check fix bench docs clean
help:  ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1	\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(STAMP) $(SCRIPTS)  ## make .venv and install everything
$(STAMP): pyproject.toml constraints.txt $(wildcard hatch_build.py src/ziggurat/dataflow/fast/*.c)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	{ echo "Ziggurat needs Python 3.11 to 3.13. Received: `$(PYTHON) -V 2>&1`. Use: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); the first time takes some minutes."
	$(PIP) -e ".[$(EXTRAS)]"
	@touch $(STAMP)

$(SCRIPTS): $(STAMP) $(wildcard frontend/*.json frontend/build.* frontend/src/*.js frontend/src/*/*.js frontend/src/*/*/*.js src/ziggurat/web/static/*.css src/ziggurat/web/static/pages/*.css)
	@$(BIN)/python frontend/build.py

$(BENCH_STAMP): $(STAMP)
	$(PIP) tensorpack grain webdataset
	@touch $(BENCH_STAMP)

demo: $(STAMP) $(SCRIPTS)  ## start the studio and train LeNet on handwritten digits in it
	$(BIN)/ziggurat demo $(DEMO_FLAGS)

quick: $(STAMP) $(SCRIPTS)  ## check the files that changed and run the unit tests of their packages: three minutes at most
	$(BIN)/python -m tools.quick_check

test: check $(SCRIPTS)  ## check, then run the quick tests and one real process of each kind: eight minutes on two cores
	$(BIN)/python -m tools.run_tests quick

test-rest: $(STAMP) $(SCRIPTS)  ## run what the build server runs after `make test`
	$(BIN)/python -m tools.run_tests rest

test-nightly: $(STAMP) $(SCRIPTS)  ## run the longest tests, which the build server leaves out
	$(BIN)/python -m tools.run_tests nightly

test-all: test  ## check, then run every test: an hour and a half on two cores
	$(MAKE) test-rest
	$(MAKE) test-nightly

test-matrix: $(STAMP) $(SCRIPTS)  ## train every combination of framework, data, journey and kill, and walk every task in a browser; not on the build server
	TESTS_EVERY_TASK=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/matrix tests/browser/test_browser_tasks.py

check: $(STAMP)  ## format, lint, types, import contracts, sizes, docstrings, words, docs
	$(BIN)/python -m tools.check

fix: $(STAMP)  ## repair what can be repaired: lint, format, reference pages
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m tools.docs_reference

bench: $(BENCH_STAMP)  ## measure speed as ratios
	$(BIN)/python -m bench

docs: $(STAMP)  ## build the documentation into docs/_build/html
	$(BIN)/python -m tools.docs_reference
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

clean:  ## remove .venv and everything that was built
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache .hypothesis
