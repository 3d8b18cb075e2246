#!/usr/bin/env bash
# Usage: provision.sh
# Prints the path of a private tree with MySQL 9.7: server, clients, test suite, source and headers.
# The first run makes the tree from the packages in Debian's unstable suite, later ones only find it.
#
# The packages need a newer C library than the host may have. So they are unpacked rather than installed, and
# every program is told to use the dynamic loader and the libraries of its own tree; no root is needed.
#
# Trees are kept in the cache folder under <version>-<hash of this file>, until somebody removes them. To get a
# newer MySQL of the same series, remove the tree and run this again.
set -euo pipefail
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
# shellcheck source=SCRIPTDIR/lib.sh
source "$here/lib.sh"

readonly series=9.7
readonly packages=(mysql-server-core mysql-client-core mysql-testsuite mysql-source libssl-dev)
readonly steps=6
readonly disk_gib=3 # while it unpacks; a finished tree has 1.7 GiB

step_number=0
step() {
  step_number=$((step_number + 1))
  say "[$step_number/$steps] $*"
}

# Prints the newest finished tree of this recipe, or fails. A folder with its final name is complete.
find_tree() {
  local found
  found=$(compgen -G "$cache/$series.*-$recipe" | sort -V | tail -n 1) && [[ -n $found ]] && printf '%s\n' "$found"
}

# -------------------------------------------------------------------------------------------------
# Where the packages come from

# The host's own mirror, if the host is Debian. Asking apt for the addresses it would fetch covers every format
# of its configuration, and needs neither the network nor root.
host_mirror() {
  local codename
  # shellcheck disable=SC1091 # a file of the host
  codename=$(source /etc/os-release && [[ $ID == debian ]] && printf '%s' "${VERSION_CODENAME:-sid}") || return 0
  # A host whose sources apt can't read has no mirror of its own: the default one is used.
  { apt-get update --print-uris -o Dir::State::lists="$work/lists" -o Debug::NoLocking=true 2>>"$log" || true; } |
    sed -nE "s#^'((http|https|ftp|file|copy|mirror)[a-z+]*:.*)/dists/($codename|oldstable|stable|testing|unstable|sid)/InRelease'.*#\\1#p" |
    sed -n 1p
}

# Debian's default mirror, out of the package that knows it.
default_mirror() {
  "$here/packages.sh" mirror
  sed -nE 's/^DEF_MIRROR="(.*)"$/\1/p' /usr/sbin/debootstrap
}

find_mirror() {
  mirror=${THREAD_POOL_DEBIAN_MIRROR-}
  [[ -n $mirror ]] || mirror=$(host_mirror)
  [[ -n $mirror ]] || mirror=$(default_mirror)
  [[ -n $mirror ]] || die "no Debian mirror is known: name one in THREAD_POOL_DEBIAN_MIRROR"
}

