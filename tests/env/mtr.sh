#!/usr/bin/env bash
# Usage: mtr.sh --base=DIR --binaries=DIR --tests=DIR --plugins=DIR [--module=FILE] -- ARGUMENT...
# Runs mysql-test-run with the module FILE in the place of Oracle's thread_pool.so. env.sh fills in the options.
#
# The MySQL tree stays as it is: the driver sees a copy of it made of symbolic links, whose plugin folder is
#   Oracle's plugins, with thread_pool.so and thread_pool_rs.so = FILE, and Oracle's pool as thread_pool_oracle.so
# and whose suites are MySQL's, ours (tests/mtr, called thread_pool_rs), and any folder that is given as --suite=DIR.
#
# mysqld's tests don't run as root, so root runs them as nobody. All that nobody may be unable
# to read (checkout below a closed home) is copied into the run's folder instead of linked.
# Of the run's folder only the logs stay, and only if a test failed.
set -euo pipefail
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
# shellcheck source=SCRIPTDIR/lib.sh
source "$here/lib.sh"

readonly nobody=65534

base='' binaries='' tests='' plugins='' module=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --base=*) base=${1#*=} ;;
    --binaries=*) binaries=${1#*=} ;;
    --tests=*) tests=${1#*=} ;;
    --plugins=*) plugins=${1#*=} ;;
    --module=*) module=${1#*=} ;;
    --) shift && break ;;
    *) die "mtr.sh doesn't know the option $1; arguments for mysql-test-run come after --" ;;
  esac
  shift
done
[[ -d $base && -d $binaries && -d $tests && -d $plugins ]] || die "mtr.sh is run through \$MTR of tests/env/env.sh, which says where MySQL is"
[[ -z $module || -f $module ]] || die "$module isn't built yet: run make first"

as_user() {
  if is_root; then
    HOME=$work setpriv --reuid=$nobody --regid=$nobody --clear-groups -- "$@"
  else
    "$@"
  fi
}

# link_all FROM TO EXCEPT: links to all entries of a folder but one.
link_all() {
  mkdir -p "$2"
  find -H "$1" -mindepth 1 -maxdepth 1 ! -name "$3" -exec ln -s -t "$2" -- {} +
}

# adopt_suite DIR NAME. The tests of a suite are copied for root, see above.
adopt_suite() {
  rm -rf "${work:?}/mysql-test/suite/$2"
  if is_root; then
    cp -rL -- "$1" "$work/mysql-test/suite/$2"
    copied[$2]=$1
  else
    ln -s -- "$1" "$work/mysql-test/suite/$2"
  fi
}

make_overlay() {
  link_all "$base" "$work" mysql-test
  link_all "$tests" "$work/mysql-test" suite
  link_all "$tests/suite" "$work/mysql-test/suite" ''
  link_all "$binaries" "$work/binaries" plugin_output_directory
  link_all "$plugins" "$plugin_dir" thread_pool.so
  ln -s "$plugins/thread_pool.so" "$plugin_dir/thread_pool_oracle.so"
  if [[ -n $module ]]; then
    cp -- "$module" "$plugin_dir/thread_pool_rs.so"
    ln -s thread_pool_rs.so "$plugin_dir/thread_pool.so"
  else
    ln -s thread_pool_oracle.so "$plugin_dir/thread_pool.so"
  fi
  if [[ -d $here/../mtr ]]; then
    adopt_suite "$(realpath -- "$here/../mtr")" thread_pool_rs
  fi
}

# Replaces each folder among the suites of a --suite option by the name under which it was adopted.
adopt_suites_of() {
  local option=${1%%=*} element names=()
  local elements
  IFS=, read -ra elements <<<"${1#*=}"
  for element in "${elements[@]}"; do
    if [[ $element == */* && -d $element && ! -d $tests/suite/$element ]]; then
      element=$(realpath -- "$element")
      adopt_suite "$element" "$(basename -- "$element")"
      element=$(basename -- "$element")
    fi
    names+=("$element")
  done
  adopted="$option=$(IFS=,; printf '%s' "${names[*]}")"
}

# What --record wrote into copies belongs into the originals.
return_results() {
  local name
  for name in "${!copied[@]}"; do
    (cd "$work/mysql-test/suite/$name" &&
      find . -name '*.result' -exec cp --parents --no-preserve=mode,ownership -t "${copied[$name]}" -- {} +)
  done
}

# shellcheck disable=SC2317 # the trap calls it
finish() {
  local status=$?
  cd /
  if $servers_stay; then
    say "the servers of this run live in $work"
  elif [[ $status != 0 && -d $work/var/log ]]; then
    find "$work" "$work/var" -mindepth 1 -maxdepth 1 ! -name var ! -name log -exec rm -rf -- {} +
    say "logs are in $work/var/log"
  else
    rm -rf "$work"
  fi
}

work=$(mktemp -d "${TMPDIR:-/tmp}/thread_pool_rs_mtr.XXXXXX")
plugin_dir=$work/binaries/plugin_output_directory
declare -A copied=()
recording=false servers_stay=false
trap finish EXIT
make_overlay

arguments=()
for argument in "$@"; do
  case $argument in
    --suite=* | --suites=*)
      adopt_suites_of "$argument"
      argument=$adopted
      ;;
    --record) recording=true ;;
    --start | --start-and-exit | --start-dirty) servers_stay=true ;;
  esac
  arguments+=("$argument")
done

if is_root; then
  chmod 755 "$work"
  chown -R --no-dereference $nobody:$nobody "$work"
  as_user test -r "$work/mysql-test/mysql-test-run.pl" ||
    die "root runs MySQL's tests as the user nobody, who can't read $tests or $work: choose folders that are open to all in THREAD_POOL_CACHE and TMPDIR"
fi

status=0
cd "$work/mysql-test"
MTR_BINDIR=$work/binaries as_user perl ./mysql-test-run.pl --vardir="$work/var" --mysqld=--plugin-dir="$plugin_dir" "${arguments[@]}" || status=$?
if $recording; then
  return_results
fi
exit $status
