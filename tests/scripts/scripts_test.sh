#!/usr/bin/env bash
# shellcheck disable=SC2016  # what invented tools do is written in single quotes
# usage: scripts_test.sh PART ROOT   Tests ./run, ./test and .ci/run; PART is the name of a function below without test_.
set -uo pipefail
part=$1 root=$2
failures=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/stacklab scripts XXXXXX") # a space, as in some people's folders
trap 'rm -rf "$scratch"' EXIT
house="$scratch/a house" tools="$scratch/tools"

fail() {
  echo "FAILED: $1"
  printf '%s\n' "$output" | sed 's/^/    | /'
  failures=$((failures + 1))
}
# call COMMAND...: output and status of it, without input.
call() {
  output=$("$@" 2>&1 </dev/null)
  status=$?
}
expect_status() { [ "$status" = "$1" ] || fail "$2: exit code $status, not $1"; }
expect_says() { case $output in *"$1"*) ;; *) fail "$2: does not say '$1'" ;; esac; }
expect_silent_on() { case $output in *"$1"*) fail "$2: says '$1'" ;; esac; }
expect_called() { grep -qF -- "$1" "$scratch/calls" || fail "$2: no call '$1' among: $(cat "$scratch/calls")"; }
expect_not_called() { ! grep -qF -- "$1" "$scratch/calls" || fail "$2: a call '$1' among: $(cat "$scratch/calls")"; }

# tool NAME: a program that notes its call and then does what stdin says.
tool() {
  rm -f "$tools/$1" # a link would lead to the real one
  {
    echo '#!/usr/bin/env bash'
    printf 'scratch=%q house=%q\n' "$scratch" "$house"
    printf 'echo "%s $*" >>"$scratch/calls"\n' "$1"
    cat
  } >"$tools/$1"
  chmod +x "$tools/$1"
}

# A copy of the scripts, tools that pretend, and only those and coreutils on the PATH.
make_house() {
  mkdir -p "$house/.ci" "$house/resources" "$house/experiments" "$tools"
  cp "$root/run" "$root/test" "$root/packages.txt" "$root/CMakePresets.json" "$house/"
  cp "$root/.ci/run" "$house/.ci/"
  cp -r "$root/resources/scripts" "$house/resources/"
  touch "$house/experiments/first-run.json"
  : >"$scratch/calls"
  local name
  for name in awk bash cat cmp cut dirname env find flock grep head ls mkdir nproc printf readlink rm sed sleep sort stty tail timeout touch tr true uname; do
    ln -sf "$(type -P $name)" "$tools/$name"
  done
  # Everything is installed but what the file "absent" names; apt-get install empties it.
  tool dpkg-query <<'END'
shift 3
for name; do grep -qx "$name" "$scratch/absent" 2>/dev/null || echo "installed $name"; done
END
  tool apt-get <<'END'
case " $* " in
  *" update "*) rm -f "$scratch/stale"; exit "$(cat "$scratch/update_status" 2>/dev/null || echo 0)" ;;
  *" install "*)
    [ ! -f "$scratch/stale" ] || { echo "E: Unable to locate package ccache"; exit 100; }
    echo "0 upgraded, 1 newly installed, 0 to remove"
    echo "Unpacking ccache (4.7) ..."
    echo "Setting up ccache (4.7) ..."
    : >"$scratch/absent" ;;
esac
END
  tool id <<<'cat "$scratch/uid" 2>/dev/null || echo 0'
  tool git <<<'exit 1'
  tool c++ <<<'echo c++ 12'
  tool cmake <<'END'
case " $* " in
  *" --preset "*)
    [ ! -f "$scratch/no_configure" ] || { echo "Could not find Qt6"; exit 1; }
    for preset in release asan; do case " $* " in *" $preset "*) dir=$house/build/$preset ;; esac; done
    mkdir -p "$dir/bin"
    { echo "CMAKE_HOME_DIRECTORY:INTERNAL=$house"; for word; do case $word in -D*) word=${word#-D}; echo "${word%%=*}:BOOL=${word#*=}" ;; esac; done; } >"$dir/CMakeCache.txt"
    touch "$dir/build.ninja" ;;
  *" --build "*)
    touch "$2/.ninja_log"
    echo "[1/2] Building CXX object a.o"
    [ ! -f "$scratch/no_build" ] || { echo "FAILED: b.o"; echo "b.cpp:1: error: expected ;"; exit 1; }
    echo "[2/2] Linking" ;;