# An apt of its own: empty package state, one source. It takes over the host's settings for fetching (proxies and
# the like), but not its hooks, which would act on the host.
write_apt_configuration() {
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg apt=$work/apt
  mkdir -p "$apt"/{empty,lists/partial,archives/partial,sources}
  : >"$apt/status"
  cat >"$apt/sources/unstable.sources" <<EOF
Types: deb
URIs: $mirror
Suites: unstable
Components: main
Signed-By: $keyring
EOF
  apt-config dump | sed -n '/^Acquire::/p' >"$apt/apt.conf"
  cat >>"$apt/apt.conf" <<EOF
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "$apt/empty";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$apt/empty";
APT::Architecture "$(dpkg --print-architecture)";
APT::Architectures { "$(dpkg --print-architecture)"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
// The Release file of a frozen mirror is past its date. Its signature is still checked.
Acquire::Check-Valid-Until "false";
Debug::NoLocking "true";
EOF
  export APT_CONFIG=$apt/apt.conf
}

read_package_lists() {
  apt-get -q update >>"$log" 2>&1 && return
  if grep -qE 'NO_PUBKEY|EXPKEYSIG' "$log"; then
    die "the host's debian-archive-keyring is too old to check the signature of Debian unstable: install a newer one (log: $log)"
  fi
  die "the package lists of Debian unstable can't be read: there is no network, or the mirror doesn't carry them (name another in THREAD_POOL_DEBIAN_MIRROR; log: $log)"
}

# All packages that come from MySQL's source must be of one version, since the module is built from one for the other.
# A rebuild of the binaries (+b1) doesn't count.
find_version() {
  local package candidate all=
  for package in "${packages[@]}"; do
    [[ $package == mysql-* ]] || continue
    # apt-cache fails for a package that it doesn't know: that is what the next line says.
    candidate=$({ apt-cache show --no-all-versions "$package" 2>>"$log" || true; } | awk '$1 == "Version:" { print $2 }')
    [[ -n $candidate ]] || die "Debian unstable has no package $package for $(dpkg --print-architecture): give MYSQL_SOURCE_DIR and MYSQL_BUILD_DIR of an own build"
    all+="$package ${candidate%+b*}"$'\n'
  done
  [[ $(awk 'NF { print $2 }' <<<"$all" | sort -u | wc -l) == 1 ]] ||
    die "Debian unstable is between two versions of MySQL, try again in a few hours: $(xargs <<<"$all")"
  version=${candidate%%-*}
  [[ $version == "$series".* ]] || die "Debian unstable has MySQL $version, but this module is for $series: give MYSQL_SOURCE_DIR and MYSQL_BUILD_DIR of an own build"
}

download() {
  apt-get -q -y install --download-only "${packages[@]}" >>"$log" 2>&1 ||
    die "the download of MySQL $version failed (no network, or a full disk?); log: $log"
}

# -------------------------------------------------------------------------------------------------
# The tree: usr/ (programs, libraries, plugins, test suite), source/ with builddir/, headers/, bin/

# Unpacks everything but the source, then keeps what is used. Each archive is dropped at once to save disk.
unpack_programs() {
  local stage=$work/stage archive
  mkdir -p "$stage" "$new/usr/bin" "$new/usr/sbin" "$new/usr/lib" "$new/usr/share"
  for archive in "$work"/apt/archives/*.deb; do
    [[ $archive == */mysql-source_* ]] && continue
    dpkg-deb --fsys-tarfile "$archive" | tar -x -C "$stage" --no-same-owner --exclude='./usr/share/doc' --exclude='./usr/share/man'
    rm "$archive"
  done
  triplet=$(cd "$stage/usr/lib" && compgen -G '*-linux-gnu*')
  mv "$stage"/usr/bin/{my*,perror,ibd2sdi,innochecksum} "$new/usr/bin"
  mv "$stage/usr/sbin/mysqld" "$new/usr/sbin"
  mv "$stage"/usr/lib/{mysql,mysql-test} "$new/usr/lib"
  mv "$stage/usr/share/mysql" "$new/usr/share"
  mkdir "$new/usr/lib/$triplet" "$new/headers"
  mv "$stage/usr/lib/$triplet"/*.so.* "$new/usr/lib/$triplet"
  mv "$stage/usr/include/openssl" "$new/headers"
  # Debian keeps OpenSSL's configuration.h apart, per architecture.
  cp "$stage/usr/include/$triplet"/openssl/* "$new/headers/openssl"
  rm -rf "$stage"
}

# The package holds a tar file with the source and a configured build folder. Most of the size are
# the tests, which the tree already has from the test suite's package: link those.
unpack_source() {
  local archive entry
  archive=$(compgen -G "$work/apt/archives/mysql-source_*.deb")
  mkdir "$new/source"
  dpkg-deb --fsys-tarfile "$archive" | tar -xO ./usr/src/mysql/mysql-source.tar.gz |
    tar -xz -C "$new/source" --strip-components=1 --no-same-owner --exclude='*/mysql-test/'{suite,std_data,r,t}
  rm "$archive"
  for entry in suite std_data r t; do
    ln -s "../../usr/lib/mysql-test/$entry" "$new/source/mysql-test/$entry"
  done
}

is_elf() { [[ $(head -c 4 -- "$1" | tr -d '\0') == $'\x7fELF' ]]; }

# An RPATH in the program, unlike a RUNPATH, also serves the libraries and the plugins that it loads. So only
# programs are changed.
bind_programs() {
  local libraries=$tree/usr/lib/$triplet program
  for program in "$new"/usr/sbin/mysqld "$new"/usr/bin/* "$new"/usr/lib/mysql-test/bin/*; do
    if [[ -f $program && ! -L $program ]] && is_elf "$program"; then
      patchelf --set-interpreter "$libraries/${loader##*/}" --force-rpath --set-rpath "$libraries" "$program" >>"$log" 2>&1 ||
        die "patchelf can't change $program; log: $log"
    fi
  done
  # mysql-test-run looks for its helpers beside the ordinary programs.
  for program in "$new"/usr/lib/mysql-test/bin/*; do
    [[ -e $new/usr/bin/${program##*/} ]] || ln -s "../lib/mysql-test/bin/${program##*/}" "$new/usr/bin/"
  done
}

