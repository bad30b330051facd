# Weftline's commands. `make` alone lists them. Everything lands in target/.

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo
PYTHON  ?= python3

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
WEFT   := $(TARGET)/release/weft
.DEFAULT_GOAL := help
.PHONY: help build demo sql kernel wheels wheel-sql dist setup test test-package test-weave test-rust test-live test-loom test-python test-golden test-weekly soak weekly conformance check check-fmt check-clippy check-sql check-tidy check-docs \
	check-rustdoc check-fuzz check-dist bench-capture bench-annotate bench-analysis bench-collect bench-import bench-weave install clean weave check-weave

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build weft and the library it injects (target/release)
	@command -v cc >/dev/null || tools/debian-packages.sh gcc libc6-dev
	@CARGO_TARGET_DIR=$(TARGET) tools/build.sh >/dev/null

sql: ## build weft-sql, which executes `weft query` (takes some minutes more: DataFusion)
	@CARGO_TARGET_DIR=$(TARGET) tools/build.sh --sql-only >/dev/null

kernel: ## build weft with --kernel; installs clang, which compiles the tracepoints
	@tools/debian-packages.sh clang
	@KERNEL=must $(MAKE) --no-print-directory build

demo: build ## trace a small training job with worker processes and print the summary
	@command -v $(PYTHON) >/dev/null || tools/debian-packages.sh python3
	@WEFT=$(WEFT) PYTHON=$(PYTHON) examples/demo.sh

setup: ## install what the tests need
	@WEFT_VENV=$(TARGET)/venv tools/setup-test-machine.sh

# The build comes behind the setup and in a make of its own: whether clang is there decides what is built.
test: setup ## install what the tests need and run them all
	@$(MAKE) --no-print-directory build test-package test-loom
	@$(TESTS)

# A workspace of its own, which shares nothing with the product.
test-loom: ## try the recorder's hand-over of segments in all interleavings
	$(CARGO) test --locked --quiet --manifest-path crates/recorder/loom/Cargo.toml --target-dir $(TARGET)/loom

TESTS = WEFT_BIN=$(WEFT) WEFT_VENV=$(TARGET)/venv WEFT_PACKAGE=$(TARGET)/venv-package CARGO_TARGET_DIR=$(TARGET) tools/run-tests.sh
test-weave test-rust test-live test-python test-weekly: test-%:
	@$(TESTS) $*

test-golden: ## compare reports, SQL and Python with the reference analysis over the golden traces of ../shared/golden (GOLDEN_ARGS=DIRECTORY for others, --without-golden if they may be missing)
	@$(TESTS) golden -- $(GOLDEN_ARGS)

soak: build ## kill programs and supervisors at random moments, attack the remaining files, and count missing events (WEFT_SOAK_KILLS=50: a minute)
	@WEFT_BIN=$(WEFT) CARGO_TARGET_DIR=$(TARGET) tools/soak.sh $(SOAK_ARGS)

weekly: ## run tests that take long and seldom fail: all LLVMs, wheels in all Pythons, the tarball in Debian 11, DFTracer's tests, fuzzing, Perfetto, DLIO, a soak test
	@tools/weekly.sh $(WEEKLY_ARGS)

# The tests are fetched from PyPI; the environment is made again each time, so that it holds only the drop-in.
conformance: ## run DFTracer's own black-box tests against the drop-in; docs/compat.md lists what differs
	@tools/debian-packages.sh g++ cmake jq python3-venv
	@rm -rf $(TARGET)/conformance/venv
	@CARGO_TARGET_DIR=$(TARGET) tools/python-package.sh $(TARGET)/conformance/venv tools/conformance/requirements.txt
	@$(PYTHON) tools/conformance/run_dftracer.py --work $(TARGET)/conformance --venv $(TARGET)/conformance/venv

test-package:
	@CARGO_TARGET_DIR=$(TARGET) tools/python-package.sh $(TARGET)/venv-package

weave: ## build the weaver for C and C++: a plugin for each clang of Debian (14, 15, 16, 19) and any other LLVM found
	@tools/debian-packages.sh g++ $(foreach major,$(shell tools/weave.sh --majors),clang-$(major) llvm-$(major)-dev)
	@CARGO_TARGET_DIR=$(TARGET) tools/weave.sh

# zig, which links for old systems. Packages hold `--kernel`, so they need clang.
PACKAGING = tools/debian-packages.sh binutils clang python3-venv && tools/python-venv.sh $(TARGET)/venv-wheels tools/wheels/requirements.txt
MAKE_WHEELS = CARGO_TARGET_DIR=$(TARGET) KERNEL=must $(TARGET)/venv-wheels/bin/python3 tools/wheels/make.py --out $(TARGET)/wheels --work $(TARGET)/wheels-check

wheels: ## build the Python wheels (target/wheels) and try them in every Python there is
	@$(PACKAGING)
	$(MAKE_WHEELS)

wheel-sql: ## build the wheel weftline-sql, which brings `weft query`, and try it with those of `make wheels`
	@$(PACKAGING)
	$(MAKE_WHEELS) --sql

dist: ## build the archive target/dist/weftline-VERSION-x86_64-linux.tar.gz: everything, for any system with glibc 2.17
	@$(PACKAGING)
	@CARGO_TARGET_DIR=$(TARGET) PATH=$(TARGET)/venv-wheels/bin:$$PATH tools/dist.sh $(TARGET)/dist

# Needs root (chroot) and Debian's mirror.
check-dist: dist ## try that archive in Debian 11
	@tools/debian-packages.sh debootstrap
	@tools/check-dist.sh $(TARGET)/dist

