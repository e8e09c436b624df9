#!/usr/bin/env bash
# usage: build_times.sh BUILD_FOLDER   The ten files that took longest, each as it was last built, from ninja's log. Its
# seconds are on the clock: on a busy computer they are more than the compiler's own, and with a warm compiler cache fewer.
set -eu
log=$1/.ninja_log
[ -f "$log" ] || exit 0
awk -F '\t' '
  /^#/ || NF < 5 { next }
  { seconds[$4] = ($2 - $1) / 1000; command[$4] = $1 " " $2 " " $5 }
  END {
    for (name in seconds) {
      if (counted[command[name]]++) continue  # one command may have several outputs
      if (name ~ /\.(o|gch)$/) printf "%8.1f s  %s\n", seconds[name], name
    }
  }' "$log" | sort -rn -k 1 | awk '
  NR <= 10 { sub(/CMakeFiles\/[^\/]*\.dir\//, ""); sub(/\.o$/, ""); print }'
