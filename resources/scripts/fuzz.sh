#!/usr/bin/env bash
# Builds the fuzz targets with Clang and libFuzzer, and runs each on its kept inputs. See --help.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
# shellcheck source=resources/scripts/setup.sh
. "$root/resources/scripts/setup.sh"

usage() {
  cat <<'END'
usage: resources/scripts/fuzz.sh [--seconds N] [--jobs N] [--seed N] [TARGET...]

Runs every reader of foreign files (tests/fuzz/targets.cpp) on its kept inputs and on what libFuzzer makes of them.

  --seconds N   for each target (default: 60, or less, so that all of them take five minutes)
  --jobs N      targets at a time (default: one a core)
  --seed N      what libFuzzer begins with, to try the same inputs again (default: another each time)
  --help        this text

What breaks a target is kept in build/fuzz/findings/TARGET. Mend the reader, and keep the input, made small, in
tests/regressions/fuzz/TARGET: from then on it is a test.
END
}

seconds='' jobs=$(nproc 2>/dev/null || echo 2) seed=0 targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds | --jobs | --seed)
      [[ ${2-} =~ ^[1-9][0-9]{0,8}$ ]] || die "$1 wants a number." 2
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) die "There is no option '$1'; see --help." 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done

install_packages run test fuzz
build fuzz -- fuzz
program=$root/build/fuzz/bin/fuzz
mapfile -t lines < <(FUZZ_TARGET=list "$program")
declare -A folders
for line in "${lines[@]}"; do folders[${line%% *}]=${line#* }; done
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(printf '%s\n' "${!folders[@]}" | sort)
wanted=("${targets[@]}") targets=()
for target in "${wanted[@]}"; do
  [ -n "${folders[$target]-}" ] || die "There is no target '$target'; there are: ${!folders[*]}" 2
  case ${folders[$target]} in
    missing\ *) say "  $target: SKIPPED: ${folders[$target]#missing }" ;;
    *) targets+=("$target") ;;
  esac
done
[ ${#targets[@]} -gt 0 ] || die "There is nothing to run."
[ -n "$seconds" ] || seconds=$((300 * jobs / ${#targets[@]} < 60 ? 300 * jobs / ${#targets[@]} : 60))
say "Fuzzing ${#targets[@]} targets for $seconds s each, $jobs at a time ..."

# New inputs are kept beside the build, and begin the next run.
fuzz() {
  local target=$1 work=$root/build/fuzz/corpus/$1 findings=$root/build/fuzz/findings/$1 log folder seeds=()
  mkdir -p "$work" "$findings"
  log=$findings.log
  for folder in ${folders[$target]}; do [ ! -d "$root/tests/$folder" ] || seeds+=("$root/tests/$folder"); done
  if FUZZ_TARGET=$target "$program" -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="$findings/" "$work" "${seeds[@]}" >"$log" 2>&1; then
    say "  $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
  else
    say "  $target: FOUND $(find "$findings" -type f -newer "$program" | tr '\n' ' ')(see $log)"
    grep -m 3 -E 'ERROR|SUMMARY|not so' "$log" >&2 || tail -n 5 "$log" >&2
    return 1
  fi
}

status=0 running=()
for target in "${targets[@]}"; do
  if [ ${#running[@]} -ge "$jobs" ]; then
    wait "${running[0]}" || status=1
    running=("${running[@]:1}")
  fi
  fuzz "$target" &
  running+=($!)
done
for job in "${running[@]}"; do wait "$job" || status=1; done
exit $status
