#!/usr/bin/env bash
# Usage: tests/clients/run_all.sh [NAME...]
# Runs the client tests against a server without pool, then against one with it, then the shutdown test.
# Prints totals; fails if a test failed. NAME limits the tests (see run.py) and leaves out the shutdown test.
# THREAD_POOL_SESSIONS sets the size of crowds (by default 1,000 for the mass KILL and 500 for the others, for example
# 5000 for all), THREAD_POOL_ROUNDS the rounds of the shutdown test.
set -euo pipefail
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
eval "$("$here/../env/env.sh")"
sessions=${THREAD_POOL_SESSIONS:-1000}
crowd=${THREAD_POOL_SESSIONS:-500}
rounds=${THREAD_POOL_ROUNDS:-10}

# The load generator, which test_load.py runs.
make -C "$here/../.." load

output=$(mktemp)
running=''
# shellcheck disable=SC2317 # called by the trap
clean_up() {
  rm -f "$output"
  [[ -z $running ]] || "$here/server.py" stop "$running"
}
trap clean_up EXIT

# report NAME COMMAND...: runs the command and remembers its last line.
summaries=()
status=0
report() {
  local name=$1
  shift
  printf '== %s\n' "$name"
  "$@" | tee "$output" || status=1
  summaries+=("$name: $(tail -n 1 "$output")")
}

# check NAME OPTION...: the client tests against a server that is started with these options.
check() {
  local name=$1 assignments
  shift
  assignments=$("$here/server.py" start --mysqld "$MYSQLD" "$@")
  eval "$assignments"
  running=$SERVER_DIR
  report "$name" "$here/run.py" --socket "$SERVER_SOCKET" --port "$SERVER_PORT" --admin-port "$SERVER_ADMIN_PORT" \
    --pid "$SERVER_PID" --sessions "$sessions" --crowd "$crowd" "${own_server[@]}" "${names[@]}"
  running=''
  if ! "$here/server.py" stop "$SERVER_DIR"; then
    status=1
    summaries+=("$name: the server didn't stop as it should")
  fi
}

names=("$@")
own_server=()
check "without pool"
own_server=(--mysqld "$MYSQLD" --plugin "$PLUGIN")
check "with pool" --pool --plugin "$PLUGIN"
if [[ ${#names[@]} == 0 ]]; then
  report "shutdown" "$here/shutdown.py" --mysqld "$MYSQLD" --plugin "$PLUGIN" --rounds "$rounds"
fi
printf '%s\n' "${summaries[@]}"
exit $status
