# Everything a newcomer needs: `make demo` shows Zelda at work, `make test` proves that it works.
# Only Python (3.11 or newer), git and make have to be there; the rest is installed into .venv from lock files with hashes.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
BIN := .venv/bin
# One more than there are processors: tests wait for sessions and servers.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n + 1)))
# Slow tests lie side by side; a worker that is done takes over half of what another has left.
PARALLEL := -n $(WORKERS) --dist worksteal
# Tests whose outcome can depend on how sessions and commands are isolated.
ISOLATION := tests/hostile tests/unit/workspace $(addprefix tests/integration/test_, checkout_monitor.py claude_code*.py \
	credentials.py isolation_*.py launches.py manifest_*.py mcp_startup.py ownership.py process.py project_environment.py \
	protected_paths.py run_[b-z]*.py setup_cache.py shells.py suites_withheld.py transcript_witness.py workspace_*.py working_tree.py)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

.PHONY: help demo test lint types imports unit isolation coverage image-test format lock schemas reference bench clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/runtime ## Run the demo: two suites through a real Claude Code session, replayed, no key needed
	@$(BIN)/zelda demo --keep

test: .venv/dev lint imports ## Run everything: lint, import contracts, types and tests
	@$(MAKE) --no-print-directory -j2 types unit # neither keeps all processors busy

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

imports: .venv/dev
	$(BIN)/lint-imports --no-logo

unit: .venv/dev
	$(BIN)/pytest $(PARALLEL) $(TESTS)

isolation: .venv/dev ## Run the tests that depend on how sessions and commands are isolated, and those in TESTS
	$(BIN)/pytest $(PARALLEL) $(ISOLATION) $(TESTS)

coverage: .venv/dev ## Run the tests with lines and branches counted, those of child processes too
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PARALLEL) $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

image-test: ## Build the image for real and use it (Docker, or buildah and debootstrap as root)
	@$(PYTHON) scripts/machines/image_test.py || test $$? -eq 77

format: .venv/dev ## Format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schemas: .venv/dev ## Rewrite the JSON Schemas under schemas/ from the models
	$(BIN)/python scripts/schemas
	$(BIN)/python scripts/comparison_schema

reference: .venv/dev ## Rewrite docs/cli.md from the commands and docs/troubleshooting.md from the errors
	$(BIN)/python scripts/reference.py

bench: .venv/dev ## Measure Zelda against the bare Agent SDK
	$(BIN)/python -m benchmarks.overhead

lock: ## Rewrite the lock files from pyproject.toml (needs uv)
	scripts/lock

clean: ## Remove everything that was installed or written here
	rm -rf .venv .zelda .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage* dist build

# A stamp is written last, so that an interrupted installation is started anew.
.venv/made:
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed; none was found (set PYTHON=/path/to/python)" >&2; exit 2; }
	@echo "making a virtual environment with $(PYTHON)"
	@rm -rf .venv
	@"$(PYTHON)" -m venv .venv || { echo "error: the venv module is missing (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 2; }
	@touch $@

.venv/runtime: .venv/made requirements/runtime.txt requirements/build.txt pyproject.toml
	@echo "installing the locked dependencies (about 190 MB to download, most of it the Claude Code CLI)"
	@$(PIP_INSTALL) --require-hashes -r requirements/runtime.txt -r requirements/build.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev: .venv/runtime requirements/dev.txt
	@echo "installing the locked development tools"
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@
