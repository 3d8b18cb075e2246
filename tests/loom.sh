#!/usr/bin/env bash
# Runs the lock-free protocols under loom's model checker (src/model). The flag changes every
# crate's build, hence a target folder of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
exec cargo test --locked --release --lib model::
