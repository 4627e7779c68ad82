# Everything works from a fresh checkout with Python, make and a package registry.
PYTHON ?= python3
PORT ?= 8787
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= auto

.PHONY: run test soak check format lock docs screenshots clean

run: $(VENV)/.product  ## start the service with the shipped sample runs
	$(BIN)/draftscope demo --port $(PORT)

test: $(VENV)/.tests  ## install what the tests need and run them
	$(BIN)/python -m pytest -n $(JOBS)

soak: $(VENV)/.tests  ## the same with every repeated check at its full count
	DRAFTSCOPE_SOAK=1 $(BIN)/python -m pytest -n $(JOBS)

check: $(VENV)/.tests  ## format, lint, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock:  ## renew the versions the tests run with
	uv pip compile pyproject.toml --group test --universal --python-version 3.11 --no-emit-index-url --no-header \
	  --upgrade -o tests/requirements.lock

docs: $(VENV)/.tests  ## renew the pages that are generated from the code
	$(BIN)/python docs/generate.py
	$(BIN)/python deploy/grafana/generate.py

screenshots: $(VENV)/.tests  ## pictures of every page in build/screenshots, to look at
	$(BIN)/python -m tests.browser.screenshots

clean:
	rm -rf $(VENV) dist build var

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=24'

$(VENV)/.product: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.tests: $(BIN)/python pyproject.toml tests/requirements.lock tests/install-programs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.lock -e .
	tests/install-programs
	touch $@
