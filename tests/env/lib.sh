# Sourced by the scripts of this folder: messages and the place of the cache.
# shellcheck shell=bash

# Progress goes to standard error, because standard output carries answers (a path, shell assignments).
say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

is_root() { [[ $EUID == 0 ]]; }

# Prints the cache folder. Root's default isn't below its home, since that is closed to the
# unprivileged user as whom root runs the MySQL tests.
cache_dir() {
  if [[ -n ${THREAD_POOL_CACHE-} ]]; then
    realpath -m -- "$THREAD_POOL_CACHE"
  elif is_root; then
    printf '%s\n' /var/cache/thread_pool_rs
  elif [[ -n ${XDG_CACHE_HOME:-${HOME-}} ]]; then
    realpath -m -- "${XDG_CACHE_HOME:-$HOME/.cache}/thread_pool_rs"
  else
    die "neither HOME nor THREAD_POOL_CACHE is set: name a cache folder in THREAD_POOL_CACHE"
  fi
}

# Our command lines are used unquoted (`$MYSQLD --no-defaults`), so no path in them may hold a space.
require_no_space() {
  [[ $1 != *[[:space:]]* ]] || die "the path '$1' contains a space, which MySQL's test driver can't handle: use another folder"
}
