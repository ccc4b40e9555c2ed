# The commands of this project; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
STARTUP := $(VENV)/startup-cache
# Without .venv, the demo installs only what its commands need.
DEMO_VENV := $(if $(wildcard $(READY)),$(VENV),$(VENV)-demo)
# Without compiled files every run rewrites all tests anew, and every `kdeclare` that one starts compiles itself.
unexport PYTHONDONTWRITEBYTECODE
# Real clusters and workers of their own, so that they can run beside those of the other tests. Folders end with a
# slash, because names of tests to leave out are compared by their beginnings.
CONNECT := tests/kafka/test_sandbox_connect.py tests/kafka/test_sandbox_registry.py tests/kafka/connect/ tests/kafka/connectors/ \
	tests/kafka/test_faults_during_runs.py tests/kafka/state/
APART := tests/kafka/test_sandbox_clusters.py tests/kafka/test_sandbox_secure.py tests/kafka/test_tutorial.py tests/kafka/test_canaries.py \
	tests/kafka/test_trailing_broker.py tests/kafka/test_impact.py tests/kafka/test_old_broker.py tests/kafka/test_demo.py tests/kafka/test_soak.py tests/kafka/test_prefixed.py \
	tests/kafka/test_secured.py tests/kafka/test_kerberos.py tests/kafka/test_scram_users.py tests/kafka/test_log_dirs.py tests/kafka/test_examples.py \
	$(addprefix tests/kafka/test_broker_policies,.py _shown.py _side_by_side.py)
# The moves share five brokers, and wait for them most of the time. The tests of ACLs take about three minutes.
MANY := tests/kafka/fleet/ $(wildcard tests/kafka/test_acl*.py) tests/kafka/test_access_under_load.py \
	$(addprefix tests/kafka/test_,impact_moves.py moves.py moves_data.py moves_races.py)
# Nothing else has such tests (tests/conftest.py checks it), and reading all other tests takes ten seconds.
WITH_KAFKA := tests/kafka tests/contract tests/conformance
WITH_SPARK := tests/browser tests/provider/test_installed.py tests/spark
COMMANDS := tests/unit/cli tests/unit/fleet
NOTHING_BIG := 'not kafka and not spark and not browser'

.PHONY: help install unit startup-cache test test-brokers test-connect test-many test-apart test-spark test-units test-commands test-rest test-thorough soak fuzz browser kerberos check format sbom dist docs demo bench clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/	/' | expand -t 18

# The environments differ only in their extras.
$(READY): EXTRAS := dev
$(VENV)-demo/.installed: EXTRAS := fleet-local,policies
$(READY) $(VENV)-demo/.installed: pyproject.toml constraints.txt
	@echo "Installing into $(@D); the first time this takes minutes."
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@

install: $(READY) ## the virtual environment with everything in it

unit: $(READY)   ## fast tests: no Java, no broker, seconds; on all processors
	$(BIN)/python -m pytest -n logical --maxprocesses=8

$(STARTUP)/%/.made: $(READY) tests/startup_cache.py
	$(BIN)/python -m tests.startup_cache $*
	touch $@

startup-cache: $(STARTUP)/kafka/.made $(STARTUP)/spark/.made ## what lets Java and Spark start faster in tests; `make test` makes it once

# Three groups at a time that start brokers, workers or Spark, because six need a fifth more CPU time on two processors.
# The checks come first. The groups that start nothing fill the gaps.
test: $(READY)   ## checks, fast tests, real brokers, Spark, Chromium if it is there, examples; without the cases of test-thorough
	$(MAKE) -j2 --output-sync=target startup-cache
	$(MAKE) -j6 --output-sync=target check test-units test-commands test-rest test-brokers test-connect test-spark test-many test-apart FILL='nice -n 5'

