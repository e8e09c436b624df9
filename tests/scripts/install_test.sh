#!/usr/bin/env bash
# usage: install_test.sh BUILD   Installs a build into a folder, looks at what is there, and starts it from there.
set -uo pipefail
build=$1
failures=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/stacklab install XXXXXX") # a space, as in some people's folders
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

for program in stacklab stacklab-workbench; do
  [ -x "$build/bin/$program" ] || {
    echo "SKIPPED: $program has not been built"
    exit 77
  }
done
cmake --install "$build" --prefix "$scratch/usr" >"$scratch/log" 2>&1 || fail "cmake --install: $(tail -3 "$scratch/log")"
cd "$scratch/usr" || exit 1
id=org.stacklab.Workbench
for file in bin/stacklab bin/stacklab-workbench share/applications/$id.desktop share/metainfo/$id.metainfo.xml \
  share/icons/hicolor/scalable/apps/$id.svg share/mime/packages/stacklab.xml share/stacklab/experiments/first-run.json \
  share/stacklab/resources/corpora.json share/stacklab/resources/tinyworld/world.json; do
  [ -s "$file" ] || fail "$file is missing"
done
[ -z "$(find share -name '*.qss' -o -name '*.sh' -o -name '*.cmake')" ] || fail "more than is needed was installed"
find . -type l | grep -q . && fail "links into the build were installed"

# The desktop's names agree with one another.
grep -qx "Icon=$id" share/applications/$id.desktop || fail "the desktop file names another icon"
grep -q "<launchable type=\"desktop-id\">$id.desktop</launchable>" share/metainfo/$id.metainfo.xml || fail "the metainfo starts something else"
mime=$(sed -n 's/^MimeType=\([^;]*\);$/\1/p' share/applications/$id.desktop)
grep -q "mime-type type=\"$mime\"" share/mime/packages/stacklab.xml || fail "'$mime' is not described"
version=$(bin/stacklab-workbench --version | sed 's/^stacklab-workbench \([0-9.]*\).*/\1/')
grep -q "<release version=\"$version\"" share/metainfo/$id.metainfo.xml || fail "version $version has no release in the metainfo"

# Whoever has the validators asks them too.
if command -v desktop-file-validate >/dev/null; then
  said=$(desktop-file-validate share/applications/$id.desktop 2>&1)
  [ -z "$said" ] || fail "desktop-file-validate: $said"
else
  echo "SKIPPED: desktop-file-validate is not installed"
fi
if command -v appstreamcli >/dev/null; then
  said=$(appstreamcli validate --no-net share/metainfo/$id.metainfo.xml 2>&1) || fail "appstreamcli: $said"
else
  echo "SKIPPED: appstreamcli is not installed"
fi
if command -v update-mime-database >/dev/null; then
  said=$(update-mime-database share/mime 2>&1) || fail "update-mime-database: $said"
  grep -q "$mime:\*.stacklab.json" share/mime/globs2 || fail "*.stacklab.json is not known as $mime"
else
  echo "SKIPPED: update-mime-database is not installed"
fi

# What is installed stands on its own feet.
bin/stacklab params share/stacklab/experiments/first-run.json --json >"$scratch/params" 2>&1 || fail "stacklab: $(cat "$scratch/params")"
bin/stacklab corpus list --workspace "$scratch/w" >"$scratch/corpora" 2>&1 || fail "stacklab corpus list: $(cat "$scratch/corpora")"
exit $((failures > 0))
