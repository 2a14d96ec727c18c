# The two commands of the README are `make demo` and `make test`; both make what they need.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed

LOCK    := lockcheck/compose/images/python/requirements.txt
DRIVERS := etcd consul zookeeper postgres mariadb

FUZZED := tests/checker tests/formats tests/history tests/production tests/simulation

.PHONY: demo test test-long test-clients test-museum lint lock table test-faults mixes torture damage endurance bench fuzz clean

demo: $(STAMP)  ## See a Redlock lose its lock, and why
	@$(BIN)/lockcheck run --backend redlock --nemesis pause; code=$$?; \
	 case $$code in 0|1) echo; echo "Open results/latest/report.html in a browser.";; *) exit $$code;; esac

test: $(STAMP) lint  ## Everything; clusters one at a time, since they need the machine for themselves
	$(BIN)/python -m pytest --numprocesses=auto -m "not cluster"
	$(BIN)/python -m pytest -m "cluster and not long"

test-long: $(STAMP)  ## What takes long, and is covered in part by shorter tests
	$(BIN)/python -m pytest -m long

test-clients: $(STAMP)  ## Clients to begin with and examples, in all languages: what is missing fails
	$(BIN)/python -m pip install --quiet --group clients
	LOCKCHECK_TEST_CLIENTS=1 $(BIN)/python -m pytest tests/yours tests/examples

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

lock: $(STAMP)  ## The newest versions of what the client image holds, with the digests of their wheels
	$(BIN)/python -m pip install --quiet --group lock
	$(BIN)/python -m uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate \
	  --only-binary :all: --python-version 3.13 --python-platform x86_64-manylinux_2_28 \
	  $(addprefix --extra ,$(DRIVERS)) --output-file $(LOCK) pyproject.toml

table: $(STAMP)  ## How each lock is expected to fare, by runs: make table RUNTIME=docker SEEDS=20 BACKEND="etcd redis"
	$(BIN)/lockcheck matrix --own --runtime $(or $(RUNTIME),local) --seeds $(or $(SEEDS),20) \
	  --jobs $(or $(JOBS),1) $(addprefix --backend ,$(BACKEND)) --out $(or $(OUT),results)

test-faults: $(STAMP)  ## Who fails under which fault, and who does not, ten times on each runtime
	$(BIN)/lockcheck matrix --own -k "not ::none" --runtime local --seeds $(or $(SEEDS),10)
	$(BIN)/lockcheck matrix --own -k "not ::none" --runtime docker --seeds $(or $(SEEDS),10)

mixes: $(STAMP)  ## Right locks under any fault and any three, which must not be accused: make mixes SEEDS=100
	$(BIN)/python -m tests.tools.mixes --runtime $(or $(RUNTIME),local) --seeds $(or $(SEEDS),100) $(if $(OUT),--out $(OUT))

test-museum: $(STAMP)  ## Published libraries, each with its control: make test-museum SEEDS=3 PAGE=docs/museum.md
	$(BIN)/lockcheck museum --all --no-skip --seeds $(or $(SEEDS),3) --out $(or $(OUT),results) $(if $(PAGE),--page $(PAGE))

torture: $(STAMP)  ## What runs must outlive, for an hour: make torture SEED=2 MINUTES=60
	$(BIN)/python -m tests.tools.torture --seed $(or $(SEED),1) --minutes $(or $(MINUTES),60) \
	  --local $(or $(LOCAL),500) --docker $(or $(DOCKER),100)

damage: $(STAMP)  ## Verdicts of runs whose files were damaged: make damage RUNS="results/*/" NUMBER=5000
	$(BIN)/python -m tests.tools.damage --number $(or $(NUMBER),5000) $(RUNS)

endurance: $(STAMP)  ## Many clients for long, memory flat and the run judged: make endurance MINUTES=30 CLIENTS=40
	$(BIN)/python -m tests.tools.endurance --minutes $(or $(MINUTES),30) --clients $(or $(CLIENTS),40)

bench: $(STAMP)  ## How long it takes, as ratios within one run
	$(BIN)/python -m tests.tools.bench
	$(BIN)/python -m tests.tools.bench_judges $(if $(MOST),--most $(MOST))

fuzz: $(STAMP)  ## Hours of what `make test` does for seconds: engines against brute force, locks simulated
	$(BIN)/python -m pytest --hypothesis-profile=fuzz --timeout=0 $(FUZZED)
	$(BIN)/python -m tests.tools.sanitized --hypothesis-profile=fuzz
	$(BIN)/python -m tests.simulation.soak --seeds $(or $(SEEDS),100000)

$(STAMP): pyproject.toml hatch_build.py $(wildcard lockcheck/native/*.[ch])
	@$(PYTHON) -c 'import ensurepip, sys; assert sys.version_info >= (3, 11)' 2>/dev/null || \
	 { echo "Python 3.11 or newer with venv is needed: apt-get install python3-venv, or make PYTHON=..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis lockcheck/native/_core.*
