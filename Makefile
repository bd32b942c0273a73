# Every target sets up what it needs; a machine needs Python >= 3.11 and make, nothing else.

BIN := .venv/bin
STAMP := .venv/.ready
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup browser languages demo test check proof fuzz acceptance openapi screenshots format clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## a virtual environment in .venv with everything in it

$(STAMP): uv.lock pyproject.toml sdk/python/pyproject.toml
	@sh .ci/setup
	@touch $(STAMP)

browser: ## what the tests in a browser need: Chromium by apt-get where there is none, axe-core by npm
	@sh .ci/browser

languages: setup ## what the SDKs in TypeScript and Go are built with: from PATH, else into .cache/tools
	@sh .ci/languages

demo: setup ## the whole road, with real processes (ARGS=--auto: decide by itself)
	@$(BIN)/holdshort demo $(ARGS)

test: setup ## every test, with a real PostgreSQL; other languages where their tools are (ARGS=... goes to pytest)
	@$(BIN)/pytest tests sdk/python/tests -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

check: setup ## lint, format, types, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

proof: setup ## the long forms of the heavy proofs
	@$(BIN)/pytest tests sdk/python/tests -m proof -s $(ARGS)

fuzz: setup ## hostile bytes and requests at length (ARGS='--seed N', --json, --help)
	@$(BIN)/python -m tests.fuzz $(ARGS)

acceptance: setup ## agents of the unmodified older SDK, at length
	@$(BIN)/pytest tests/acceptance -m "proof or not proof" -s $(ARGS)

openapi: setup ## write sdk/openapi.json from the code
	@$(BIN)/python -m controlplane.app > sdk/openapi.json.new && mv sdk/openapi.json.new sdk/openapi.json

screenshots: setup browser ## the pictures of the documentation, from the running product (ARGS=names: those only)
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)

format: setup ## put the code into its form
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

clean: ## remove the virtual environment and the tools' caches
	@rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	@cd sdk/typescript && rm -rf node_modules .build dist coverage