# mysqld as a user starts it. Debian's default for secure_file_priv is a folder that only the installed package has, and
# the server doesn't start without it. Options about option files must stay in front.
write_server_command() {
  mkdir "$new/bin"
  cat >"$new/bin/mysqld" <<'EOF'
#!/bin/bash
first=()
while [[ ${1-} == --no-defaults || ${1-} == --defaults-* || ${1-} == --print-defaults ]]; do
  first+=("$1")
  shift
done
exec "${0%/bin/mysqld}/usr/sbin/mysqld" "${first[@]}" --secure-file-priv=NULL "$@"
EOF
  chmod 755 "$new/bin/mysqld"
}

# The programs can't start before the tree has its final name, except by naming loader and libraries.
run_unbound() { "$loader" --library-path "$new/usr/lib/$triplet" "$@"; }

# The error numbers are generated during a build of the server; its source package doesn't have them.
generate_error_headers() {
  run_unbound "$new/usr/lib/mysql-test/bin/comp_err" --out-dir="$work/" \
    --in-file-errlog="$new/source/share/messages_to_error_log.txt" \
    --in-file-toclient="$new/source/share/messages_to_clients.txt" \
    --header-file="$new/headers/mysqld_error.h" \
    --name-file="$new/headers/mysqld_ername.h" \
    --errmsg-file="$new/headers/mysqld_errmsg.h" >>"$log" 2>&1 ||
    die "the headers with MySQL's error numbers can't be generated; log: $log"
}

check_versions() {
  local server source
  server=$(run_unbound "$new/usr/sbin/mysqld" --no-defaults --version 2>>"$log") || die "the unpacked server doesn't run on this host; log: $log"
  server=$(sed -nE 's/.* Ver ([0-9.]+).*/\1/p' <<<"$server")
  source=$(sed -nE 's/^#define MYSQL_SERVER_VERSION *"([0-9.]+).*/\1/p' "$new/source/builddir/include/mysql_version.h")
  [[ $server == "$version" && $source == "$version" ]] ||
    die "the packages of MySQL $version hold a server $server and a source $source: they can't be used together"
  printf '%s\n' "$version" >"$new/version"
}

require_disk() {
  local free
  free=$(df --output=avail -B 1G "$cache" | tail -n 1)
  ((free >= disk_gib)) || die "$cache has less than $disk_gib GiB of free disk: make room, or name another folder in THREAD_POOL_CACHE"
}

make_tree() {
  require_disk
  step "reading the package lists of Debian unstable"
  find_mirror
  write_apt_configuration
  read_package_lists
  find_version
  tree=$cache/$version-$recipe
  step "downloading MySQL $version (about 860 MB)"
  download
  step "unpacking programs and test suite"
  unpack_programs
  step "unpacking the source"
  unpack_source
  step "binding the programs to their own libraries"
  loader=$(compgen -G "$new/usr/lib/$triplet/ld-linux*.so.*")
  bind_programs
  write_server_command
  step "generating headers and checking versions"
  generate_error_headers
  check_versions
  chmod -R a+rX "$new"
  mv -T "$new" "$tree"
  "$tree/bin/mysqld" --version >>"$log" 2>&1 || {
    rm -rf "$tree"
    die "the server doesn't run from $cache (is it mounted noexec?): name another folder in THREAD_POOL_CACHE; log: $log"
  }
}

cache=$(cache_dir)
require_no_space "$cache"
recipe=$(sha256sum "$here/provision.sh" | cut -c 1-10)

if ! find_tree; then
  umask 022
  "$here/packages.sh" provision
  mkdir -p "$cache" 2>/dev/null || die "the cache folder $cache can't be made: name another in THREAD_POOL_CACHE"
  exec 9>"$cache/lock" || die "the cache folder $cache isn't writable: name another in THREAD_POOL_CACHE"
  flock -n 9 || {
    say "waiting for another run that provisions into $cache"
    flock 9
  }
  # The other run may have made it.
  if ! find_tree; then
    # Holding the lock, whatever is left there is of a run that was killed.
    rm -rf "$cache"/unfinished.*
    work=$(mktemp -d "$cache/unfinished.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    new=$work/tree
    log=$cache/provision.log
    : >"$log"
    make_tree
    say "MySQL $version is in $tree"
    others=$(compgen -G "$cache/$series.*-*" | grep -vxF "$tree" | xargs) || true
    [[ -z $others ]] || say "trees of older recipes can be removed if nobody uses them: $others"
    printf '%s\n' "$tree"
  fi
fi
