# Everything here works on a machine that has Python >= 3.10, make, a C compiler and a package index:
# each target makes .venv and installs what it needs by itself.
#
#   make demo     fit, certify and explain a robust model on bundled data
#   make test     all checks: lint, format, types, tests
#   make quick    the tests that are fast, in a minute: for editing
#   make everywhere the numerical tests as other processors would run them, a line for each
#   make coverage the lines of src that no test runs
#   make docs     the documentation, in build/docs; warnings are errors
#   make dist     wheel and sdist, in dist, the wheel tried in an environment of its own
#   make oldest   the tests with the oldest versions of everything that pyproject.toml allows
#   make mutants  break a line of kernels, bounds or verification at a time: which do tests notice?
#   make checked  the numerical tests with every index in compiled loops checked
#   make sanitized  the numerical tests with the compiler's address sanitiser (gcc or clang, Linux)
#   make inplace  the compiled modules beside their sources: PYTHONPATH=src runs what you edit
#   make reproduce  the paper's tables and figures, in a few minutes; all of it, over an hour:
#                   make reproduce REPRODUCE_ARGS=all
#   make stress   ten minutes of generated problems of every awkward kind
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
.PHONY: help demo test quick everywhere coverage lint format types docs dist oldest reproduce stress clean \
	checked sanitized inplace mutants

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.demo
	@mkdir -p build
	@$(BIN)/drlogit demo -o build/demo.html

test: lint types
	$(BIN)/pytest $(PYTEST_ARGS)

# What is marked slow, file by file or test by test, is for make test.
quick: $(VENV)/.test
	$(BIN)/pytest -q $(PYTEST_ARGS) -m "not slow"

# All settings of tests/everywhere.py, or some: make everywhere SETTINGS="haswell prescott"
everywhere: $(VENV)/.test
	@PYTEST_ARGS="$(PYTEST_ARGS)" $(BIN)/python tests/everywhere.py $(SETTINGS)

# A build of its own, in which gcov counts the lines of the Cython sources (gcc).
# Data of processes that outlived pytest, such as workers that were idle, are added after it.
coverage: $(VENV)/.test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation --no-deps --target build/coverage-package --upgrade \
	    -Cbuild-dir=build/coverage -Csetup-args=-Db_coverage=true -Csetup-args=-Doptimization=0 .
	find build/coverage -name '*.gcda' -delete
	$(BIN)/coverage erase
	PYTHONPATH="$(CURDIR)/build/coverage-package" $(BIN)/pytest $(PYTEST_ARGS) --cov --cov-report=
	-@$(BIN)/coverage combine --quiet --append 2>/dev/null
	$(BIN)/coverage report
	$(BIN)/python tests/compiled_coverage.py

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint src

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
	$(BIN)/uv pip install --quiet --python $(OLDEST) --resolution lowest-direct ".[test]"
	$(OLDEST)/bin/python -m pytest $(PYTEST_ARGS)

# Sixty lines chosen at random, or others: make mutants MUTANTS_ARGS="--module _pair --count 20"
mutants: inplace $(VENV)/.test
	@$(BIN)/python tests/mutants.py $(MUTANTS_ARGS)

# A build of its own, beside the sources of the package that is tested.
checked: $(VENV)/.test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation --no-deps --target build/checked-package --upgrade \
	    -Cbuild-dir=build/checked -Csetup-args=-Ddebug_checks=true .
	PYTHONPATH="$(CURDIR)/build/checked-package" $(BIN)/python tests/everywhere.py native

# Python itself is not sanitised: its allocator stands back, and what it never frees is no leak of ours.
sanitized: $(VENV)/.test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation --no-deps --target build/sanitized-package --upgrade \
	    -Cbuild-dir=build/sanitized -Csetup-args=-Db_sanitize=address -Csetup-args=-Db_lundef=false .
	LD_PRELOAD="$$($${CC:-cc} -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	    PYTHONPATH="$(CURDIR)/build/sanitized-package" $(BIN)/python tests/everywhere.py native

REPRODUCE_ARGS ?= all --quick
reproduce: $(VENV)/.test
	$(BIN)/python -m benchmarks.paper $(REPRODUCE_ARGS) --out build/paper

