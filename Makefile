# Verbs of this project. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
COMPILE := uv pip compile -q --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11
FRAMEWORK := uv pip compile -q --upgrade --prerelease=allow --no-emit-index-url --no-header --no-annotate --python-version 3.11
export PATH := $(CURDIR)/.venv/bin:$(PATH)
.PHONY: help demo test check lock docs bench clean

help:  ## list the verbs
	@sed -n 's/^\([a-z]*\):.*##/\1\t/p' $(MAKEFILE_LIST)

demo: .venv/ready  ## set everything up and run the main job
	stopcause demo

test: .venv/ready ai-sdk/node_modules/ready tests/agui_oracle/node_modules/ready  ## set everything up and pass the tests
	pytest -q -n auto --dist worksteal -m "not framework and not kill"
	cd ai-sdk && npm test --silent

check: .venv/ready ai-sdk/node_modules/ready tests/agui_oracle/node_modules/ready .envs/duckdb15/ready .envs/rotel/ready  ## what CI runs
	ruff format --check .
	ruff check .
	mypy
	lint-imports --no-logo
	cog --check README.md fixtures/README.md docs/*.md docs/frameworks/*.md stopcause/store/reports/agui-rules.sql
	THOROUGH=1 pytest -q -n auto --dist worksteal
	cd ai-sdk && npm run lint --silent && npm run types --silent && npm test --silent && npm run test:long --silent
	bash tests/frameworks/run.sh
	bash tests/oracle.sh
	bash tests/wheel.sh
	bash tests/npm.sh

docs: .venv/ready  ## write the generated parts of README and docs anew
	cog -r README.md fixtures/README.md docs/*.md docs/frameworks/*.md stopcause/store/reports/agui-rules.sql

bench: .venv/ready ai-sdk/node_modules/ready $(patsubst requirements/bench/%.txt,.envs/bench-%/ready,$(wildcard requirements/bench/*.txt))  ## print the figures of the design's numbers table
	python -m bench.run
	python -m bench.store
	node bench/ai-sdk/run.js
	python -m bench.hooks.core
	python -m bench.hooks.frameworks
	python -m bench.agui.run

lock: .venv/ready  ## write the pinned files anew (no change in the tree when nothing is newer)
	$(COMPILE) --group dev --extra server pyproject.toml -o requirements/dev.txt
	echo 'duckdb==1.5.*' | $(COMPILE) - -o requirements/duckdb15.txt
	echo 'rotel==0.0.1a15' | $(COMPILE) - -o requirements/rotel.txt
	for f in requirements/bench/*.in; do $(FRAMEWORK) $$f -o $${f%.in}.txt; done
	for f in requirements/frameworks/*.in; do $(FRAMEWORK) $$f -o $${f%.in}-newest.txt; done
	for f in requirements/frameworks/*.in; do $(FRAMEWORK) --resolution lowest-direct $$f -o $${f%.in}-oldest.txt; done
	cd ai-sdk && npm install --package-lock-only --silent
	cd tests/agui_oracle && npm install --package-lock-only --silent

clean:  ## remove everything that make made
	rm -rf .venv .envs ai-sdk/node_modules tests/agui_oracle/node_modules dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .coverage

.venv/ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "this Python cannot make environments; on Debian: apt install python3-venv"; exit 2; }
	$(PYTHON) -m venv --clear .venv
	.venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.txt
	.venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Node and npm come with the development packages, so a machine needs neither. Nothing of it runs when it is installed.
%/node_modules/ready: %/package-lock.json | .venv/ready
	cd $* && npm ci --ignore-scripts --loglevel=error
	@touch $@

# An older reader of our snapshots, a receiver of our OTLP. Only `make check` needs them.
.envs/%/ready: requirements/%.txt
	$(PYTHON) -m venv --clear .envs/$*
	.envs/$*/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

# A framework and its hook, each in an environment of its own: they pin what they stand on against each other. Plain
# pins, no hashes: nothing of this is shipped.
.envs/%/ready: requirements/frameworks/%.txt | .venv/ready
	uv venv -q --clear --python .venv/bin/python .envs/$*
	uv pip install -q --python .envs/$*/bin/python --no-deps -r $< -e .
	@touch $@

.envs/bench-%/ready: requirements/bench/%.txt | .venv/ready
	uv venv -q --clear --python .venv/bin/python .envs/bench-$*
	uv pip install -q --python .envs/bench-$*/bin/python --no-deps -r $< -e .
	@touch $@
