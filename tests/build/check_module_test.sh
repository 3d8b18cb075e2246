#!/usr/bin/env bash
# Usage: check_module_test.sh
# Shows that each check of cmake/check_module.sh can fail: builds small modules that break one rule each.
set -euo pipefail
root=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
readonly root
readonly check=$root/cmake/check_module.sh
readonly compiler=${CXX:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

cat >good.cc <<'EOF'
extern "C" {
int server_function();
int _mysql_plugin_interface_version_, _mysql_sizeof_struct_st_plugin_, _mysql_plugin_declarations_;
void *my_thread_scheduler_service, *plugin_registry_service;
int internal() { return server_function(); }
}
EOF
echo 'extern "C" int server_function() { return 0; }' >server.cc
# shellcheck disable=SC2054 # the commas are for the linker
readonly rules=(-Wl,-z,nodelete,-z,relro,-z,now,--as-needed,--build-id "-Wl,--version-script=$root/cmake/exports.map")
"$compiler" -shared -fPIC server.cc -o server.so
echo 'extern "C" int other_function() { return 0; }' >other.cc
"$compiler" -shared -fPIC other.cc -Wl,-soname,libother.so -o libother.so

# build FILE OPTION...: makes FILE.so out of FILE.cc.
build() { "$compiler" -fPIC -c "$1.cc" -o "$1.o" && "$compiler" -shared "$1.o" -o "$1.so" "${@:2}"; }

# expect NAME TEXT: the check must refuse NAME.so, and say TEXT.
expect() {
  local output
  if output=$("$check" "$1.so" "$work/server.so" "$1.o" 2>&1); then
    echo "FAILED: $1 was accepted"
    failures=1
  elif ! grep -qF -- "$2" <<<"$output"; then
    printf 'FAILED: %s was refused for another reason:\n%s\n' "$1" "$output"
    failures=1
  else
    echo "ok: $1 is refused"
  fi
}

# variant NAME TEXT CODE [OPTION...]: good.cc with more code, which must be refused.
variant() {
  cat good.cc - >"$1.cc" <<<"$3"
  build "$1" "${@:4}"
  expect "$1" "$2"
}

build good "${rules[@]}"
if "$check" good.so server.so good.o; then echo "ok: good is accepted"; else echo "FAILED: good was refused"; failures=1; fi

variant no_version_script 'exported symbols' '' "${rules[0]}"
variant extra_export 'exported symbols' 'extern "C" { int _mysql_extra_; }' "${rules[@]}"
sed 's/, \*plugin_registry_service//' good.cc >missing_service.cc
build missing_service "${rules[@]}"
expect missing_service 'exported symbols'
variant unknown_symbol 'unknown_function' 'int unknown_function(); int f() { return unknown_function(); }
extern "C" void *other_service; int (*g)() = f;' "${rules[@]}"
variant unexpected_library 'unexpected library' 'extern "C" int other_function(); int (*volatile g)() = other_function;' \
  "${rules[@]}" -Wl,--no-as-needed ./libother.so
variant unloadable 'NODELETE' '' -Wl,-z,relro,-z,now,--build-id "${rules[1]}"
variant lazy_binding 'bound at load' '' -Wl,-z,nodelete,-z,relro,-z,lazy,--build-id "${rules[1]}"
variant writable_relocations 'relro' '' -Wl,-z,nodelete,-z,norelro,-z,now,--build-id "${rules[1]}"
variant text_relocations 'text relocations' 'asm(".text; .quad server_function");' "${rules[@]}" -Wl,-z,notext
variant with_soname 'soname' '' "${rules[@]}" -Wl,-soname,x.so
variant without_build_id 'build id' '' -Wl,-z,nodelete,-z,relro,-z,now,--build-id=none "${rules[1]}"
variant static_destructor 'static object has a destructor' 'struct S { ~S(); } s; S::~S() { server_function(); }' "${rules[@]}"
variant thread_destructor 'thread_local object has a destructor' \
  'struct S { ~S(); }; S::~S() { server_function(); } thread_local S s; S *touch() { return &s; }' "${rules[@]}"

exit "$failures"