check: check-fmt check-clippy check-rustdoc check-fuzz check-tidy check-docs ## formatting, lints, documentation of the code, invariants, generated documents

check-fmt:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path crates/recorder/loom/Cargo.toml --check
	$(CARGO) fmt --manifest-path bench/annotate/spans/Cargo.toml --check

# Without crates/sql, for which alone DataFusion would be checked: `.ci/run` lints it while its tests are built, `make check-sql` by itself.
WITHOUT_SQL = --workspace --exclude weftline-sql --features weftline-cli/kernel
check-clippy:
	$(CARGO) clippy --profile bench $(WITHOUT_SQL) --all-targets -- -D warnings

check-sql: ## lints and documentation of weft-sql (some minutes more: DataFusion)
	$(CARGO) clippy --profile bench --package weftline-sql --all-targets -- -D warnings
	$(RUSTDOC) --profile bench --package weftline-sql

# Dependencies are those of clippy, so that only our own crates are read again. A link to a private item is fine: private items are documented here.
RUSTDOC := RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --locked --no-deps --document-private-items
check-rustdoc: ## documentation of the code without warnings
	$(RUSTDOC) --profile bench $(WITHOUT_SQL)

# Nothing is linked, so libFuzzer itself, 12 CPU-seconds of C++, need not be there.
check-fuzz: ## the fuzz targets compile with the toolchain of the rest, and their documentation has no warnings
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	CUSTOM_LIBFUZZER_PATH=/dev/null $(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz
	CUSTOM_LIBFUZZER_PATH=/dev/null $(RUSTDOC) --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz

# Apart from `check`, because it needs LLVM's headers.
check-weave: ## formatting, lints and documentation of the weaver
	@tools/debian-packages.sh g++ $(foreach major,$(shell tools/weave.sh --everyday),clang-$(major) llvm-$(major)-dev)
	$(CARGO) fmt --manifest-path weave/Cargo.toml --check
	$(FOR_WEAVE) $(CARGO) clippy --release --locked --manifest-path weave/Cargo.toml --all-targets --target-dir $(TARGET)/weave/build -- -D warnings
	$(FOR_WEAVE) $(RUSTDOC) --release --manifest-path weave/Cargo.toml --target-dir $(TARGET)/weave/build

FOR_WEAVE = WEFT_LLVM_CONFIG=$$(command -v llvm-config-$$(tools/weave.sh --everyday))

check-tidy: build
	$(CARGO) xtask tidy

check-docs: build
	$(CARGO) xtask docs --check

bench-capture: build ## measure the cost of tracing beside DFTracer and strace (a quarter of an hour)
	@tools/debian-packages.sh gcc libc6-dev git python3-venv strace tar valgrind
	$(PYTHON) bench/capture/bench.py --weft $(WEFT) --work $(TARGET)/bench-capture $(BENCH_ARGS)

# A peer that cannot be installed or built is told by name below the table. Spans of compiled programs need no wheels (BENCH_ARGS='--parts spans').
bench-annotate: build $(if $(filter spans,$(BENCH_ARGS)),,wheels) ## measure the cost of annotations beside LTTng-UST, Tracy, fastrace and puffin, and of Python's beside DFTracer's
	@tools/debian-packages.sh gcc g++ libc6-dev python3-venv
	-@tools/debian-packages.sh babeltrace2 liblttng-ust-dev lttng-tools
	$(PYTHON) bench/annotate/bench.py --weft $(WEFT) --work $(TARGET)/bench-annotate --wheels $(TARGET)/wheels $(BENCH_ARGS)

bench-collect: build ## measure what sampling costs beside a minimal Python sampler (ten minutes)
	@tools/debian-packages.sh gcc libc6-dev
	$(PYTHON) bench/collect/bench.py --weft $(WEFT) --work $(TARGET)/bench-collect $(BENCH_ARGS)

# BENCH_ARGS=--profile counts instructions instead, in half a minute.
bench-analysis: build ## measure what an analysis costs beside dftracer-utils, dfanalyzer, DuckDB and Polars (a quarter of an hour)
	@tools/debian-packages.sh gzip isal libdeflate-tools python3-venv $(if $(findstring --profile,$(BENCH_ARGS)),valgrind)
	$(CARGO) build --release --package weftline-format --example generate_trace
	$(CARGO) build --release --package weftline-analysis --example group_by
	$(PYTHON) bench/analysis/bench.py --weft $(WEFT) --work $(TARGET)/bench-analysis --group-by $(TARGET)/release/examples/group_by \
		--generator $(TARGET)/release/examples/generate_trace $(BENCH_ARGS)

bench-import: build ## measure what reading foreign files costs beside the tools of their formats
	@tools/debian-packages.sh nodejs python3-venv
	$(PYTHON) bench/import/bench.py --weft $(WEFT) --work $(TARGET)/bench-import $(BENCH_ARGS)

bench-weave: build weave ## measure the cost of woven calls beside -finstrument-functions of clang and gcc
	$(PYTHON) bench/weave/bench.py --weft $(WEFT) --work $(TARGET)/bench-weave $(BENCH_ARGS)

# Targets given before it (`make sql install`) come first, also with -j.
install: build $(filter kernel sql weave,$(MAKECMDGOALS)) ## install below PREFIX (default /usr/local; no root needed for your own directory)
	tools/install.sh $(WEFT) '$(DESTDIR)$(PREFIX)'

clean: ## remove what was built
	$(CARGO) clean
	rm -rf examples/out
