# `make train` and `make test` work on a fresh machine that has Python 3.10-3.12 and make; both re-run in a moment.
#
#   make train ARGS="--config configs/rocket_1v1.yaml --total_timesteps 1000000"
#   make install PYTHON=python3.11
#
# Without a GPU the CPU build of torch saves gigabytes: put its wheel index in PIP_EXTRA_INDEX_URL, or a folder that
# holds the wheel in PIP_FIND_LINKS, before the first `make`.

VENV ?= .venv
ARGS ?=
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := $(VENV)/Scripts
else
PYTHON ?= python3
BIN := $(VENV)/bin
endif
PY := $(BIN)/python
STAMP := $(VENV)/.installed
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder
PROSE := README.md CHANGELOG.md CONTRIBUTING.md docs/*.md docs/api/*.md benchmarks/results/*.md
QUICKSTART := configs/rocket_1v1_quickstart.yaml
# The user's --config stands alone, everything else is added to the quickstart's.
TRAIN_ARGS = $(if $(findstring --config,$(ARGS)),$(ARGS),--config $(QUICKSTART) $(ARGS))

.DEFAULT_GOAL := help
.PHONY: help install train test test-all test-learning lint docs bench tensorboard clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: $(STAMP)  ## make .venv and install the tested versions (PYTHON=python3.11 chooses the interpreter)

# Touched last, so an interrupted installation is taken up again.
$(STAMP): pyproject.toml constraints.txt
	@"$(PYTHON)" -c "" 2>/dev/null || { \
	  echo "make: '$(PYTHON)' does not run; install Python 3.10, 3.11 or 3.12, or name one: make install PYTHON=python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))" || { \
	  echo "make: $$("$(PYTHON)" --version 2>&1) is not supported, 3.10 to 3.12 are; name one: make install PYTHON=python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c "import ensurepip, venv" 2>/dev/null || { \
	  echo "make: '$(PYTHON)' lacks the venv module; install it (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 2; }
	"$(PYTHON)" -m venv "$(VENV)"
	"$(PY)" -m pip install --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch "$(STAMP)"

train: install  ## train; ARGS="--config configs/X.yaml --total_timesteps N" (without --config: the quickstart)
	"$(PY)" train_fabric.py $(TRAIN_ARGS)

test: install  ## the fast tests, at most 5 minutes on two cores (ARGS="tests/envs -k kickoff" chooses)
	"$(PY)" -m pytest $(PARALLEL) $(ARGS)

test-all: install  ## all tests but those that learn, half an hour on two cores
	"$(PY)" -m pytest $(PARALLEL) -m "not learning" $(ARGS)

test-learning: install  ## the tests that train until something is learned, and the campaigns with their tables (an hour)
	"$(PY)" -m pytest -m learning $(ARGS)

lint: install docs  ## ruff, mypy --strict, spelling and style, and the documentation without a warning
	"$(PY)" -m ruff check .
	"$(PY)" -m ruff format --check .
	"$(PY)" -m mypy
	"$(BIN)/codespell" $(PROSE) agents benchmarks configs envs fabric_rl template train_fabric.py
	"$(BIN)/proselint" --config .proselintrc.json check $(PROSE)

docs: install  ## the documentation as a site, in site/; a link that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 "$(PY)" -m mkdocs build --strict --quiet

bench: install  ## all speed benchmarks into benchmarks/results (hours); ARGS="--only pool peers" chooses
	"$(PY)" benchmarks/all.py $(ARGS)

tensorboard: install  ## show the runs in the browser
	"$(PY)" -m tensorboard.main --logdir runs $(ARGS)

clean:  ## remove .venv, caches and build folders; runs/ stays
	rm -rf "$(VENV)" build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
