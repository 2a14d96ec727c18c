# The two commands of the README are `make demo` and `make test`; both make what they need.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed

FUZZED := tests/checker tests/formats tests/history tests/simulation

.PHONY: demo test lint table bench fuzz clean

demo: $(STAMP)  ## See a Redlock lose its lock, and why
	@$(BIN)/lockcheck run --backend redlock --nemesis pause; code=$$?; \
	 case $$code in 0|1) echo; echo "Open results/latest/report.html in a browser.";; *) exit $$code;; esac

test: $(STAMP) lint  ## Everything, the real clusters included
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

table: $(STAMP)  ## The promises of the README, each by a run: make table RUNTIME=docker SEEDS=20
	$(BIN)/python -m tests.table --runtime $(or $(RUNTIME),local) --seeds $(or $(SEEDS),20) $(if $(OUT),--out $(OUT))

bench: $(STAMP)  ## How long it takes, as ratios within one run
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench_judges $(if $(MOST),--most $(MOST))

fuzz: $(STAMP)  ## Hours of what `make test` does for seconds: engines against brute force, locks simulated
	$(BIN)/python -m pytest --hypothesis-profile=fuzz --timeout=0 $(FUZZED)
	$(BIN)/python -m tests.simulation.soak --seeds $(or $(SEEDS),100000)

$(STAMP): pyproject.toml hatch_build.py $(wildcard lockcheck/native/*.[ch])
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[embedded]' --group dev
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis lockcheck/native/_core.*