esac
END
  mkdir -p "$house/build/release/bin"
  local program
  for program in stacklab stacklab-workbench; do
    tool $program <<'END'
case " $* " in *" --check-display "*) [ ! -f "$scratch/display_status" ] || kill -ABRT $$; exit 0 ;; esac
printf '<%s>' "$@"
exit "$(cat "$scratch/program_status" 2>/dev/null || echo 0)"
END
    mv "$tools/$program" "$house/build/release/bin/"
  done
}
# in_house SCRIPT ARGUMENTS...: from a folder elsewhere, with the pretended tools alone.
in_house() {
  local script=$1
  shift
  : >"$scratch/calls"
  cd /
  call env -i PATH="$tools" HOME="$scratch" "${environment[@]}" "$house/$script" "$@"
}
environment=(LC_ALL=C)

test_usage() {
  local script
  for script in run test; do
    call "$root/$script" --help
    expect_status 0 "$script --help"
    expect_says "usage: ./$script" "$script --help"
    [ -x "$root/$script" ] || fail "$script is not executable"
  done
  [ -x "$root/.ci/run" ] || fail ".ci/run is not executable"
  call "$root/run" --heedless
  expect_status 2 "an unknown option of run"
  expect_says "--heedless" "an unknown option of run"
  call "$root/test" --preset fast
  expect_status 2 "an unknown preset"
  expect_says "asan" "an unknown preset"
}

