# pgconvo: `make` lists what there is.

PYTHON ?= python3
BIN := .venv/bin
# What tests run on: 15, 16, 17 or 18; empty takes the server that is found first.
PG ?=
# Without DSN= it is $$PGCONVO_DSN, else the local server that is running.
DSN_ARGUMENT = $(if $(DSN),'$(DSN)')

.DEFAULT_GOAL := help
.PHONY: help demo example test test-one lint install migrate status drift migration docs verify

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/demo  ## Chat history in a local server; FILE=x.json imports your own
	@$(BIN)/pgconvo demo $(if $(FILE),--file '$(FILE)')

example: .venv/examples  ## Whole turns with the SDKs of OpenAI and Anthropic, on localhost
	@$(BIN)/python examples/turn.py

test: .venv/dev  ## Run the tests; PG=15 on that major version, ARGS= for pytest
	@PG=$(PG) $(BIN)/python -m pytest -n 2 $(ARGS)

test-one: .venv/dev  ## Run some tests: T=tests/api/test_x.py or T='-k word'
	@PG=$(PG) $(BIN)/python -m pytest $(T)

lint: .venv/dev  ## Check the style of Python and SQL, types, and each function's body
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/sqlfluff lint --processes 2 sql
	$(BIN)/python tools/check_sql.py sql migrations
	$(BIN)/squawk --config .squawk.toml migrations/[0-9]*.sql migrations/*/[0-9]*.sql
	$(BIN)/python tools/new_migration.py --check

install: migrate  ## The same as migrate

migrate: .venv/demo  ## Apply the pending migrations; DSN= names the database
	@$(BIN)/pgconvo migrate $(DSN_ARGUMENT)

status: .venv/demo  ## List the migrations and when each was applied; DSN=
	@$(BIN)/pgconvo status $(DSN_ARGUMENT)

drift: .venv/demo  ## Compare the schema with what its migrations make; DSN=
	@$(BIN)/pgconvo drift $(DSN_ARGUMENT)

migration: .venv/demo  ## Write the next migration from what changed in sql/; NAME=add_x
	@$(BIN)/python tools/new_migration.py $(NAME)

docs: .venv/dev  ## Write docs/reference.md from the comments in the database
	@$(BIN)/python tools/gen_docs.py

verify: lint  ## Everything: lint, and the tests on the oldest and newest server
	@$(MAKE) test PG=18
	@$(MAKE) test PG=15

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "pgconvo needs Python 3.11 or newer: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "No virtual environment could be made: install" \
	    "the venv module (python3-venv on Debian and Ubuntu)" >&2; exit 1; }
	@touch $@

.venv/demo: pyproject.toml | .venv/python
	@$(BIN)/pip install -qq --disable-pip-version-check -e '.[embedded]'
	@touch $@

.venv/examples: pyproject.toml | .venv/python
	@$(BIN)/pip install -qq --disable-pip-version-check -e '.[embedded,examples]'
	@touch .venv/demo $@

.venv/dev: pyproject.toml | .venv/python
	@$(BIN)/pip install -qq --disable-pip-version-check -e '.[embedded,dev]'
	@touch .venv/demo .venv/examples $@
