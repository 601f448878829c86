# Each target does all of its own set-up in .venv.
PYTHON ?= python3
BIN := .venv/bin

# Tests start hundreds of processes, and each would compile all sources anew where none is kept.
export PYTHONDONTWRITEBYTECODE :=

INSTALLED := .venv/installed
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# These cover ledger/ and projections/ alone; tracing the others too would take half as long again.
# For the same reason no law is traced, nor what is marked no_cover: cheaper tests run those lines.
COVERED := tests/ledger tests/projections

.PHONY: demo test nightly browser docs bench gpu weights clean

demo: $(INSTALLED)  ## run the quickstart tournament in ./tourney-demo
	$(BIN)/tourney demo --weights tourney-demo

test: $(INSTALLED)  ## what CI runs: format, lint, types, contracts, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) $(COVERED) --cov
	$(PYTEST) tests $(addprefix --ignore=,$(COVERED))

nightly: $(INSTALLED)  ## the long tests: rounds of kill -9, simulated tournaments, more examples of each law
	$(PYTEST) tests -m "nightly or hypothesis or browser" --hypothesis-profile nightly -rP

browser: $(INSTALLED)  ## the pages in a real browser, which must be there (Debian: apt-get install chromium)
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	    { echo 'No Chromium is installed; on Debian: apt-get install chromium' >&2; exit 1; }
	$(BIN)/pytest tests -q -m browser -rs

docs: $(INSTALLED)  ## write the generated pages, and build all pages as a site in ./site
	$(BIN)/python -m tests.docs.renew
	$(BIN)/zensical build --clean --strict

bench: $(INSTALLED)  ## measure this machine, into data/benchmarks.md
	$(BIN)/python -m tests.benchmarks

gpu: $(INSTALLED)  ## measure weights of 7B shapes on a GPU, into data/benchmarks-gpu.md
	$(BIN)/python -m tests.benchmarks.heads.gpu

weights: $(INSTALLED)  ## train the quickstart's weights again
	OMP_WAIT_POLICY=passive $(BIN)/python data/quickstart/train.py

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[models,endpoint,ray,docs,dev]'
	touch $@

clean:  ## remove what the targets made
	rm -rf .venv .cache tourney-demo dist site