test-brokers: $(STARTUP)/kafka/.made ## the tests with real brokers, but for those with clusters of their own
	$(BIN)/python -m pytest -m kafka --durations=10 $(patsubst %,--deselect=%,$(CONNECT) $(APART) $(MANY)) $(WITH_KAFKA)

test-many: startup-cache ## a fleet of three real clusters, ACLs, then moves of replicas between five real brokers
	$(BIN)/python -m pytest -m kafka --durations=10 $(MANY)

test-connect: $(STARTUP)/kafka/.made ## Connect workers, connectors and schema registries; states in topics, and faults
	$(BIN)/python -m pytest -m kafka --durations=10 $(CONNECT)

test-apart: $(STARTUP)/kafka/.made ## tests with clusters of their own: old, secured and slow brokers, the tutorial; the examples
	$(BIN)/python -m pytest -m kafka --durations=10 $(APART)

test-spark: $(STARTUP)/spark/.made ## Spark, and the pages in Chromium
	$(BIN)/python -m pytest -m 'not kafka and (spark or browser)' --durations=10 $(WITH_SPARK)

test-units: $(READY) ## tests/unit, with its slow ones, but for those of test-commands
	$(FILL) $(BIN)/python -m pytest -m $(NOTHING_BIG) --durations=10 tests/unit $(addprefix --ignore=,$(COMMANDS))

test-commands: $(READY) ## tests/unit of the command line and of fleets, half of the time of tests/unit
	$(FILL) $(BIN)/python -m pytest -m $(NOTHING_BIG) --durations=10 $(COMMANDS)

test-rest: $(READY) ## all other tests: the engine, scripts for CI, providers that are installed
	$(FILL) $(BIN)/python -m pytest -m $(NOTHING_BIG) --durations=10 --ignore=tests/unit

test-thorough: startup-cache ## property tests with many examples, and all cases of tests that otherwise try some; not part of `make test`
	$(BIN)/python -m pytest -m "hypothesis or sampled or thorough" --hypothesis-profile=thorough --durations=10

soak: $(READY)   ## half an hour of random commands, kills and faults on real brokers; not part of `make test`
	$(BIN)/python -m tests.soak --minutes 30

fuzz: $(READY)   ## each fuzzer until its coverage stops growing, which takes hours; not part of `make test`
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	$(BIN)/python -m tests.fuzzing all --minutes 60

browser:         ## Debian's Chromium, for the tests of pages, where there is none and it can be had
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; }

kerberos: $(READY) ## MIT Kerberos and its Python package, for the tests of logins, where they can be had
	PATH="$$PATH:/usr/sbin" command -v krb5kdc >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libkrb5-dev krb5-admin-server krb5-kdc krb5-user >/dev/null; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[kerberos]'

check: $(READY)  ## style, types, layers, known vulnerabilities in the pinned packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.dependencies.audit

format: $(READY) ## let ruff put things in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

sbom: $(READY)   ## the software bill of materials (CycloneDX) of an installed kdeclare, in build/sbom.json
	$(BIN)/python -m scripts.dependencies.sbom build/sbom.json

dist: $(READY)   ## the files of a release, in dist: wheel, source distribution, SBOM; needs the tag of the version
	$(BIN)/python -m scripts.release

docs: $(READY)   ## the documentation as a site, in build/site; strict, and nothing is fetched
	$(BIN)/python -m sphinx -q -n -W --keep-going -c scripts/site -b html . build/site

demo: $(DEMO_VENV)/.installed ## the whole story on real brokers, from an empty machine; then a fleet of three clusters
	PATH="$(CURDIR)/$(DEMO_VENV)/bin:$$PATH" bash scripts/demo.sh
	PATH="$(CURDIR)/$(DEMO_VENV)/bin:$$PATH" bash examples/fleet/run.sh

bench: $(READY)  ## 1,000 and 5,000 topics on real brokers, beside the raw requests
	$(BIN)/python -m benchmarks.engine

clean:           ## the virtual environment and all caches
	rm -rf $(VENV) $(VENV)-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
