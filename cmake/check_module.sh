#!/usr/bin/env bash
# Usage: check_module.sh MODULE [MYSQLD [OBJECT]...]
# Fails if the module breaks one of the link rules. Each of them was broken once, and made the server
# crash, or start without the pool.
set -euo pipefail
export LC_ALL=C

readonly exported='_mysql_plugin_declarations_
_mysql_plugin_interface_version_
_mysql_sizeof_struct_st_plugin_
my_thread_scheduler_service
plugin_registry_service'
readonly libraries='libc.so.6 libgcc_s.so.1 libm.so.6 libstdc++.so.6'

module=$1
mysqld=${2-}
objects=("${@:3}")
bad=0
complain() {
  printf 'check_module: %s: %s\n' "${module##*/}" "$*" >&2
  bad=1
}

# Prints the names of the dynamic symbols that nm shows with the given options, without versions.
symbols() { nm -D -P "$@" | awk '{ sub(/@.*/, "", $1); print $1 }' | sort -u; }

dynamic=$(readelf -dW "$module")
has() { grep -qE "$1" <<<"$dynamic"; }

# A service that isn't exported stays unset, and its first use crashes the server. Anything else that is
# exported can be taken over by another library that has the same symbol.
difference=$(diff <(symbols --defined-only "$module") <(printf '%s\n' "$exported")) ||
  complain "the exported symbols aren't the agreed ones:"$'\n'"$difference"

while read -r library; do
  # The dynamic loader is needed for __tls_get_addr; its name depends on the architecture.
  [[ $library == ld-linux* || " $libraries " == *" $library "* ]] || complain "needs an unexpected library: $library"
done < <(awk '/NEEDED/ { gsub(/[][]/, "", $NF); print $NF }' <<<"$dynamic")

# The server maps modules with RTLD_NOW: one unknown symbol and it starts without the pool.
needed=$(nm -D -P --undefined-only "$module" | awk '$2 == "U" { sub(/@.*/, "", $1); print $1 }' | sort -u)
if [[ -n $mysqld && -f $mysqld ]]; then
  provided=$(symbols --defined-only "$mysqld") || complain "can't read the server's symbols: $mysqld"
  provided+=$'\n'$(
    for library in $libraries ld-linux-x86-64.so.2 ld-linux-aarch64.so.1; do
      file=$("${CXX:-g++}" -print-file-name="$library")
      if [[ $file == /* ]]; then symbols --defined-only "$file"; fi
    done
  )
  missing=$(comm -23 <(printf '%s\n' "$needed") <(sort -u <<<"$provided") | sed '/^$/d')
  [[ -z $missing ]] || complain "neither the server nor the C and C++ libraries have these symbols:"$'\n'"$missing"
else
  printf 'check_module: %s: no mysqld to look for the needed symbols in; skipped that check\n' "${module##*/}" >&2
fi

# A destructor of a static or thread-local object would run when the server has long torn down what it uses.
# The one that older compilers put into each file which sees <iostream> is harmless.
if grep -qx __cxa_thread_atexit <<<"$needed"; then complain "a thread_local object has a destructor"; fi
for object in "${objects[@]}"; do
  relocations=$(readelf -rW "$object")
  if (($(grep -cw __cxa_atexit <<<"$relocations") > $(grep -cw _ZNSt8ios_base4InitD1Ev <<<"$relocations"))); then
    complain "a static object has a destructor: ${object##*/}"
  fi
done

# The server unmaps plugins at its end, while threads of InnoDB still call the hooks.
has '\(FLAGS_1\).*NODELETE' || complain "isn't marked NODELETE"
has '\(FLAGS_1\).*NOW' || complain "isn't bound at load (-z now)"
readelf -lW "$module" | grep -q GNU_RELRO || complain "has no read-only relocations (-z relro)"
! has 'TEXTREL' || complain "has text relocations"
! has '\(SONAME\)' || complain "has a soname"
readelf -nW "$module" | grep -q 'Build ID' || complain "has no build id"

exit "$bad"
