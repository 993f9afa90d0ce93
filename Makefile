# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
empty :=
space := $(empty) $(empty)
BIN := $(VENV)/bin
# Two installations in one place: what the demo needs, and all that tests, linters and tools need.
TRAIN := $(VENV)/.installed-train
STAMP := $(VENV)/.installed
# Bytecode is written when a module is first imported: most of torch never is. Where the environment forbids that, every
# process would compile all of torch, scikit-learn and the tests again, at twice the processor time of its start.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable

# Real data for the tests that use it, where the folder is there; without it those tests skip with a reason.
ifneq ($(wildcard ../shared/data/SHA256SUMS),)
export GATEFIT_DATA ?= $(abspath ../shared/data)
endif
# Waiting OpenMP threads sleep instead of spinning: torch's and numba's pools share the cores.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: setup tools demo test test-core coverage check warm shapes test-slow bench docs clean

setup: $(STAMP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) '.[dev]'
	touch $(TRAIN) $@

$(TRAIN): pyproject.toml constraints.txt
	@begun=$$(date +%s); set -ex; \
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); \
	$(INSTALL) '.[train]'; \
	touch $@; \
	{ set +x; } 2>/dev/null; echo "$$(( $$(date +%s) - begun )) s of installation"

demo: $(TRAIN)
	$(BIN)/gatefit demo --out demo-output

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Real tools that exports are checked with: optional, but required where CI is set.
tools:
	scripts/install-tools.sh

ifdef CI
TOOLS := tools
endif
# Two stages: the product by itself, in minutes; then shapes, compilers, simulators, browsers, clusters, killed processes
# and the reproduction. The second waits for others much of its time: three at once. Workers are given a file at a time,
# the longest first (tests/conftest.py): what its tests share is made once, and nobody waits long for the last one.
FILES := --dist loadfile --no-loadscope-reorder
test: test-core shapes
	$(BIN)/pytest -m "outside and not slow" -n 3 $(FILES)

test-core: $(TOOLS) warm check
	$(BIN)/pytest -m "not outside and not slow" -n 2 $(FILES)

# Kernels are compiled for all that follows while types are checked.
warm: $(STAMP)
	$(BIN)/gatefit warm-up > $(VENV)/warm-up.log 2>&1 &

coverage: $(STAMP)
	$(BIN)/pytest -m "not slow" -n 2 --cov --cov-report=term

# Array shapes in signatures, checked at run time. Kernels cannot be; tests that pass wrong types on purpose are left out.
SHAPED := $(subst $(space),,$(foreach m,codebook methods wirings layers readouts network ops.straight_through \
	ops.coefficients.reference ops.gate_layer.reference ops.stacks ops.batches \
	ops.soft_stack.reference ops.boolean_stack.reference training.data,gatefit.$(m),))beartype.beartype
shapes: $(STAMP)
	$(BIN)/pytest -q -n 2 --hypothesis-profile=shapes -k "not refused and not those_sampled" \
	  --jaxtyping-packages=$(SHAPED) tests/methods tests/ops/test_coefficients.py \
	  tests/test_propositions.py tests/test_wirings.py tests/test_readouts.py tests/test_network.py \
	  tests/test_layers.py

test-slow: $(STAMP)
	$(BIN)/pytest -m slow

bench: $(STAMP)
	$(BIN)/python -m benchmarks.training

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
