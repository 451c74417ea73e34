# Everything here works on a machine that has Python >= 3.10, make and a package index:
# each target makes .venv and installs what it needs by itself.
#
#   make demo     fit, certify and explain a robust model on bundled data
#   make test     all checks: lint, format, types, tests
#   make everywhere the numerical tests as other processors would run them, a line for each
#   make coverage the lines of src that no test runs
#   make docs     the documentation, in build/docs; warnings are errors
#   make dist     wheel and sdist, in dist, the wheel tried in an environment of its own
#   make oldest   the tests with the oldest versions of everything that pyproject.toml allows
#   make stress   ten minutes of generated problems and files of every awkward kind
#
# Another interpreter: make demo PYTHON=python3.12

PYTHON ?= python3
# Arguments for pytest: make test PYTEST_ARGS="-k certificate"
PYTEST_ARGS ?= -n 2 --dist worksteal

VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := uv>=0.5

# The tests start many processes: whatever the environment says, what Python compiled is kept.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.PHONY: help demo test everywhere coverage lint format types docs dist oldest stress clean

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.demo
	@mkdir -p build
	@$(BIN)/drlogit demo -o build/demo.html

test: lint types
	$(BIN)/pytest $(PYTEST_ARGS)

# All settings of tests/everywhere.py, or some: make everywhere SETTINGS="haswell prescott"
everywhere: $(VENV)/.test
	@PYTEST_ARGS="$(PYTEST_ARGS)" $(BIN)/python tests/everywhere.py $(SETTINGS)

# Data of processes that outlived pytest, such as workers that were idle, are added after it.
coverage: $(VENV)/.test
	$(BIN)/coverage erase
	$(BIN)/pytest $(PYTEST_ARGS) --cov --cov-report=
	-@$(BIN)/coverage combine --quiet --append 2>/dev/null
	$(BIN)/coverage report

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(VENV)/.test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/.test
	$(BIN)/mypy --num-workers 2

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

# With TAG=v1.2.3, only if that is the version of the package.
dist: $(VENV)/.release
	rm -rf dist build/wheel
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	@test -z "$$TAG" || ls dist/drlogit-"$${TAG#v}"-*.whl
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build/wheel && bin/drlogit demo --quiet

# Direct dependencies at their lower bounds, as uv finds them; what those need is as new as it gets.
oldest: pyproject.toml | $(BIN)/python
	$(PIP) "$(UV)"
	$(BIN)/uv venv --quiet --clear --python "$$(command -v $(PYTHON))" $(OLDEST)
	$(BIN)/uv pip install --quiet --python $(OLDEST) --resolution lowest-direct --editable ".[test]"
	$(OLDEST)/bin/python -m pytest $(PYTEST_ARGS)

stress: $(VENV)/.test
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest -q -n 2 tests/test_fuzzed_files.py \
		tests/test_certificate.py
	$(BIN)/python -m benchmarks.torture --seconds 400
	$(BIN)/python -m benchmarks.degenerate --count 1000

clean:
	rm -rf $(VENV) $(OLDEST) .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist docs/reference
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps say which extras are installed; a changed pyproject.toml makes them stale.
$(VENV)/.demo: EXTRAS :=
$(VENV)/.test: EXTRAS := [test]
$(VENV)/.docs: EXTRAS := [docs]
$(VENV)/.release: EXTRAS := [release]
# uv installs the 90 packages of the tests in a sixth of pip's time; pip serves where uv cannot.
$(VENV)/.demo $(VENV)/.test $(VENV)/.docs $(VENV)/.release: pyproject.toml | $(BIN)/python
	@$(PIP) "$(UV)" \
	    && $(BIN)/uv pip install --quiet --python $(BIN)/python --editable ".$(EXTRAS)" \
	    || $(PIP) --editable ".$(EXTRAS)"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	    echo "error: drlogit needs Python >= 3.10, and '$(PYTHON)' is not that." >&2; \
	    echo "       Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "error: '$(PYTHON)' cannot make virtual environments: its venv or ensurepip module" >&2; \
	    echo "       is missing (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
