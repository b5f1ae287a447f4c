PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# A compiled extension is rebuilt when its sources change; without one these lists are empty.
NATIVE := $(wildcard setup.py src/certimap/*/*.cpp src/certimap/*/*.hpp)

.PHONY: demo reproduce test test-all lint format bench clean

demo: $(STAMP)
	$(BIN)/certimap demo

reproduce: $(STAMP)
	$(BIN)/certimap reproduce --quick

test: lint
	$(BIN)/python -m pytest -n 2

test-all: lint
	$(BIN)/python -m pytest -n 2 -m ""

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The interpreter is an order-only prerequisite: its date is that of the system's Python.
# The pins contain the build backend, so the package itself is built without a second environment.
$(STAMP): pyproject.toml requirements/dev.txt $(NATIVE) | $(BIN)/python
	$(PIP) install -r requirements/dev.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@
