# The commands of this project; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

.PHONY: help install unit test check format demo bench clean

help:            ## this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/	/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

install: $(READY) ## the virtual environment with everything in it

unit: $(READY)   ## fast tests: no Java, no broker, seconds
	$(BIN)/python -m pytest

test: $(READY)   ## everything: checks, fast tests, real brokers, examples, the demo
	$(MAKE) check
	$(BIN)/python -m pytest -m '' --durations=10

check: $(READY)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## let ruff put things in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(READY)   ## the whole story on real brokers, from an empty machine
	PATH="$(CURDIR)/$(BIN):$$PATH" bash scripts/demo.sh

bench: $(READY)  ## 1,000 and 5,000 topics on real brokers, beside the raw requests
	$(BIN)/python -m benchmarks.engine

clean:           ## the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