stress: $(VENV)/.test
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest -q -n 2 tests/dual/test_certificate.py
	$(BIN)/python -m benchmarks.stress --rules --of numbers domains classes labels extreme --problems 1000
	$(BIN)/python -m benchmarks.false_bounds --count 1000
	$(BIN)/python -m benchmarks.fuzz_files --models 1000 --proofs 1000 --fits 1000

clean:
	rm -rf $(VENV) $(OLDEST) .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist docs/reference docs/tutorials
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps say which extras are installed; they are stale when anything of the package has changed.
SOURCES := $(shell find src -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.css' -o -name '*.js')
BUILD_TOOLS := "meson-python>=0.17" "cython>=3.1" ninja "scipy>=1.12"
$(VENV)/.demo: EXTRAS :=
$(VENV)/.test: EXTRAS := [test]
$(VENV)/.docs: EXTRAS := [docs]
$(VENV)/.release: EXTRAS := [release]
# The package is compiled in build/venv, where the next build finds what has not changed.  uv installs
# the 90 packages of the tests in a sixth of pip's time; pip serves where uv cannot.  Both are quiet:
# each step says what it does, and every 15 seconds how far it is.
MODULES := $(words $(filter %.pyx,$(SOURCES)))
STEP = step() { \
	    title=$$1 from=$$(date +%s); shift; echo "$$title ..."; \
	    ( while sleep 15 >/dev/null 2>&1; do echo "  $$(($$(date +%s) - from)) s:" \
	        "$$(find build/venv -name '*.o' 2>/dev/null | wc -l) of $(MODULES) modules compiled," \
	        "$$(ls -d $(VENV)/lib/python*/site-packages/*.dist-info 2>/dev/null | wc -l) packages installed"; \
	    done ) & beat=$$!; \
	    "$$@"; code=$$?; kill $$beat 2>/dev/null; wait $$beat 2>/dev/null; \
	    test $$code != 0 || echo "  done in $$(($$(date +%s) - from)) s"; return $$code; }
$(VENV)/.demo $(VENV)/.test $(VENV)/.docs $(VENV)/.release: pyproject.toml meson.build $(SOURCES) | $(BIN)/python
	@command -v $${CC:-cc} >/dev/null || { echo "error: drlogit is compiled and found no C compiler:" \
	    "apt install gcc python3-dev (Debian, Ubuntu), xcode-select --install (macOS)." >&2; exit 1; }
	@$(STEP); PATH="$(CURDIR)/$(BIN):$$PATH" && export PATH \
	    && { step "Installing uv in $(VENV)" $(PIP) "$(UV)" \
	    && step "Installing the tools of the build" uv pip install --quiet --python $(BIN)/python $(BUILD_TOOLS) \
	    && step "Compiling drlogit ($(MODULES) modules), and installing it and what it needs" \
	        uv pip install --quiet --python $(BIN)/python --no-build-isolation --reinstall-package drlogit \
	        --config-settings-package drlogit:build-dir=build/venv ".$(EXTRAS)" \
	    || { step "That failed; with pip: the tools of the build" $(PIP) $(BUILD_TOOLS) \
	    && step "Compiling drlogit and installing it with pip" \
	        $(PIP) --no-build-isolation -Cbuild-dir=build/venv ".$(EXTRAS)"; }; }
	@touch $@

# The compiled modules beside their sources, to run the package where it is: PYTHONPATH=src.
inplace: | $(BIN)/python
	@$(PIP) $(BUILD_TOOLS)
	@test -d build/inplace || PATH="$(CURDIR)/$(BIN):$$PATH" meson setup build/inplace >/dev/null
	@PATH="$(CURDIR)/$(BIN):$$PATH" ninja -C build/inplace
	@for so in build/inplace/*.so; do \
	    source=$$(find src -name $$(basename $$so | cut -d. -f1).pyx); \
	    cp $$so $$(dirname $${source:-src/drlogit/_cyutility.c})/; done

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	    echo "error: drlogit needs Python >= 3.10, and '$(PYTHON)' is not that." >&2; \
	    echo "       Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "error: '$(PYTHON)' cannot make virtual environments: its venv or ensurepip module" >&2; \
	    echo "       is missing (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@echo "Creating the environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
