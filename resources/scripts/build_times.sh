#!/usr/bin/env bash
# usage: build_times.sh BUILD_FOLDER   Says where a build's time went, from ninja's log: every output as it was last built.
# A second is one of a compiler's running time; with no more compilers than cores that is about a CPU-second.
set -eu
log=$1/.ninja_log
[ -f "$log" ] || exit 0
awk -F '\t' '
  /^#/ || NF < 5 { next }
  { seconds[$4] = ($2 - $1) / 1000; command[$4] = $1 " " $2 " " $5 }
  END {
    for (name in seconds) {
      if (counted[command[name]]++) continue  # one command may have several outputs
      total += seconds[name]
      if (name ~ /\.(o|gch)$/) printf "%8.1f s  %s\n", seconds[name], name
    }
    printf "TOTAL %d\n", total
  }' "$log" | sort -rn -k 1 | awk '
  $1 == "TOTAL" { total = $2; next }
  ++n <= 10 { sub(/CMakeFiles\/[^\/]*\.dir\//, ""); sub(/\.o$/, ""); lines = lines $0 "\n" }
  END { printf "Build: %d CPU-seconds. The slowest files:\n%s", total, lines }'
