#!/bin/sh
# check.sh ROOT: checks the source tree against docs/ARCHITECTURE.md. Prints each violation; exits 1 if there is one.
#
# - Modules (folders that are libraries) include one another in one direction only, and so do the folders of a module.
# - Each external library is included in one place only.
# - Files have at most 600 lines, and folders of a module at most 24 files of code.
# - Headers contain #pragma once, and kernels that Highway compiles for several instruction sets include targets.h.
# - Tests mirror the modules, each source of a test is built, and the top level contains only known names.
set -eu
cd "$1"
max_lines=600
max_files=24
violations=$(mktemp)
trap 'rm -f "$violations"' EXIT
modules='autograd nn optim data train'

sources() {
  find "$@" \( -name '*.cpp' -o -name '*.h' \) -type f | LC_ALL=C sort
}

# ---- includes ------------------------------------------------------------------------------------
# The files that a module may include, as paths from the root. A quoted include is a file of heed, as a path from
# the root, or a header of Highway, whose headers are quoted by convention.
may_include() {
  case $1 in
    autograd) echo '^autograd/' ;;
    nn) echo '^(autograd|nn)/' ;;
    optim) echo '^(autograd|optim)/' ;;
    data) echo '^(autograd/(base|io)/|data/)' ;;
    train) echo '^(autograd|nn|optim|data|train)/' ;;
  esac
}

for module in $modules; do
  sources "$module" | while read -r file; do
    awk -v allowed="$(may_include "$module")" -v module="$module" '
      match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]+[">]/) {
        name = substr($0, RSTART, RLENGTH)
        quoted = name ~ /"$/
        sub(/^[^"<]*["<]/, "", name); sub(/[">]$/, "", name)
        internal = (quoted && name !~ /^hwy\//) || name ~ /^(autograd|nn|optim|data|train|tests)\//
        if (internal && name !~ allowed)
          printf "%s:%d: %s/ must not include %s\n", FILENAME, FNR, module, name
      }' "$file"
  done
done >>"$violations"

# The folders of a module, lowest first; "." is the module's top folder. Each folder includes only earlier ones. A file
# that has the name of a folder, such as ops.h beside ops/, counts as part of that folder.
folders_of() {
  case $1 in
    autograd) echo 'base memory kernels . tape ops gradcheck io' ;;
    nn) echo '. layers reference models' ;;
    data) echo '. sources tokenizers batches inputs' ;;
    train) echo '. essentials terminal distributed config metrics fetch run decode tasks results loop sweep exchange commands views program python' ;;
  esac
}

