#!/usr/bin/env bash
# usage: format.sh [--check]   Lays out every source file as .clang-format says, or says which are not.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
command -v clang-format >/dev/null || {
  echo "clang-format is missing (Debian: apt-get install clang-format)" >&2
  exit 1
}
mapfile -d '' files < <(find kernels engine ui app tests \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' \) -print0 2>/dev/null | sort -z)
[ ${#files[@]} -gt 0 ] || {
  echo "found no source files" >&2
  exit 1
}
if [ "${1-}" != --check ]; then
  exec clang-format -i "${files[@]}"
fi
bad=0
for file in "${files[@]}"; do
  clang-format --dry-run -Werror "$file" >/dev/null 2>&1 || {
    echo "$file is not laid out as .clang-format says" >&2
    bad=1
  }
done
[ $bad = 0 ] || {
  echo "bash resources/scripts/format.sh lays them out" >&2
  exit 1
}
