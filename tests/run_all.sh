#!/usr/bin/env bash
# Usage: run_all.sh    (make test)
# Builds the module and runs all tests, all steps even if one fails. Ends with one line of totals, and fails if a test did.
set -euo pipefail
cd "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT
readonly start=$SECONDS

# -------------------------------------------------------------------------------------------------
# Each of these reads the output of a step and prints: passed failed skipped

count_step() { echo "0 0 0"; }

# test result: ok. 12 passed; 0 failed; 1 ignored; ...
count_cargo() { awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 } END { print passed + 0, failed + 0, skipped + 0 }'; }

# 50% tests passed, 1 tests failed out of 2
count_ctest() { awk '/ tests passed, / { failed += $4; passed += $NF - $4 } END { print passed + 0, failed + 0, 0 }'; }

# Completed: All 9 tests were successful.   or   Completed: Failed 2/9 tests, ...   and   3 tests were skipped, ...
count_mtr() {
  awk '/ tests were successful/ && /ompleted( tests)?: All / { passed += $3 }
    match($0, /Failed [0-9]+\/[0-9]+ tests/) { split(substr($0, RSTART + 7), n, /[\/ ]/); failed += n[1]; passed += n[2] - n[1] }
    / tests were skipped, / { skipped += $1 }
    END { print passed + 0, failed + 0, skipped + 0 }'
}

# Lines of the form: <what>: 9 passed, 0 failed, 1 skipped
count_totals() {
  sed -nE 's/^[^:]+: ([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' |
    awk '{ passed += $1; failed += $2; skipped += $3 } END { print passed + 0, failed + 0, skipped + 0 }'
}

# -------------------------------------------------------------------------------------------------

c_interface() { ctest --test-dir "$build" --output-on-failure; }

build_all() {
  make build
  # Also the tests of the C interface.
  cmake --build "$build" --parallel
}

# With debug assertions. Link-time optimisation would be spent on each of the test programs.
rust_tests() {
  CARGO_PROFILE_RELEASE_ASSERT_LTO=off CARGO_PROFILE_RELEASE_ASSERT_CODEGEN_UNITS=16 \
    cargo test --locked --profile release-assert --all-features --no-fail-fast
}

# In the profile in which the client tests run it.
load_tests() { cargo test --locked --profile load --package rtp_load; }

own_suite() {
  eval "$(tests/env/env.sh)"
  $MTR --suite=thread_pool_rs --parallel=3 --force --max-test-fail=0
}

steps=(
  'build|step|build_all'
  'Rust tests|cargo|rust_tests'
  'load generator|cargo|load_tests'
  'loom models|cargo|tests/loom.sh'
  'C interface and module check|ctest|c_interface'
  "the server's own build|step|tests/build/in_tree.sh"
  'MTR, own suite|mtr|own_suite'
  "MTR, Oracle's suite|totals|tests/mtr/oracle_suite.sh"
  'client tests|totals|tests/clients/run_all.sh'
  'shutdown under load|totals|tests/acceptance.py 5'
)

passed=0 failed=0 skipped=0 summary=()
run_step() {
  local title=$1 count=$2 command=$3 begin=$SECONDS status=0 p f s
  printf '\n=== step %d/%d: %s\n' "$number" "${#steps[@]}" "$title"
  # A shell of its own with its own errexit, which would be off in a condition.
  set +e
  (
    set -e
    eval "$command"
  ) 2>&1 | tee "$output"
  status=${PIPESTATUS[0]}
  set -e
  read -r p f s < <("count_$count" <"$output")
  # What ended badly without naming a failed test, or ran no test at all, is a failure too.
  if ((f == 0 && (status != 0 || p == 0 && s == 0))); then
    if [[ $count == step && $status == 0 ]]; then p=1; else f=1; fi
  fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  summary+=("$(printf '%-32s %5d passed %5d failed %5d skipped %6d s' "$title" "$p" "$f" "$s" $((SECONDS - begin)))")
  printf '=== %s\n' "${summary[-1]}"
}

tests/env/packages.sh build provision test demo
PATH+=:${HOME-}/.cargo/bin
build=${THREAD_POOL_BUILD_DIR:-build}
number=0
for step in "${steps[@]}"; do
  number=$((number + 1))
  IFS='|' read -r title count command <<<"$step"
  run_step "$title" "$count" "$command"
done

printf '\nAll steps, %d s:\n' $((SECONDS - start))
printf '  %s\n' "${summary[@]}"
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[[ $failed == 0 ]]
