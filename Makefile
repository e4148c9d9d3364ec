# jobctl's commands. CARGO_TARGET_DIR moves everything that is built or fetched out of the tree.

SHELL := /bin/bash
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
export CARGO_TARGET_DIR := $(TARGET)
export DUCKDB_LIB_DIR := $(TARGET)/duckdb/lib
export JOBCTL_DUCKDB_EXTENSIONS := $(TARGET)/duckdb/extensions
TOOLS := $(TARGET)/tools
export PATH := $(TOOLS)/bin:$(PATH)
DEMO := $(TARGET)/demo

.PHONY: help setup build release demo test verify nightly bench bench-engine bench-edition bench-inventory

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: ## brings DuckDB and the DuckLake extension, checked against pinned digests
	@scripts/setup-duckdb.sh $(TARGET)/duckdb

build: setup ## builds the binary for development
	cargo build --locked

release: setup ## builds the binary for use
	cargo build --locked --release

demo: setup ## from a fresh clone to a published table
	cargo build --locked --quiet
	@scripts/demo.sh $(TARGET)/debug/jobctl $(DEMO)

test: setup nextest ## formatting, lints, all tests, doctests
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --features crash-points -- -D warnings
	cargo nextest run --locked --workspace --features crash-points
	cargo test --locked --workspace --features crash-points --doc --quiet

verify: setup ## the quick half of `test`: formatting, lints, the rules crates
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --features crash-points -- -D warnings
	cargo test --locked --quiet -p engine-rules -p catalog-rules -p workflows

nightly: setup nextest ## the long tests
	cargo nextest run --locked --workspace --features crash-points --profile nightly

bench: bench-engine bench-edition bench-inventory ## all benchmarks, one JSON line a case

bench-engine: setup ## the engine: steps a second, latency, resume; the purge of a million runs
	@cargo bench --locked --quiet -p engine --bench engine
	@cargo bench --locked --quiet -p engine --bench purge

bench-edition: setup ## an edition of a million rows: build, seal by phase, check
	@cargo bench --locked --quiet -p activities --bench edition

bench-inventory: setup ## a catalog of 7,000 products: live view, one version, a release, verify
	@cargo bench --locked --quiet -p activities --bench inventory

.PHONY: nextest
nextest:
	@cargo nextest --version >/dev/null 2>&1 || cargo install --locked --quiet --root $(TOOLS) cargo-nextest
