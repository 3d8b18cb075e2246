#!/usr/bin/env bash
# Usage: eval "$(tests/env/env.sh)"
# Prints the places of MySQL and of the module as shell assignments; makes the MySQL tree first if there is none.
# On failure it prints `false`, so that the eval fails too.
#
#   PLUGIN                   the built module; THREAD_POOL_BUILD_DIR overrides the folder <checkout>/build
#   MYSQL_ROOT               the MySQL tree (empty for an own build)
#   MYSQL_VERSION            for example 9.7.4
#   MYSQLD MYSQL MYSQLADMIN  commands that run from any folder as any user; use them unquoted
#   MTR                      mysql-test-run with our module as thread_pool.so and thread_pool_rs.so
#   MTR_ORACLE               the same with Oracle's thread_pool.so
#   MYSQL_SOURCE_DIR MYSQL_BUILD_DIR MYSQL_EXTRA_INCLUDE_DIR  what the shim is compiled against
#
# Whoever has an own build of MySQL sets MYSQL_SOURCE_DIR and MYSQL_BUILD_DIR; then nothing is fetched.
# shellcheck disable=SC2034 # the assignments are printed by name
set -euo pipefail
trap '[[ $? == 0 ]] || echo false' EXIT
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
# shellcheck source=SCRIPTDIR/lib.sh
source "$here/lib.sh"

use_tree() {
  MYSQL_ROOT=$("$here/provision.sh")
  MYSQL_VERSION=$(<"$MYSQL_ROOT/version")
  MYSQL_SOURCE_DIR=$MYSQL_ROOT/source
  MYSQL_BUILD_DIR=$MYSQL_ROOT/source/builddir
  MYSQL_EXTRA_INCLUDE_DIR=$MYSQL_ROOT/headers
  MYSQLD=$MYSQL_ROOT/bin/mysqld
  programs=$MYSQL_ROOT/usr/bin
  mtr="$here/mtr.sh --base=$MYSQL_ROOT/usr --binaries=$MYSQL_ROOT/usr --tests=$MYSQL_ROOT/usr/lib/mysql-test --plugins=$MYSQL_ROOT/usr/lib/mysql/plugin"
}

use_own_build() {
  [[ -n ${MYSQL_SOURCE_DIR-} && -n ${MYSQL_BUILD_DIR-} ]] || die "MYSQL_SOURCE_DIR and MYSQL_BUILD_DIR go together: set both, or none"
  MYSQL_SOURCE_DIR=$(realpath -- "$MYSQL_SOURCE_DIR")
  MYSQL_BUILD_DIR=$(realpath -- "$MYSQL_BUILD_DIR")
  [[ -f $MYSQL_SOURCE_DIR/sql/sql_class.h ]] || die "MYSQL_SOURCE_DIR=$MYSQL_SOURCE_DIR isn't a MySQL source tree"
  [[ -f $MYSQL_BUILD_DIR/include/mysqld_error.h ]] || die "MYSQL_BUILD_DIR=$MYSQL_BUILD_DIR isn't a finished build of MySQL: it has no include/mysqld_error.h"
  require_no_space "$MYSQL_SOURCE_DIR"
  require_no_space "$MYSQL_BUILD_DIR"
  MYSQL_ROOT=
  MYSQL_VERSION=$(sed -nE 's/^#define MYSQL_SERVER_VERSION *"([0-9.]+).*/\1/p' "$MYSQL_BUILD_DIR/include/mysql_version.h")
  MYSQL_EXTRA_INCLUDE_DIR=$MYSQL_BUILD_DIR/include
  programs=$MYSQL_BUILD_DIR/runtime_output_directory
  MYSQLD=$programs/mysqld
  mtr="$here/mtr.sh --base=$MYSQL_SOURCE_DIR --binaries=$MYSQL_BUILD_DIR --tests=$MYSQL_SOURCE_DIR/mysql-test --plugins=$MYSQL_BUILD_DIR/plugin_output_directory"
}

require_no_space "$here"
PLUGIN=$(realpath -m -- "${THREAD_POOL_BUILD_DIR:-$here/../../build}")/thread_pool_rs.so
require_no_space "$PLUGIN"
# Somebody may have exported what an earlier run printed: our own tree is no own build.
if [[ -z ${MYSQL_SOURCE_DIR-}${MYSQL_BUILD_DIR-} || (-n ${MYSQL_ROOT-} && ${MYSQL_SOURCE_DIR-} == "$MYSQL_ROOT/source") ]]; then
  use_tree
else
  use_own_build
fi
MYSQL=$programs/mysql
MYSQLADMIN=$programs/mysqladmin
MTR="$mtr --module=$PLUGIN --"
MTR_ORACLE="$mtr --"
for name in PLUGIN MYSQL_ROOT MYSQL_VERSION MYSQLD MYSQL MYSQLADMIN MTR MTR_ORACLE MYSQL_SOURCE_DIR MYSQL_BUILD_DIR MYSQL_EXTRA_INCLUDE_DIR; do
  printf '%s=%q\n' "$name" "${!name}"
done
