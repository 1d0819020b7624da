# Functions for the tests of the commands. Source this file with the program as $1; it changes to a temporary folder.
set -u
heed=$1
patience=$(sed -n 's/.*patience = \([0-9]*\);.*/\1/p' "${0%/*}/../patience.h")
work=$(mktemp -d "${TMPDIR:-/tmp}/heed-commands-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
export XDG_STATE_HOME="$work/state"   # the list of trusted plugins
failures=0
checks=0

fail() { failures=$((failures + 1)); printf 'FAILED: %s\n' "$*"; sed 's/^/    | /' err 2>/dev/null | head -12; }

# status CODE ARGS...: runs heed, which must exit with this code, and writes its output to the files out and err
status() {
  expected=$1; shift
  checks=$((checks + 1))
  "$heed" "$@" >out 2>err </dev/null
  got=$?
  # Messages about the kernel of OpenBLAS depend on the machine; only test_commands_blas.sh keeps them.
  [ -n "${blas_messages-}" ] || sed -i '/^heed: .*OpenBLAS chose its kernel\|^heed: warning: OPENBLAS_CORETYPE/d' err
  [ $got -eq "$expected" ] || fail "heed $*: exit code $got, expected $expected"
}
# says TEXT...: standard error of the last command contains each text
says() {
  for text; do
    checks=$((checks + 1))
    grep -qF -- "$text" err || fail "standard error does not contain: $text"
  done
}
# holds FILE PATTERN...: the file matches each pattern
holds() {
  file=$1; shift
  for pattern; do
    checks=$((checks + 1))
    grep -qE -- "$pattern" "$file" || { fail "$file does not match: $pattern"; head -c 600 "$file"; echo; }
  done
}
# equal WHAT ACTUAL EXPECTED: the two values are equal; WHAT describes them in the message
equal() {
  checks=$((checks + 1))
  [ "$2" = "$3" ] || fail "$1: $2, expected $3"
}
# absent PATH...: no such file or folder exists
absent() {
  for path; do
    checks=$((checks + 1))
    [ ! -e "$path" ] || fail "$path was left behind"
  done
}
# soon CONDITION: waits for a condition while the last background process runs; the limit of
# $patience seconds only ends a test that hangs
soon() {
  began=$(date +%s)
  until eval "$1"; do
    kill -0 $! 2>/dev/null || { eval "$1" || fail "the process ended before: $1"; return; }
    [ $(($(date +%s) - began)) -lt "$patience" ] || { fail "still false after $patience s: $1"; return; }
    sleep 0.1
  done
}
lines() { wc -l <"$1" | tr -d ' '; }
# number KEY: prints the value of KEY in the JSON object in out
number() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" out; }   # the last value, if there are several

config() {   # config NAME: writes the config of a small experiment
  cat >"$1.yaml" <<CONFIG
name: $1
threads: 2
data: {synthetic: {name: copy, train: 600, valid: 40, test: 30, max_length: 5, symbols: 5}}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, dropout: 0.1}
optim: {lr: 1.0e-2, schedule: {name: constant, warmup: 5}}
train: {steps: 30, batch_tokens: 256, validate_every: 15, save_every: 15, log_every: 10}
decode: {beam: 2, max_length: 12}
CONFIG
}

report() { printf '%s checks, %s failed\n' "$checks" "$failures"; [ "$failures" -eq 0 ]; }
