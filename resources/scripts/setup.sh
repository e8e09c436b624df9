# What ./run, ./test and .ci/run share: packages, configuring, building. Sourced by bash; $root is the repository.
# shellcheck shell=bash
root=${root:?the folder of the repository}

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$1"
  exit "${2:-1}"
}

# The names of packages.txt in the given sections, one a line.
packages_of() {
  awk -v wanted=" $* " '
    { sub(/#.*/, ""); gsub(/[ \t\r]+$/, "") }
    /^\[.*\]$/ { on = index(wanted, " " substr($0, 2, length($0) - 2) " ") > 0; next }
    on && NF == 1 { print $1 }' "$root/packages.txt"
}

# Those of the given packages that are not installed.
missing_packages() {
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | awk -v all="$*" '
    $1 == "installed" { have[$2] = 1 }
    END { n = split(all, names, " "); for (i = 1; i <= n; i++) if (!(names[i] in have)) print names[i] }'
}

# Copies stdin to the log $1 and shows how far it is, as a line that rewrites itself on a terminal and as every tenth part
# elsewhere. $2 says which lines count: ninja's "[done/total] ..." or apt's "Unpacking" and "Setting up". Others are shown
# for ninja (compiler messages, in full) and kept for the log alone for apt.
follow() {
  local log=$1 kind=$2 line done=0 total=0 part last=0 width=80 open=0 begin=$SECONDS
  [ ! -t 2 ] || width=$(stty size <&2 2>/dev/null | cut -d' ' -f2)
  [ "${width:-0}" -gt 20 ] || width=80
  while IFS= read -r line; do
    printf '%s\n' "$line" >&8
    [[ $line != *Re-checking\ globbed\ directories* ]] || continue
    if [ "$kind" = ninja ] && [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]]; then
      done=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} line=${BASH_REMATCH[3]}
    elif [ "$kind" = apt ] && [[ $line =~ \ ([0-9]+)\ newly\ installed ]]; then
      total=$((BASH_REMATCH[1] * 2)) && continue
    elif [ "$kind" = apt ] && [[ $line =~ ^(Unpacking|Setting\ up)\  ]]; then
      done=$((done + 1)) line=${line%% (*}
    elif [ "$kind" = ninja ]; then
      [ $open = 1 ] && printf '\r\033[K' >&2 && open=0
      [ "$line" = 'ninja: no work to do.' ] || printf '%s\n' "$line" >&2
      continue
    else
      continue
    fi
    [ "$total" -gt 0 ] || continue
    [ "$done" -le "$total" ] || done=$total
    if [ -t 2 ]; then
      line="  $((done * 100 / total)) %  $line"
      printf '\r\033[K%s' "${line:0:width-1}" >&2
      open=1
    else
      part=$((done * 10 / total))
      [ $part -le $last ] || [ $SECONDS = $begin ] || {
        printf '  %d %%\n' $((part * 10)) >&2
        last=$part
      }
    fi
  done 8>"$log"
  [ $open = 0 ] || printf '\r\033[K' >&2
}

# Installs what is missing of the sections $@, or says what is missing and why it cannot.
install_packages() {
  local wanted missing as_root log apt
  mapfile -t wanted < <(packages_of "$@")
  [ ${#wanted[@]} -gt 0 ] || die "packages.txt names nothing for: $*"
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    need_libraries "$@"
    return
  fi
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [ ${#missing[@]} -gt 0 ] || return 0

  say "Stacklab needs ${#missing[@]} packages that are not installed: ${missing[*]}"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    elif command -v sudo >/dev/null && [ -t 0 ]; then
      say "Installing them needs your password (sudo apt-get install)."
      sudo -v || die "Without the password nothing can be installed. Needed: ${missing[*]}"
      as_root=(sudo)
    else
      say "They cannot be installed from here: this user is not root, and sudo is missing or wants a password that nobody can type."
      die "Ask an administrator for: apt-get install --no-install-recommends ${missing[*]}"
    fi
  fi
  mkdir -p "$root/build" || die "Cannot write to $root/build"
  log=$root/build/packages.log
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 -q)
  # Lists that are absent or old cannot name today's packages: fetch them and try once more.
  if ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || ! apt_install; then
    say "Fetching the package lists ..."
    "${apt[@]}" update >"$log" 2>&1 9>&- || {
      tail -n 5 "$log" >&2
      die "apt-get update failed (is there a network?); its words are in $log"
    }
    apt_install || {
      grep -E '^(E|W): ' "$log" >&2 || tail -n 10 "$log" >&2
      die "apt-get could not install them; its words are in $log"
    }
  fi
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [ ${#missing[@]} -eq 0 ] || die "Still not installed after apt-get: ${missing[*]} (see $log)"
}

# With $apt, $missing and $log of install_packages.
apt_install() {
  say "Installing (the first time takes some minutes) ..."
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null 2>&1 9>&- | follow "$log" apt
}

# On other systems nobody knows the names of the packages; the comments of packages.txt say what they are.
need_libraries() {
  local tool sections=" $* "
  for tool in cmake ninja; do
    command -v "$tool" >/dev/null && continue
    say "This system has no apt-get, so nothing was installed, and $tool is missing. Stacklab needs (Debian's names):"
    awk -v wanted="$sections" '
      /^\[.*\]/ { on = index(wanted, " " substr($0, 2, index($0, "]") - 2) " ") > 0; next }
      on && /^[a-z0-9]/ { print "  " $0 }' "$root/packages.txt" >&2
    die "Install these with your system's package manager and start again."
  done
  others=1
}

# Prints how many compilers may run at once: one a core, and memory for each.
parallel_jobs() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 2)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 700000) }' /proc/meminfo 2>/dev/null || echo "$cores")
  [ "${memory:-0}" -ge 1 ] || memory=1
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$((cores < memory ? cores : memory))}"
}

# What somebody who can mend it must know, in one file.
report() {
  local preset=$1 log=$2 file=$root/build/$1/report.txt
  {
    echo "Stacklab $(git -C "$root" describe --always --dirty 2>/dev/null || echo 'without git'), preset $preset"
    sed -n 's/^PRETTY_NAME=//p' /etc/os-release 2>/dev/null
    uname -srm
    grep -m 1 '^model name' /proc/cpuinfo 2>/dev/null
    grep -E '^Mem(Total|Available)' /proc/meminfo 2>/dev/null
    "${CXX:-c++}" --version 2>&1 | head -n 1
    cmake --version 2>&1 | head -n 1
    echo
    sed 's/\x1b\[[0-9;]*[mK]//g' "$log"
  } >"$file"
  say ""
  say "The build failed. If the messages above do not help: $(git -C "$root" remote get-url origin 2>/dev/null | sed 's|//[^/@]*@|//|; s/^/report it to the makers at /' | grep . || echo 'report it to the makers'), with the file"
  say "  $file"
}

# Sets $cpu_seconds to those of all that this shell has started and waited for. Not for a subshell, which has started nothing.
count_cpu_seconds() {
  times >"$1"
  cpu_seconds=$(awk 'NR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/)
    printf "%d", u[1] * 60 + u[2] + s[1] * 60 + s[2] }' "$1")
}

# build PRESET OPTIONS... -- TARGETS...   Configures where needed, then builds the targets (none: everything), and sets
# $build_cpu_seconds.
build() {
  local preset=$1 dir=$root/build/$1 options=() before seconds
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  mkdir -p "$dir" || die "Cannot write to $dir"
  # One build at a time in a folder: others wait. The lock goes when this process, or what it becomes, closes it.
  exec 9>"$dir/.lock"
  flock -n 9 || {
    say "Another build is at work in $dir; waiting for it ..."
    flock 9
  }
  before=$SECONDS

  local home='' fresh=() option name value configured=0
  [ ! -f "$dir/CMakeCache.txt" ] || home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$dir/CMakeCache.txt")
  if [ -n "$home" ] && [ "$home" != "$root" ]; then
    fresh=(--fresh)  # the folder was moved or copied
  elif [ -f "$dir/build.ninja" ] && [ ! "$root/CMakePresets.json" -nt "$dir/build.ninja" ]; then
    configured=1
    for option in "${options[@]}"; do
      name=${option#-D} value=${option#*=}
      grep -q "^${name%%=*}:[A-Z]*=$value\$" "$dir/CMakeCache.txt" 2>/dev/null || configured=0
    done
  fi
  if [ $configured = 0 ]; then
    say "Configuring ..."
    (cd "$root" && cmake "${fresh[@]}" --preset "$preset" "${options[@]}") >"$dir/configure.log" 2>&1 9>&- || {
      cat "$dir/configure.log" >&2
      [ -z "${others-}" ] || say "This system has no apt-get; packages.txt says what each library is."
      report "$preset" "$dir/configure.log"
      exit 1
    }
    touch "$dir/build.ninja"
  fi

  local targets=() colour=()
  count_cpu_seconds "$dir/.times"
  build_cpu_seconds=-$cpu_seconds
  [ $# -eq 0 ] || targets=(--target "$@")
  [ ! -t 2 ] || colour=(CLICOLOR_FORCE=1)
  [ -f "$dir/.ninja_log" ] || say "Building (the first time takes some minutes) ..."
  env "${colour[@]}" NINJA_STATUS='[%f/%t] ' cmake --build "$dir" --parallel "$(parallel_jobs)" "${targets[@]}" 2>&1 9>&- | follow "$dir/build.log" ninja || {
    report "$preset" "$dir/build.log"
    exit 1
  }
  exec 9>&-
  count_cpu_seconds "$dir/.times"
  build_cpu_seconds=$((build_cpu_seconds + cpu_seconds))
  seconds=$((SECONDS - before))
  [ $seconds -lt 5 ] || say "Built in $((seconds / 60)) min $((seconds % 60)) s ($build_cpu_seconds CPU-seconds)."
}
