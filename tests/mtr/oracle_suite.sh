#!/usr/bin/env bash
# Usage: oracle_suite.sh [--record]
# Runs those tests of Oracle's suite `thread_pool` that our pool passes (oracle_passing.txt, one name a line), and fails if
# one of them doesn't pass any more. With --record runs the whole suite and rewrites the list.
set -euo pipefail
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
readonly list=$here/oracle_passing.txt
eval "$("$here/../env/env.sh")"
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# A test can run in several combinations, and a failed one is tried again: it passes if no run of it failed.
passing() {
  awk '/^\[ *[0-9]+%\]/ { sub(/^\[ *[0-9]+%\] */, "") }
    $1 ~ /^thread_pool\./ && /\[ pass \]/ { passed[$1] = 1 }
    $1 ~ /^thread_pool\./ && /\[ (retry-)?fail \]/ { failed[$1] = 1 }
    END { for (name in passed) if (!(name in failed)) print name }' "$output" | LC_ALL=C sort
}

# run [TEST...]: without names, the whole suite. The default limits would end a run with many failures early.
run() {
  $MTR --suite=thread_pool --parallel=3 --force --max-test-fail=0 "$@" 2>&1 | tee "$output"
}

record() {
  run || true
  passing >"$list.new"
  if [[ ! -s $list.new ]]; then
    rm "$list.new"
    echo "error: no test passed; the list stays as it was" >&2
    exit 1
  fi
  {
    echo "# The tests of Oracle's suite thread_pool that pass with our module in the place of Oracle's."
    echo "# Made by tests/mtr/oracle_suite.sh --record with MySQL $MYSQL_VERSION. The others are skipped or fail; its output says which."
    cat "$list.new"
  } >"$list"
  rm "$list.new"
  echo "$(grep -c '^thread_pool' "$list") tests are in $list"
}

verify() {
  local listed lost
  mapfile -t listed < <(grep -v '^#' "$list")
  # What isn't seen to pass is reported below, together with tests that are skipped now.
  run "${listed[@]}" || true
  lost=$(comm -23 <(printf '%s\n' "${listed[@]}" | LC_ALL=C sort) <(passing))
  if [[ -n $lost ]]; then
    printf 'Listed in %s, but no longer passing:\n%s\n' "${list##*/}" "$lost"
  fi
  local failed
  failed=$(grep -c . <<<"$lost" || true)
  echo "Oracle's suite: $((${#listed[@]} - failed)) passed, $failed failed"
  [[ $failed == 0 ]]
}

case ${1-} in
  --record) record ;;
  '') verify ;;
  *)
    sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