for module in $modules; do
  order=$(folders_of "$module")
  [ -n "$order" ] || continue
  sources "$module" | while read -r file; do
    awk -v module="$module" -v order="$order" '
      function level(path,   parts, n) {   # level of a file of this module; 0 if its folder is not listed above
        sub("^" module "/", "", path)
        n = split(path, parts, "/")
        if (n == 1) { sub(/\.(h|cpp)$/, "", path); return path in place ? place[path] : place["."] }
        return place[parts[1]]
      }
      BEGIN { n = split(order, names, " "); for (i = 1; i <= n; i++) place[names[i]] = i }
      FNR == 1 && !level(FILENAME) { printf "%s: its folder is not listed in tests/layout/check.sh\n", FILENAME }
      match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]+[">]/) {
        name = substr($0, RSTART, RLENGTH)
        sub(/^[^"<]*["<]/, "", name); sub(/[">]$/, "", name)
        if (index(name, module "/") == 1 && level(name) > level(FILENAME))
          printf "%s:%d: a lower folder must not include %s\n", FILENAME, FNR, name
      }' "$file"
  done
done >>"$violations"

# ---- one place for each external library ---------------------------------------------------------
# only_in HEADERS FILES: only files that match FILES may include headers that match HEADERS (patterns)
only_in() {
  # shellcheck disable=SC2086
  sources $modules | xargs grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($1)" /dev/null |
    grep -vE "^($2)" | sed 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*/: this folder must not include /' || true
}
{
  only_in 'cblas|openblas' 'autograd/kernels/fast/|autograd/plain\.cpp'
  only_in 'hwy/' 'autograd/kernels/fast/'
  only_in 'yaml-cpp/' 'train/'
  only_in 'CLI/' 'train/'
  only_in 'sentencepiece' 'data/'
  only_in 'pcre2' 'data/tokenizers/regex\.cpp'
  only_in 'zlib' 'autograd/io/'
  only_in 'png\.h|turbojpeg' 'data/sources/image\.cpp'
  only_in 'pybind11/' 'train/python/'
} >>"$violations"

# ---- files ---------------------------------------------------------------------------------------
# shellcheck disable=SC2086
{
  find $modules tests \( -name '*.cpp' -o -name '*.h' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' \
    -o -name CMakeLists.txt \) -type f -exec awk -v max=$max_lines '
      FNR == max + 1 { printf "%s: more than %d lines\n", FILENAME, max }' {} +
  # Highway includes files named *-inl.h once for each instruction set.
  sources $modules tests | grep '\.h$' | grep -v -e '-inl\.h$' | xargs grep -L '^#pragma once' /dev/null |
    sed '/^\/dev\/null$/d; s/$/: a header without #pragma once/' || true
  # Without targets.h a kernel is compiled for instruction sets that the other kernels do not use.
  # shellcheck disable=SC2086
  sources $modules | xargs grep -l '^#include .hwy/foreach_target' /dev/null | xargs -r grep -L 'kernels/fast/simd/targets\.h' |
    sed 's,$,: includes hwy/foreach_target.h without autograd/kernels/fast/simd/targets.h,' || true
} >>"$violations"

for module in $modules; do
  sources "$module" | sed 's,/[^/]*$,,' | uniq -c | awk -v max=$max_files '
    $1 > max { printf "%s: more than %d files of code in one folder\n", $2, max }'
done >>"$violations"

# ---- tests mirror the modules ----------------------------------------------------------------------
for folder in tests/*/; do
  folder=$(basename "$folder")
  case " $modules golden fuzz relcheck mutation bench mpi install clients layout launcher course " in
    *" $folder "*) ;;
    *) echo "tests/$folder: neither a module nor a known kind of test" ;;
  esac
done >>"$violations"
for module in $modules; do
  if sources "$module" | grep -q '\.cpp$' && [ ! -f "tests/$module/CMakeLists.txt" ]; then
    echo "$module: has sources but no tests/$module/CMakeLists.txt"
  fi
done >>"$violations"

# A test that no CMakeLists.txt names is never built. A glob counts as naming every test_*.cpp of a folder.
sources tests | grep '\.cpp$' | while read -r file; do
  name=$(basename "$file" .cpp)
  folder=$(dirname "$file")
  case $name in
    test_*) globs="GLOB .* (${folder##*/}/)?test_\*\.cpp" ;;
    fuzz_*) globs='fuzz_\$\{name\}\.cpp' ;;
    *) globs='a^' ;;
  esac
  found=
  while [ "$folder" != . ]; do
    if [ -f "$folder/CMakeLists.txt" ] &&
      grep -qE "(^|[^a-z_])$name\.cpp|$globs" "$folder/CMakeLists.txt"; then
      found=yes
    fi
    folder=$(dirname "$folder")
  done
  [ -n "$found" ] || echo "$file: no CMakeLists.txt names this source"
done >>"$violations"

# ---- the top level -------------------------------------------------------------------------------
# Only files that git tracks count; notes and runs may be beside the sources.
if git ls-files >/dev/null 2>&1; then
  git ls-files | sed 's,/.*,,' | sort -u | grep -v '^\.' | while read -r name; do
    case " $modules configs tests docs CMakeLists.txt CMakePresets.json README.md LICENSE CONTRIBUTING.md heed " in
      *" $name "*) ;;
      *) echo "$name: does not belong at the top level" ;;
    esac
  done >>"$violations"
else
  echo "(no git, or no repository: the top level is not checked)"
fi

if [ -s "$violations" ]; then
  cat "$violations"
  exit 1
fi
# shellcheck disable=SC2086
echo "layout: $(sources $modules | wc -l) sources checked, no violation"
