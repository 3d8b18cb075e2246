#!/usr/bin/env bash
# Usage: packages.sh GROUP...
# Makes sure that the host has the packages of these groups: root installs what is missing,
# anybody else is told the command. Debian and Ubuntu use the same names.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# The one list of host packages: group, package, reason.
list() {
  cat <<'LIST'
build     binutils                 nm and readelf check the symbols that the module exports and needs
build     ca-certificates          cargo fetches crates over TLS
build     cmake                    builds the module
build     g++                      compiles the shim and links the module
build     make                     runs the Makefile
provision ca-certificates          apt mirrors may use TLS
provision debian-archive-keyring   checks the signatures of the MySQL packages
provision patchelf                 points MySQL's programs at the libraries of their private tree
mirror    debootstrap              knows Debian's default mirror where the host isn't Debian
in_tree   bison                    the configuration of MySQL's whole source asks for it
in_tree   libncurses-dev           likewise
in_tree   libssl-dev               likewise
in_tree   pkg-config               likewise
test      libjson-perl             mysql-test-run reads and writes JSON
test      lz4                      used by some tests of mysql-test-run
test      perl                     mysql-test-run is written in it
test      python3                  our own test scripts are written in it
test      unzip                    used by some tests of mysql-test-run
demo      python3                  the demo is written in it
demo      sysbench                 makes the load of the demo and of the benchmarks
lint      clang-format             checks the format of the shim
lint      git                      lists the files to check
lint      shellcheck               checks the shell scripts
LIST
}

packages_of() {
  local group found
  for group in "$@"; do
    found=$(list | awk -v group="$group" '$1 == group { print $2 }')
    [[ -n $found ]] || die "no group of packages is called '$group': there are $(list | awk '{ print $1 }' | sort -u | xargs)"
    printf '%s\n' "$found"
  done | sort -u
}

# Prints those of the given packages that aren't installed.
missing() {
  # dpkg-query also fails for a package that it has never heard of; that one is missing too.
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null | awk '$1 == "ii" { print $2 }' || true)
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$installed")
}

# Package lists can be absent (fresh container) or too old to fetch from, hence the second try.
install() {
  local log
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if apt-get install -y --no-install-recommends "$@" >"$log" 2>&1 ||
    { apt-get update && apt-get install -y --no-install-recommends "$@"; } >>"$log" 2>&1; then
    rm -f "$log"
  else
    die "apt-get can't install $* (no network?); its output is in $log"
  fi
}

[[ $# -gt 0 ]] || die "usage: packages.sh GROUP..., with groups from: $(list | awk '{ print $1 }' | sort -u | xargs)"
command -v dpkg-query >/dev/null || die "this host has no dpkg: the scripts know Debian and Ubuntu; elsewhere give MYSQL_SOURCE_DIR and MYSQL_BUILD_DIR"
wanted=$(packages_of "$@")
# shellcheck disable=SC2086 # a list of words
needed=$(missing $wanted | xargs)
if [[ -n $needed ]]; then
  is_root || die "packages are missing; install them with: sudo apt-get install --no-install-recommends $needed"
  say "installing $needed"
  # shellcheck disable=SC2086
  install $needed
fi
