# Everything a newcomer needs: `make demo` shows Zelda at work, `make test` that it works, `make test-all` all of it.
# Only Python (3.11 or newer), git and make have to be there; the rest is installed into .venv from lock files with hashes.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh
# Where nothing compiled is kept, each process of the tests compiles all of them anew, for as long as it then works.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
BIN := .venv/bin
# One more than there are processors: tests wait for sessions and servers.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n + 1)))
# Slow tests lie side by side; a worker that is done takes over half of what another has left.
PARALLEL := -n $(WORKERS) --dist worksteal
UNIT := tests/unit tests/architecture tests/golden
# What a newcomer wants to see at work: the commands, a pull request, the report in a browser, a kill, what each level keeps.
ANYWHERE := $(addprefix tests/integration/test_, \
	init_and_validate.py::test_init_writes_two_files_says_so_and_tells_the_next_step \
	check.py::test_everything_is_tried_once_however_many_suites_need_it_and_a_second_run_pays_nothing \
	run_command.py::test_a_session_that_edits_runs_commands_and_commits_becomes_a_result \
	run_command.py::test_a_recorded_run_is_replayed_without_key_and_network_and_says_where_it_departs \
	judge_command.py::test_a_run_is_as_its_judge_finds_it_and_incomplete_where_a_criterion_was_left_out \
	run_interrupted.py::test_the_remains_of_a_killed_run_are_made_a_result_by_the_next_start \
	looking_back.py::test_the_newest_batch_is_compared_with_the_one_before_and_a_suite_with_all_its_trials \
	run_against.py::test_a_regression_is_confirmed_side_by_side \
	report_command.py::test_two_batches_are_compared_and_their_sessions_shown) \
	tests/scenarios/test_pull_requests.py::test_a_pull_request_that_makes_things_worse_is_red_and_marked_until_a_commit_changes_what_is_wrong
BY_MACHINE := $(addprefix tests/integration/test_, \
	html_report_browser.py::test_a_citation_leads_to_the_very_line \
	isolation_levels.py::test_what_a_level_promises_it_keeps)
END_TO_END := $(ANYWHERE) $(BY_MACHINE)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

.PHONY: help demo test test-all lint types imports unit whole rest isolation coverage image-test format lock schemas reference bench overhead clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/runtime ## Run the demo: two suites through a real Claude Code session, replayed, no key needed
	@$(BIN)/zelda demo

test: .venv/dev ## Run lint, types, import contracts, unit tests and a dozen end-to-end runs: two minutes
	@begun=$$(date +%s) && $(MAKE) --no-print-directory lint imports && $(MAKE) --no-print-directory -j2 types unit && \
		echo "make test: lint, types, import contracts, unit tests and the main end-to-end runs in $$(($$(date +%s) - begun)) s." \
		"make test-all adds all other end-to-end runs, attacks and simulations: about 20 minutes."

test-all: .venv/dev ## Run everything
	@begun=$$(date +%s) && $(MAKE) --no-print-directory lint imports && $(MAKE) --no-print-directory -j2 types whole && \
		echo "make test-all: lint, types, import contracts and all tests in $$(($$(date +%s) - begun)) s." \
		"make test is the part to run after each change: about two minutes."

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

imports: .venv/dev
	$(BIN)/lint-imports --no-logo

unit: .venv/dev
	$(BIN)/pytest $(PARALLEL) $(UNIT) $(END_TO_END)

whole: .venv/dev
	$(BIN)/pytest $(PARALLEL) --durations=50 --durations-min=1 $(TESTS)

# What .ci/run runs where the tests of `make test`, and those of the action on a runner, have run on other machines.
rest: .venv/dev
	@$(MAKE) --no-print-directory whole \
		TESTS='tests/hostile tests/integration tests/scenarios tests/slow $(TESTS) $(addprefix --deselect=,$(ANYWHERE) tests/scenarios/test_runner_action.py)'

isolation: .venv/dev ## Run the tests that depend on user, isolation and toolchains, or on what CHANGES says of these
	$(BIN)/pytest $(PARALLEL) $$($(BIN)/python -m tests.arrangements $(CHANGES))

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

schemas: .venv/dev ## Rewrite JSON Schemas, tables of keys and the actions' inputs from the models
	$(BIN)/python scripts/schemas

reference: .venv/dev ## Rewrite docs/cli.md and the pages of --help from the commands, docs/troubleshooting.md from the errors
	$(BIN)/python scripts/reference.py

overhead: .venv/dev ## Fail where Zelda adds a tenth more to a session than it did
	$(BIN)/python -m benchmarks.overhead --check --rounds 3 session "session with a test command" "four at once with a test command" "zelda --version" "zelda --help"

bench: .venv/dev ## Measure what Zelda adds to sessions, workspaces and commands, and how fast it compares
	$(BIN)/python -m benchmarks.speed

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
