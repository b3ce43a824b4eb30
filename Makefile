# What a developer types. Works with Rust and Python 3.11 or newer; other tools are used when they are there.
# The work is in cargo and in ci/; here are only the names.

SHELL := bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check docs bench bench-full bench-report bench-rust bench-test fuzz crash schedules soak sanitize miri clean

# Handed to every cargo command, e.g. CARGO_FLAGS=--locked or CARGO_FLAGS=--offline.
CARGO_FLAGS ?=
export CARGO_FLAGS
# Handed to the benchmarks of the library: a filter, or criterion's options.
BENCH_ARGS ?=
# Systems and sets that alone are measured, and a folder for their files on a local disk: make bench PEER='lmdb hdf5' SET=qm9 WORK=/data
PEER ?=
SET ?=
WORK ?=
chosen = $(addprefix --peer ,$(PEER)) $(addprefix --set ,$(SET)) $(addprefix --work ,$(WORK))
# How long each fuzz target runs, and how long the soak test does.
SECONDS_EACH := $(or $(FUZZ_SECONDS),60)
MINUTES ?= 30
# Where the long runs write their figures; `cargo run --example reliability -- --write` makes docs/reliability.md of them.
RECORDS ?= $(CURDIR)/target/records

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: ## import real molecules and graphs, verify them, compare the three backings
	cargo build $(CARGO_FLAGS) --profile demo --no-default-features -p fencepost-cli
	@cargo run $(CARGO_FLAGS) --profile demo --no-default-features --quiet -p fencepost-cli -- demo --data examples/data

test: ## all tests: Rust, documentation, examples, then in Python the reference reader and the package
	@ci/test.sh rust
	@ci/test.sh doc
	@ci/test.sh examples
	@ci/test.sh python

check: docs ## formatting, lints with both feature sets, layers, instruction counts, documentation, dependencies
	cargo fmt --all --check
	"$$(ci/python_env.sh --find)" ci/check_layers.py --self-test
	"$$(ci/python_env.sh --find)" ci/check_layers.py
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets --all-features -- -D warnings
	"$$(ci/python_env.sh --find)" ci/check_instructions.py
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) -p fencepost --lib --no-deps --all-features
	@if cargo deny --version >/dev/null 2>&1; then \
		echo 'cargo deny check licenses bans sources'; cargo deny check licenses bans sources; \
	else \
		echo 'check: cargo-deny is not installed, so licences and sources were not checked (cargo install cargo-deny --locked)'; \
	fi

docs: ## the user guide, in target/site (a link that leads nowhere is an error)
	NO_MKDOCS_2_WARNING=1 "$$(ci/python_env.sh requirements-docs.txt)" -m mkdocs build --clean
	@echo 'docs: target/site/index.html'

bench: ## fencepost against other systems, short form, under ten minutes (PEER=lmdb SET=qm9: these alone)
	@benches/peers/run.sh --short --again --minutes 8 $(chosen)

bench-full: ## the same with every set, round and cell: hours, goes on where it was stopped, writes benches/records
	@benches/peers/run.sh $(chosen)

bench-report: ## BENCHMARKS.md and its plots from benches/records
	@PYTHONPATH=benches/peers "$$(ci/python_env.sh requirements-test.txt)" -m peers.report

bench-test: ## tests of that harness: every system gives back what it was given
	@benches/peers/run.sh --tests

bench-rust: ## benchmarks of the library (BENCH_ARGS='get' runs those with "get" in the name)
	cargo bench $(CARGO_FLAGS) -p fencepost --all-features --bench '*' -- $(BENCH_ARGS)

fuzz: ## every fuzz target for FUZZ_SECONDS (60) each (needs cargo-fuzz and a nightly toolchain)
	@mkdir -p '$(RECORDS)'
	@FUZZ_RECORD='$(RECORDS)/fuzz.jsonl' ci/fuzz.sh $(SECONDS_EACH)

crash: ## the long form of the tests of faults: power, failing calls, full disks, kills, bit rot
	@FENCEPOST_LONG=1 FENCEPOST_RECORD='$(RECORDS)' cargo test $(CARGO_FLAGS) -p fencepost \
		--test crash --test bitrot --test truncation --test vectors -- --nocapture

schedules: ## the loader's queue under many orders of its threads (shuttle)
	@cd tests/schedules && FENCEPOST_RECORD='$(RECORDS)' cargo run --release -- 20000

soak: ## everything at once for MINUTES (30), under a memory limit of a quarter of the data
	@FENCEPOST_MINUTES=$(MINUTES) FENCEPOST_LONG=1 FENCEPOST_RECORD='$(RECORDS)' cargo test $(CARGO_FLAGS) -p fencepost \
		--test soak -- --exact soak --ignored --nocapture

sanitize: ## ThreadSanitizer and AddressSanitizer over the Rust and Python tests (needs a nightly toolchain with rust-src)
	@FENCEPOST_RECORD='$(RECORDS)' ci/sanitize.sh thread
	@FENCEPOST_RECORD='$(RECORDS)' ci/sanitize.sh address
	@FENCEPOST_RECORD='$(RECORDS)' ci/sanitize.sh python

miri: ## Miri over everything that needs no map (needs a nightly toolchain with miri and rust-src)
	@FENCEPOST_RECORD='$(RECORDS)' ci/sanitize.sh miri

clean: ## remove what was built here (the Python environment in the user's cache stays)
	cargo clean
	rm -rf .pytest_cache fuzz/target fuzz/artifacts
	find format-spec python -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
