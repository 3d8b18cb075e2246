#!/usr/bin/env bash
# Usage: tidy.sh    (part of make lint)
# Rules of style that no other tool checks. Generated files are left out, and so is this one, which has the words in it.
set -euo pipefail
cd "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/.."
readonly most_lines=700
bad=0

complain() {
  printf 'tidy: %s\n' "$*"
  bad=1
}

# The files under version control, also the new ones; those deleted and not yet committed aside.
files() {
  git ls-files --cached --others --exclude-standard -- "$@" ':!tests/tidy.sh' ':!include/*' ':!Cargo.lock' ':!LICENSE' |
    while read -r file; do if [[ -f $file ]]; then printf '%s\n' "$file"; fi; done
}

# forbid REASON EXPRESSION [FILES]
forbid() {
  local hits
  hits=$(files "${@:3}" | xargs -d '\n' -r grep -nIE -- "$2" /dev/null || true)
  [[ -z $hits ]] || complain "$1:"$'\n'"$hits"
}

forbid "a path of one machine" '(^|[^[:alnum:]_./}])/(work|root|home|tmp/sysroot)/'
forbid "the host name of a registry or mirror" '(deb|snapshot|security|ftp[.a-z]*)\.debian\.org|(archive|ports)\.ubuntu\.com|crates\.io|(pypi|pythonhosted)\.org|registry\.npmjs\.org|(repo|dev)\.mysql\.com/(apt|get)|proxy\.golang\.org'
forbid "work that isn't finished" '\b(TODO|FIXME|XXX|HACK)\b|\b(todo|unimplemented)!|#\[ignore'
# The result files of tests have what the server prints.
forbid "trailing blanks" '[[:blank:]]+$' ':!*.result' ':!*.inc'

while read -r file; do
  lines=$(wc -l <"$file")
  ((lines <= most_lines)) || complain "$file has $lines lines, more than $most_lines"
done < <(files 'src/*' 'cpp_shim/*' 'tests/*' 'benches/*' 'cmake/*' ':!*.result')

# One title per document; a # within a code block is a comment.
while read -r file; do
  titles=$(awk '/^ *```/ { code = !code } !code && /^# / { n++ } END { print n + 0 }' "$file")
  ((titles == 1)) || complain "$file has $titles titles"
done < <(files '*.md')

while read -r file; do
  if head -c 2 -- "$file" | grep -q '#!'; then
    [[ -x $file ]] || complain "$file has a #! line, but isn't executable"
  fi
done < <(files '*.sh' '*.py' '.ci/*')

# Crates are linked with GPL-2.0-only code. Each part of a licence that must be kept (AND) needs an alternative (OR, or
# the older /) that allows this; Apache-2.0 alone doesn't.
readonly allowed='(MIT|MIT-0|BSD-[23]-Clause|ISC|Zlib|Unlicense|CC0-1\.0|0BSD|Unicode-3\.0|MPL-2\.0|GPL-2\.0(-only|-or-later))'
crates=$(cargo tree --locked --workspace --all-features --edges normal,build,dev --prefix none --format '{p}|{l}') ||
  complain "cargo can't list the crates"
while IFS='|' read -r crate licence; do
  while read -r part; do
    grep -qE "(^|[ (/])$allowed($|[ )/])" <<<"$part" || complain "licence of $crate: $licence"
  done <<<"${licence// AND /$'\n'}"
done < <(sed '/^$/d; s/ (\*)$//' <<<"$crates" | sort -u)

exit "$bad"
