# Two commands do everything: `make chat` starts the chat, `make test` passes the tests.
# Both make .venv first, with uv when it is there, else with Python's own venv.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
# Each worker has a graph server of its own, and few tests wait. They steal work, so that none runs alone at the end.
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
ARGS ?=
# Many processes import the same modules: compiled once, not by each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: chat test test-all fuzz lint types imports format example docs install install-test clean
.DEFAULT_GOAL := help
.PHONY: help

help:
	@echo "make chat      start the chat              make test      run the tests"
	@echo "make test-all  all tests: long ones too, and on a real Neo4j (java and mvn needed)"
	@echo "make lint      ruff, format, import rules  make types     mypy, strict"
	@echo "make docs      build the documentation in .build/site"
	@echo "make format    format the code             make example   write config.example.yaml again"
	@echo "make fuzz      property tests, new data   make clean     remove .venv and caches"
	@echo "ARGS=…         arguments for chat and test"

chat: $(VENV)/.installed
	@$(BIN)/ragforge-chat $(ARGS)

# The embedded graph runs the same statements as Neo4j but for one dialect; the other half needs Java, Maven and minutes.
# Of each kind of long test (kill, storm, stateful, cold start) one short one is without a mark, and is run here.
test: $(VENV)/.installed-test
	$(PYTEST) -m "not neo4j and not slow and not cold" $(ARGS)

test-all: $(VENV)/.installed-test
	RAGFORGE_HYPOTHESIS=long $(PYTEST) $(ARGS)

# A failing example is stored in .hypothesis and tried first the next time.
fuzz: $(VENV)/.installed-test
	RAGFORGE_HYPOTHESIS=random $(PYTEST) -m "hypothesis and not neo4j" $(ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-test
	$(BIN)/mypy
	$(BIN)/mypy --strict examples

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

example: $(VENV)/.installed
	$(BIN)/python -m ragforge_tui.settings.load --example > config.example.yaml

docs: $(VENV)/.installed-docs
	$(BIN)/mkdocs build --quiet

install: $(VENV)/.installed
install-test: $(VENV)/.installed-test

clean:
	rm -rf $(VENV) .build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# A .venv counts as finished by these stamps only, which are written after the install: a `python3 -m venv` that
# failed half-way, or an install that was interrupted, is made again.
$(VENV)/.installed: pyproject.toml
	@$(call make_venv)
	@$(call install,-e .)
	@touch $@

$(VENV)/.installed-test: pyproject.toml
	@$(call make_venv)
	@$(call install,-e '.[test]')
	@touch $(VENV)/.installed $@

$(VENV)/.installed-docs: pyproject.toml
	@$(call make_venv)
	@$(call install,-e '.[docs]')
	@touch $(VENV)/.installed $@

# PYTHON=… chooses the interpreter; otherwise the newest of the usual names that is new enough.
define make_venv
	set -euo pipefail; \
	if [ -x $(BIN)/python ] && { [ -e $(VENV)/.installed ] || [ -e $(VENV)/.installed-test ]; }; then exit 0; fi; \
	if [ -z "$(PYTHON)" ] && command -v uv >/dev/null; then uv venv --quiet --clear --python '>=3.11,<3.15' $(VENV); exit 0; fi; \
	found=; \
	for python in $(or $(PYTHON),python3.13 python3.12 python3.14 python3.11 python3); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Python 3.11 or newer is needed and was not found." >&2; \
		echo "Debian 12, Ubuntu 24.04: sudo apt install python3 python3-venv; macOS: brew install python@3.13; or install uv." >&2; \
		exit 1; \
	fi; \
	if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
		version=$$($$found -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "$$found is there, but without venv. Install the package that brings it:" >&2; \
		echo "    sudo apt install python$$version-venv" >&2; \
		exit 1; \
	fi; \
	echo "Making $(VENV) with $$($$found --version)"; \
	$$found -m venv --clear $(VENV)
endef

define install
	set -euo pipefail; \
	echo "Installing (about 750 MB on disk with the embedded graph; once, and it takes a few minutes)"; \
	if [ -t 1 ]; then quiet=; else quiet=--quiet; fi; \
	if [ ! -x $(BIN)/pip ]; then uv pip install $$quiet --python $(BIN)/python $(1); \
	else $(BIN)/python -m pip install $$quiet --disable-pip-version-check $(1); fi
endef
