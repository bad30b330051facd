# Weftline's commands. `make` alone lists them. Everything lands in target/.

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo
PYTHON  ?= python3

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
WEFT   := $(TARGET)/release/weft
# `weft run` finds its library beside itself, so tests and demos need only the path of `weft`.
PRODUCT := --release --package weftline-cli --package weftline-preload \
	--package weftline-capi --package weftline-capi-dftracer --package weftline-capi-perfflow

.DEFAULT_GOAL := help
.PHONY: help build demo sql wheels test check check-fmt check-clippy check-tidy check-docs bench-capture bench-annotate bench-analysis install clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build weft and the library it injects (target/release)
	@command -v cc >/dev/null || tools/debian-packages.sh gcc libc6-dev
	$(CARGO) build $(PRODUCT)

sql: ## build weft-sql, which answers `weft query` (about 20 minutes on two processors: DataFusion)
	$(CARGO) build --release --package weftline-sql

demo: build ## trace a small training job with worker processes and print the summary
	@command -v $(PYTHON) >/dev/null || tools/debian-packages.sh python3
	@WEFT=$(WEFT) PYTHON=$(PYTHON) examples/demo.sh

test: build ## install what the tests need and run them all
	@WEFT_VENV=$(TARGET)/venv tools/setup-test-machine.sh
	@CARGO_TARGET_DIR=$(TARGET) tools/python-package.sh $(TARGET)/venv-package
	WEFT_BIN=$(WEFT) WEFT_VENV=$(TARGET)/venv WEFT_PACKAGE=$(TARGET)/venv-package tools/run-tests.sh

wheels: ## build the Python wheels (target/wheels) and try them in every Python there is
	@tools/debian-packages.sh binutils python3-venv
	@tools/python-venv.sh $(TARGET)/venv-wheels tools/wheels/requirements.txt
	$(TARGET)/venv-wheels/bin/python3 tools/wheels/make.py --out $(TARGET)/wheels --work $(TARGET)/wheels-check

check: check-fmt check-clippy check-tidy check-docs ## formatting, lints, invariants, generated documents

check-fmt:
	$(CARGO) fmt --all --check

check-clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

check-tidy: build
	$(CARGO) xtask tidy

check-docs: build
	$(CARGO) xtask docs --check

bench-capture: build ## measure the cost of tracing beside DFTracer and strace (a quarter of an hour)
	@tools/debian-packages.sh gcc libc6-dev git python3-venv strace tar valgrind
	$(PYTHON) bench/capture/bench.py --weft $(WEFT) --work $(TARGET)/bench-capture $(BENCH_ARGS)

bench-annotate: build wheels ## measure the cost of annotations beside DFTracer, PerfFlowAspect and VizTracer
	$(CARGO) build --release --package weftline --example span_cost
	$(PYTHON) bench/annotate/bench.py --weft $(WEFT) --work $(TARGET)/bench-annotate --wheels $(TARGET)/wheels \
		--rust $(TARGET)/release/examples/span_cost $(BENCH_ARGS)

bench-analysis: build ## measure what an analysis costs beside dftracer-utils, dfanalyzer, DuckDB and Polars (a quarter of an hour)
	@tools/debian-packages.sh gzip isal libdeflate-tools python3-venv
	$(CARGO) build --release --package weftline-format --example generate_trace
	$(CARGO) build --release --package weftline-analysis --example group_by
	$(PYTHON) bench/analysis/bench.py --weft $(WEFT) --work $(TARGET)/bench-analysis --group-by $(TARGET)/release/examples/group_by \
		--generator $(TARGET)/release/examples/generate_trace $(BENCH_ARGS)

install: build ## install below PREFIX (default /usr/local; no root needed for your own directory)
	tools/install.sh $(WEFT) '$(DESTDIR)$(PREFIX)'

clean: ## remove what was built
	$(CARGO) clean
	rm -rf examples/out
