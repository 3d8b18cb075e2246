# Index of the commands; what they do is in the scripts. `make` alone lists them.
#
# Whoever has a build of MySQL gives MYSQL_SOURCE_DIR and MYSQL_BUILD_DIR, as make or environment variables; else
# packages are unpacked into a cache folder (tests/env/provision.sh).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BUILD := $(or $(THREAD_POOL_BUILD_DIR),build)
# rustup's folder is on the PATH of login shells only.
export PATH := $(PATH):$(HOME)/.cargo/bin

PACKAGES := tests/env/packages.sh
USE_MYSQL := eval "$$(tests/env/env.sh)"
CXX_FILES = $$(git ls-files 'cpp_shim/*.cc' 'cpp_shim/*.h' 'tests/host/*.c' 'tests/host/*.cc')
SHELL_SCRIPTS = $$(git ls-files | while read -r file; do if head -c 64 -- "$$file" | grep -qE '^\#!.*\b(ba)?sh$$'; then echo "$$file"; fi; done)

.PHONY: help all build load demo bench-dispatch run test lint format env install clean

help: ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

all: build

build: ## fetch what is needed and build build/thread_pool_rs.so
	@$(PACKAGES) build provision
	@command -v cargo >/dev/null || { echo "error: there is no cargo: install Rust, for example with rustup" >&2; exit 1; }
	@$(USE_MYSQL) && \
	cmake -S . -B $(BUILD) -DMYSQL_SOURCE_DIR="$$MYSQL_SOURCE_DIR" -DMYSQL_BUILD_DIR="$$MYSQL_BUILD_DIR" \
	  -DMYSQL_EXTRA_INCLUDE_DIR="$$MYSQL_EXTRA_INCLUDE_DIR"
	cmake --build $(BUILD) --target thread_pool_rs --parallel

load: ## build the load generator, target/load/rtp_load; benches/load/README.md says how to use it
	cargo build --locked --profile load -p rtp_load

demo: build ## compare two servers, without and with the pool, under sysbench
	@$(PACKAGES) demo test
	@benches/demo.py

bench-dispatch: build ## compare cost and throughput with no pool and with the server's own pool
	@$(PACKAGES) demo test
	@benches/dispatch.py $(ARGUMENTS)

run: build ## start a server with the pool until Ctrl-C; DATADIR=folder keeps its data
	@$(PACKAGES) test
	@benches/serve.py $(DATADIR)

test: ## run all tests; ends with a line of totals
	@tests/run_all.sh

lint: ## check formats, run clippy, shellcheck and the rules of tests/tidy.sh
	@$(PACKAGES) build lint
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	clang-format --dry-run -Werror $(CXX_FILES)
	shellcheck -x $(SHELL_SCRIPTS)
	tests/tidy.sh

format: ## format Rust and C++
	@$(PACKAGES) lint
	cargo fmt --all
	clang-format -i $(CXX_FILES)

# Built first, so that $PLUGIN and $MTR can be used at once. Standard output is only for the eval.
env: ## print shell assignments: eval "$(make -s env)" sets PLUGIN, MYSQLD, MYSQL, MTR ...
	@$(MAKE) build >&2 || { echo false; exit 1; } # the eval fails too
	@tests/env/env.sh

install: build ## install the module into the server's plugin folder; DESTDIR=folder goes in front
	cmake --install $(BUILD)

clean: ## remove what was built; MySQL stays in the cache folder
	rm -rf $(BUILD) target
