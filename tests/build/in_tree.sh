#!/usr/bin/env bash
# Usage: in_tree.sh [FOLDER]
# Builds the module as one of the server's own plugins: this checkout is linked into plugin/ of a MySQL source
# tree, which MySQL's own CMake files then configure and build. Works in FOLDER (build/in_tree of the checkout
# if not given), which a second run reuses. Takes about five minutes on two cores the first time.
#
# The server's configuration step asks for more than our target needs (the packages of group in_tree). The
# options turn off what would ask for even more.
set -euo pipefail
root=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
"$root/tests/env/packages.sh" build in_tree
settings=$(bash "$root/tests/env/env.sh")
eval "$settings"
folder=${1:-$root/build/in_tree}
source=$folder/source
build=$folder/build

# The tree as links, so that the original stays as it is. Without Oracle's plugins configuring is quicker.
mkdir -p "$source/plugin" "$build"
for entry in "$MYSQL_SOURCE_DIR"/*; do
  name=${entry##*/}
  [[ $name == plugin || $name == builddir ]] || ln -sfn "$entry" "$source/$name"
done
ln -sfn "$root" "$source/plugin/thread_pool_rs"

off() { printf -- '-D%s=OFF\n' "$@"; }
# shellcheck disable=SC2046 # a list of words
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DWITH_CURL=none -DWITH_FIDO=none \
  $(off WITH_UNIT_TESTS WITH_ROUTER WITH_GROUP_REPLICATION WITH_SYSTEMD WITH_NDB WITH_NDBCLUSTER_STORAGE_ENGINE \
    WITH_AUTHENTICATION_CLIENT_PLUGINS WITH_AUTHENTICATION_KERBEROS WITH_AUTHENTICATION_LDAP WITH_AUTHENTICATION_WEBAUTHN)
cmake --build "$build" --target thread_pool_rs --parallel "$(nproc)"

# The server itself isn't built, so the module's symbols are compared with the server that we have.
"$root/cmake/check_module.sh" "$build/plugin_output_directory/thread_pool_rs.so" "$MYSQL_SOURCE_DIR/../usr/sbin/mysqld"
echo "in-tree build: $build/plugin_output_directory/thread_pool_rs.so"