test_syntax() {
  local scripts=("$root/run" "$root/test" "$root/.ci/run" "$root"/resources/scripts/*.sh "$root"/tests/scripts/*.sh) script
  for script in "${scripts[@]}"; do
    call bash -n "$script"
    expect_status 0 "bash -n $script"
  done
  if command -v shellcheck >/dev/null; then
    cd "$root" || exit 1
    call shellcheck -x "${scripts[@]}"
    expect_status 0 "shellcheck"
  elif [ $failures = 0 ]; then
    echo "shellcheck is not installed: syntax alone was checked"
    exit 77
  fi
}

test_packages() {
  local bad
  output=$(sed 's/#.*//; s/[[:space:]]*$//; /^$/d; /^\[[a-z]*\]$/d' "$root/packages.txt")
  bad=$(printf '%s\n' "$output" | grep -vE '^[a-z0-9][a-z0-9.+-]+$')
  [ -z "$bad" ] || fail "packages.txt has a line that is no package: $bad"
  bad=$(printf '%s\n' "$output" | sort | uniq -d)
  [ -z "$bad" ] || fail "packages.txt has a package twice: $bad"
  bad=$(grep -vE '^(#.*|\[(run|test|ci|fuzz)\]|[^ #]+ +# .*|)$' "$root/packages.txt")
  [ -z "$bad" ] || fail "packages.txt does not say what for: $bad"

  make_house
  in_house run --build
  expect_status 0 "nothing missing"
  expect_not_called apt-get "nothing missing"

  echo ccache >"$scratch/absent"
  in_house run --build
  expect_status 0 "ccache missing, root"
  expect_says "ccache" "ccache missing, root"
  expect_called "--no-install-recommends ccache" "ccache missing, root"
  [ -s "$scratch/absent" ] && fail "ccache was not installed"

  echo ccache >"$scratch/absent"
  : >"$scratch/stale"
  in_house run --build
  expect_status 0 "old package lists"
  expect_called " update" "old package lists"

  echo ccache >"$scratch/absent"
  : >"$scratch/stale"
  echo 100 >"$scratch/update_status"
  in_house run --build
  expect_status 1 "no network"
  expect_says "apt-get update failed" "no network"
  rm -f "$scratch/update_status" "$scratch/stale"

  echo 1000 >"$scratch/uid"
  in_house run --build
  expect_status 1 "not root and no sudo"
  expect_says "apt-get install --no-install-recommends ccache" "not root and no sudo"
  expect_not_called apt-get "not root and no sudo"

  tool sudo <<<'[ "$1" = -n ] && shift; exec "$@"'
  in_house run --build
  expect_status 0 "not root, sudo without a password"
  expect_called "sudo -n env" "not root, sudo without a password"

  echo ccache >"$scratch/absent"
  tool sudo <<<'exit 1'
  in_house run --build
  expect_status 1 "not root, sudo wants a password and there is no terminal"
  expect_says "Ask an administrator" "not root, sudo wants a password and there is no terminal"
  rm -f "$scratch/uid" "$scratch/absent"

  echo clang-format >"$scratch/absent"
  in_house run --build
  expect_status 0 "what only .ci/run needs is missing"
  expect_not_called apt-get "what only .ci/run needs is missing"
  rm -f "$scratch/absent"

  rm "$tools/dpkg-query"
  in_house run --build
  expect_status 1 "another system without ninja"
  expect_says "libsqlitecpp-dev" "another system without ninja"
  expect_silent_on "libgtest-dev" "another system without ninja"
  tool ninja <<<''
  in_house run --build
  expect_status 0 "another system with all there"
  : >"$scratch/no_configure"
  rm -f "$house/build/release/build.ninja"
  in_house run --build
  expect_status 1 "another system without Qt"
  expect_says "Could not find Qt6" "another system without Qt"
  expect_says "packages.txt" "another system without Qt"
}

test_build() {
  make_house
  in_house run --build
  expect_status 0 "first build"
  expect_called "cmake --preset release" "first build"
  expect_silent_on "[1/2]" "first build"
  expect_called "--target stacklab stacklab-workbench" "first build"
  in_house run --build
  expect_not_called "cmake --preset" "second build"
  expect_silent_on "Configuring" "second build"
  touch -d '+1 minute' "$house/CMakePresets.json"
  in_house run --build
  expect_called "cmake --preset release" "changed presets"
  touch -d '-1 hour' "$house/CMakePresets.json"
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else" >"$house/build/release/CMakeCache.txt"
  in_house run --build
  expect_called "cmake --fresh --preset release" "a folder that was moved"

  : >"$scratch/no_build"
  in_house run --build
  expect_status 1 "a build that fails"
  expect_says "b.cpp:1: error: expected ;" "a build that fails"
  expect_says "$house/build/release/report.txt" "a build that fails"
  grep -q 'expected ;' "$house/build/release/report.txt" || fail "the report lacks the error"
  rm -f "$scratch/no_build"

  # Two at once: while one holds the lock, the other waits for it.
  local holder
  mkfifo "$scratch/go"
  (
    flock 9
    read -r _ <"$scratch/go"
  ) 9>"$house/build/release/.lock" &
  holder=$!
  while flock -n "$house/build/release/.lock" true; do sleep 0.01; done
  cd /
  : >"$scratch/second"
  env -i PATH="$tools" HOME="$scratch" "$house/run" --build >"$scratch/second" 2>&1 </dev/null &
  local second=$!
  while ! grep -q 'Another build is at work' "$scratch/second"; do
    kill -0 $second 2>/dev/null || break
    sleep 0.01
  done
  output=$(cat "$scratch/second")
  expect_says "waiting for it" "two builds at once"
  expect_silent_on "Ready" "two builds at once"
  echo go >"$scratch/go"
  wait $holder
  wait $second
  status=$?
  output=$(cat "$scratch/second")
  expect_status 0 "two builds at once"
  expect_says "Ready" "two builds at once"
}

test_run() {
  make_house
  local first="$house/experiments/first-run.json" workspace="$house/workspace"
  in_house run
  expect_status 0 "no display"
  expect_says "no display" "no display"
  expect_says "<train><$first><--workspace><$workspace><--resume><--fallback-corpus><tinyworld>" "no display"
  environment=(DISPLAY=:7)
  in_house run
  expect_says "<--workspace><$workspace><--first-run><$first><--fallback-corpus><tinyworld>" "a display"
  in_house run -- --size "100 x 100"
  expect_says "<tinyworld><--size><100 x 100>" "arguments for the workbench"
  in_house run --headless -- --max-steps 5
  expect_says "<train>" "--headless"
  expect_says "<--max-steps><5>" "--headless"
  environment=(WAYLAND_DISPLAY=wayland-0)
  in_house run
  expect_says "<--first-run>" "a Wayland display"
  environment=(DISPLAY=:7 STACKLAB_WORKSPACE="$scratch/elsewhere")
  in_house run
  expect_says "<--workspace><$scratch/elsewhere>" "another workspace"
  echo 3 >"$scratch/program_status"
  in_house run
  expect_status 3 "the program's exit code"
  rm "$scratch/program_status"
  # Qt aborts where it cannot open a display; bash must not add words of its own.
  echo abort >"$scratch/display_status"
  in_house run
  expect_status 0 "a display that cannot be opened"
  expect_says "(:7) cannot be opened" "a display that cannot be opened"
  expect_silent_on "bort" "a display that cannot be opened"
  expect_says "<train>" "a display that cannot be opened"
}

test_test() {
  make_house
  # ctest leaves results as the file "results" says: tests, failures, skipped, exit code.
  tool ctest <<'END'
read -r tests failures skipped code <"$scratch/results"
while [ "$1" != --output-junit ]; do shift; done
printf '<?xml version="1.0"?>\n<testsuite name="x"\n\ttests="%s"\n\tfailures="%s"\n\tdisabled="0"\n\tskipped="%s"\n\ttime="1"\n>\n<testcase name="a" tests="99"/></testsuite>\n' "$tests" "$failures" "$skipped" >"$2"
echo "tests passed out of $tests"
exit "$code"
END
  echo "7 0 2 0" >"$scratch/results"
  in_house test
  expect_status 0 "all pass"
  [ "${output##*$'\n'}" = "5 passed, 0 failed, 2 skipped" ] || fail "the last line does not count"
  expect_called "ctest --preset release" "all pass"
  expect_called "-DSTACKLAB_TESTS=ON" "all pass"
  expect_not_called "-DSTACKLAB_WERROR" "without CI"
  echo "7 1 0 8" >"$scratch/results"
  in_house test -R 'a b'
  expect_status 8 "one fails"
  [ "${output##*$'\n'}" = "6 passed, 1 failed, 0 skipped" ] || fail "the last line does not count failures"
  expect_called "-R a b" "arguments for ctest"
  echo "2 0 2 0" >"$scratch/results"
  in_house test
  expect_status 1 "all skipped"
  expect_says "No test ran" "all skipped"
  echo "0 0 0 0" >"$scratch/results"
  in_house test
  expect_status 1 "no tests"
  echo "1 0 0 0" >"$scratch/results"
  environment=(CI=true)
  in_house test
  expect_called "-DSTACKLAB_WERROR=ON" "with CI"
  in_house test --preset asan
  expect_status 0 "another preset"
  expect_called "ctest --preset asan" "another preset"
  : >"$scratch/no_build"
  in_house test
  expect_status 1 "a build that fails"
  expect_not_called ctest "a build that fails"
  rm "$scratch/no_build"
  environment=()

  # .ci/run checks the layout first, then does what ./test does.
  mkdir -p "$house/engine/a b"
  touch "$house/engine/a b/c.cpp"
  rm "$house/build/release/CMakeCache.txt"
  tool clang-format <<<'exit 0'
  printf 'echo "fuzz.sh $*" >>%q\n' "$scratch/calls" >"$house/resources/scripts/fuzz.sh"
  in_house .ci/run
  expect_status 0 ".ci/run"
  expect_called "-DSTACKLAB_WERROR=ON" ".ci/run"
  expect_called "fuzz.sh --seconds 60 --jobs 2" ".ci/run"
  [ "${output##*$'\n'}" = "1 passed, 0 failed, 0 skipped" ] || fail ".ci/run: the last line does not count"
  tool clang-format <<<'exit 1'
  in_house .ci/run
  expect_status 1 ".ci/run with a bad layout"
  expect_says "engine/a b/c.cpp" ".ci/run with a bad layout"
  expect_not_called ctest ".ci/run with a bad layout"
}

test_times() {
  make_house
  mkdir -p "$house/build/x"
  printf '# ninja log v5\n0\t2500\t9\tengine/base/CMakeFiles/stacklab_base.dir/a.cpp.o\taa\n0\t9000\t9\tengine/base/CMakeFiles/stacklab_base.dir/b.cpp.o\tbb\n5\t1005\t9\tengine/base/CMakeFiles/stacklab_base.dir/b.cpp.o\tcc\n0\t500\t9\tbin/x\tdd\n0\t500\t9\tbin/x.alias\tdd\n' >"$house/build/x/.ninja_log"
  call bash "$house/resources/scripts/build_times.sh" "$house/build/x"
  expect_status 0 "build times"
  expect_silent_on "9.0 s" "a file that was built twice counts as last built"
  expect_silent_on "bin/x" "programs are not files that compile"
  expect_says "2.5 s  engine/base/a.cpp" "build times"
  expect_says "1.0 s  engine/base/b.cpp" "a file that was built twice counts as last built"
}

"test_$part"
[ $failures = 0 ] && echo "ok: $part"
[ $failures = 0 ]
