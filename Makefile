# The commands of this project; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
STARTUP := $(VENV)/startup-cache
# Without compiled files every run rewrites all tests anew, and every `kdeclare` that one starts compiles itself.
unexport PYTHONDONTWRITEBYTECODE
# Real clusters and workers of their own, so that they can run beside those of the other tests. The brokers
# that either of the last two lines starts run on to its end.
KEEPS = tests/kafka/test_examples.py::test_example_succeeds_and_cleans_up
APART := tests/kafka/test_sandbox_connect.py tests/kafka/test_sandbox_clusters.py tests/kafka/test_sandbox_registry.py tests/kafka/connect \
	tests/kafka/test_tutorial.py tests/kafka/test_trailing_broker.py tests/kafka/test_old_broker.py \
	tests/kafka/test_demo.py tests/kafka/test_prefixed.py tests/kafka/test_secured.py tests/kafka/test_scram_users.py tests/kafka/test_log_dirs.py \
	'$(KEEPS)[fleet]' '$(KEEPS)[connect-tls-rotation]' \
	$(addprefix tests/kafka/test_broker_policies,.py _shown.py _side_by_side.py)
# The moves share five brokers, and wait for them most of the time. The tests of ACLs take about three minutes.
MANY := tests/kafka/test_fleet.py $(wildcard tests/kafka/test_acl*.py) tests/kafka/test_access_under_load.py \
	$(addprefix tests/kafka/test_moves,.py _data.py _races.py)
NOTHING_BIG := 'not kafka and not spark and not browser'

.PHONY: help install unit startup-cache test test-brokers test-many test-apart test-spark test-units test-rest test-properties browser check format docs demo bench clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/	/' | expand -t 18

$(READY): pyproject.toml constraints.txt
	@echo "Installing into $(VENV); the first time this takes minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

install: $(READY) ## the virtual environment with everything in it

unit: $(READY)   ## fast tests: no Java, no broker, seconds; on all processors
	$(BIN)/python -m pytest -n logical --maxprocesses=8

$(STARTUP)/%/.made: $(READY) tests/startup_cache.py
	$(BIN)/python -m tests.startup_cache $*
	touch $@

startup-cache: $(STARTUP)/kafka/.made $(STARTUP)/spark/.made ## what lets Java and Spark start faster in tests; `make test` makes it once

# The quickest to fail comes first. The tests without brokers, which never wait for anything for long, fill in for
# those that do.
test: $(READY)   ## everything: checks, fast tests, real brokers, Spark, Chromium if it is there, examples, the demo
	$(MAKE) -j7 --output-sync=target check test-brokers test-spark test-apart test-many test-units test-rest FILL='nice -n 5'

test-brokers: $(STARTUP)/kafka/.made ## the tests with real brokers, but for those with clusters of their own
	$(BIN)/python -m pytest -m kafka --durations=10 $(APART:%=--deselect=%) $(MANY:%=--deselect=%)

test-many: startup-cache ## a fleet of three real clusters, ACLs, then moves of replicas between five real brokers
	$(BIN)/python -m pytest -m kafka --durations=10 $(MANY)

test-apart: $(STARTUP)/kafka/.made ## tests with clusters of their own: Connect workers, old, secured and slow brokers, the tutorial
	$(BIN)/python -m pytest -m kafka --durations=10 $(APART)

test-spark: $(STARTUP)/spark/.made ## Spark, and the pages in Chromium
	$(BIN)/python -m pytest -m 'not kafka and (spark or browser)' --durations=10

test-units: $(READY) ## tests/unit, with its slow ones
	$(FILL) $(BIN)/python -m pytest -m $(NOTHING_BIG) --durations=10 tests/unit

test-rest: $(READY) ## all other tests: the engine, scripts for CI, providers that are installed
	$(FILL) $(BIN)/python -m pytest -m $(NOTHING_BIG) --durations=10 --ignore=tests/unit

test-properties: $(READY) ## only the property tests, with many examples each; not part of `make test`
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=thorough --durations=10

browser:         ## Debian's Chromium, for the tests of pages, where there is none and it can be had
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; }

check: $(READY)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## let ruff put things in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)   ## the documentation as a site, in build/site; strict, and nothing is fetched
	$(BIN)/python -m sphinx -q -n -W --keep-going -c scripts/site -b html . build/site

demo: $(READY)   ## the whole story on real brokers, from an empty machine; then a fleet of three clusters
	PATH="$(CURDIR)/$(BIN):$$PATH" bash scripts/demo.sh
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/fleet/run.sh

bench: $(READY)  ## 1,000 and 5,000 topics on real brokers, beside the raw requests
	$(BIN)/python -m benchmarks.engine

clean:           ## the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
