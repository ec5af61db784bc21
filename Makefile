# Every command a person needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := src tests bench docs
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup lock check lint types imports sizes test test-full demo up bench docs clean

help: ## Show this list.
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make the virtual environment from the pinned, hashed requirements.

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
	  || { echo "error: this Python has no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV): one minute or two, once."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

COMPILE := uv pip compile -q --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header --no-annotate

lock: ## Pin the requirements anew (needs uv).
	$(COMPILE) pyproject.toml --extra server --extra google --extra redis --group dev \
	  -o requirements/dev.txt
	$(COMPILE) pyproject.toml --extra server -o requirements/server.txt
	$(COMPILE) pyproject.toml --extra server --extra google --extra redis \
	  -o requirements/production.txt
	echo hatchling | $(COMPILE) - -o requirements/build.txt

check: lint types imports sizes ## Lint, types, import rules, sizes, generated docs.
	@$(BIN)/python docs/generate.py --check

lint: $(STAMP)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

sizes: $(STAMP)
	@$(BIN)/python bench/sizes.py

test: $(STAMP) ## Run all tests; long proofs in their short form.
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not full" -rs

test-full: $(STAMP) ## Run the long proofs whole (about half an hour).
	$(BIN)/python -m pytest -m full -s

demo: $(STAMP) ## Finalize two example conversations and show what came of them.
	@$(BIN)/listen-finalization demo examples/standup.vtt examples/doctor-visit.json

up: $(STAMP) ## Run the whole stack on one port of this machine.
	$(BIN)/listen-finalization up

bench: $(STAMP) ## Measure; ratios against a base of the same run.
	$(BIN)/python -m bench

docs: $(STAMP) ## Write the generated pages of docs/.
	$(BIN)/python docs/generate.py

clean: ## Remove the virtual environment and caches.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
