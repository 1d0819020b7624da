#!/bin/sh
# Files that may come from a stranger: run folders, lists and data; and limits of the system.
# Usage: test_commands_received.sh HEED
. "${0%/*}/commands_support.sh"

config tiny
status 0 train tiny.yaml
mkdir received

# ---- text for the terminal ---------------------------------------------------------------------------------
# A folder whose name contains ESC, U+009B and U+202E.
bad=$(printf 'received/a\033[2Jb\302\2331m\342\200\256c')
escaped='received/a\x1b[2Jb\u009b1m\u202ec'
controls=$(printf '\033\\|\302\233\\|\342\200\256')
cp -r runs/tiny "$bad"
clean() {   # clean FILE: the file contains none of these characters
  checks=$((checks + 1))
  LC_ALL=C grep -q "$controls" "$1" && fail "$1 contains characters that control a terminal"
}
shows() {   # shows FILE: the file contains the escaped name instead
  clean "$1"
  checks=$((checks + 1))
  grep -qF -- "$2" "$1" || fail "$1 does not contain $2"
}
status 0 runs received
shows out "${escaped#received/}"
status 0 runs received --json
shows out '\u009b1m\u202ec'
status 0 compare "$bad" runs/tiny
shows out "$escaped"
status 0 compare "$bad" runs/tiny --json
status 0 eval "$bad"
shows err "$escaped"
status 0 resume "$bad"
shows err "$escaped"
shows "$bad/train.log" "$escaped"
for missing in "2 resume $bad/none" "2 show $bad.yaml" "2 compare $bad/none" "3 generate runs/tiny --input $bad/none" "2 $bad"; do
  # shellcheck disable=SC2086
  status $missing
  shows err "${escaped#received/}"
done
printf '{"version":"\033[2J"}' >"$bad/run.json"
status 0 runs received
clean out
printf 'data: {train: {source: "x\\u202ey", target: b}}\n' >name.yaml
status 0 show name.yaml --json
if command -v script >/dev/null; then   # what a terminal receives
  script -qec "'$heed' show name.yaml --json" /dev/null >out 2>err </dev/null
  shows out '"source":["x\u202ey"]'
fi

# ---- tables for spreadsheets ---------------------------------------------------------------------------------
cp -r runs/tiny '=1+1'
status 0 report '=1+1' --csv valid.loss
holds out "^'=1\\+1,1,valid.loss,"

# ---- pages show the data of the run alone --------------------------------------------------------------------
mkdir -p images/dark images/light private/dark
for i in 0 1 2 3 4 5 6 7; do
  printf 'P5\n4 4\n255\n0%s%s0000000000000' $i $i >images/dark/$i.pgm
  printf 'P5\n4 4\n255\nz%s%szzzzzzzzzzzzz' $i $i >images/light/$i.pgm
done
printf 'P5\n4 4\n255\nprivateprivate!!' >private/dark/0.pgm
cat >images.yaml <<CONFIG
task: classify
threads: 1
data: {input: image, image: {height: 4, width: 4, patch: 2}, train: {source: images}, valid_fraction: 0.25, test_fraction: 0.25}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1}
train: {steps: 2, batch_tokens: 256, validate_every: 2, save_every: 2}
CONFIG
status 0 train images.yaml
images() { grep -o 'data:image/png;base64' runs/images/reports/report.html | wc -l; }
# Every sample becomes a mistake, so that the page shows it.
sed -i 's/"output":"[^"]*"/"output":"wrong"/' runs/images/outputs.jsonl
status 0 report runs/images
checks=$((checks + 1)); [ "$(images)" -gt 0 ] || fail 'the page shows no image, so the following checks detect nothing'
cp runs/images/outputs.jsonl outputs
sed -i "s|\"source\":\"[^\"]*\"|\"source\":\"$PWD/private/dark/0.pgm\"|" runs/images/outputs.jsonl
status 0 report runs/images
equal 'images of other files in the page' "$(images)" 0
holds runs/images/reports/report.html 'private/dark/0.pgm \(image not shown\)' 'private/dark/0.pgm is not shown: it is not a line of the run'
sed -i 's|source: \[images\]|source: [private]|; s|source: images|source: private|' runs/images/config.yaml
holds runs/images/config.yaml 'source: .*private'
for i in 1 2 3 4 5 6 7; do cp private/dark/0.pgm private/dark/$i.pgm; done
cp -r private/dark private/light
sed -i 's|"source":"[^"]*"|"source":"private/dark/7.pgm"|' runs/images/outputs.jsonl
status 0 report runs/images
equal 'images of files that the config was made to name' "$(images)" 0
holds runs/images/reports/report.html 'data that config.yaml names cannot be read or are not those of the run'
i=0; while [ $i -lt 60 ]; do echo "the password is $i swordfish"; i=$((i + 1)); done >secret.txt
tr a-z b-za <secret.txt >text.txt
sed 's/^data:.*/task: lm\ndata: {train: {text: text.txt}, test: {text: text.txt}}/; s/^name:.*/name: lm/' tiny.yaml >lm.yaml
status 0 train lm.yaml train.steps=2
status 0 report runs/lm
holds runs/lm/reports/report.html 'The first tokens of the held-out text'
cp secret.txt text.txt
echo '{"text": "swordfish' >text.jsonl
for file in text.txt text.jsonl; do   # another text; a file whose error quotes its content
  sed -i "s/text.txt/$file/" runs/lm/config.yaml
  rm -f runs/lm/reports/report.html
  status 0 report runs/lm
  holds runs/lm/reports/report.html 'data that config.yaml names cannot be read or are not those of the run'
  checks=$((checks + 1)); grep -q swordfish runs/lm/reports/report.html && fail 'the page contains a text that is not the data of the run'
done

# ---- nested JSON ---------------------------------------------------------------------------------------------
deep=$(awk 'BEGIN { for (i = 0; i < 200000; ++i) printf "["; for (i = 0; i < 200000; ++i) printf "]" }')
cp -r runs/tiny deep
for file in metrics.jsonl outputs.jsonl; do
  cp "deep/$file" kept
  printf '{"kind":"valid","step":1,"x":%s}\n' "$deep" >"deep/$file"
  status 3 report deep
  says "deep/$file:1: nested more than 32 levels deep"
  cp kept "deep/$file"
done
printf '{"kind":"valid","step":1,"x":%s}\n' "$deep" >deep/metrics.jsonl
status 3 compare deep
says 'deep/metrics.jsonl:1: nested more than 32 levels deep'
status 0 runs deep
cp runs/tiny/metrics.jsonl deep
printf '{"x":%s}' "$deep" >deep/run.json
status 0 eval deep
says 'nested more than 32 levels deep'
mkdir swept && printf '{"runs":%s}' "$deep" >swept/sweep.json
status 3 compare swept
says 'nested more than 32 levels deep'
printf '{"x":%s}' "$deep" >"deep/$(readlink deep/last)/state.json"
status 3 eval deep --weights last
says 'nested more than 32 levels deep'
printf '{"source":%s,"target":"a"}\n' "$deep" >deep.jsonl
status 3 train tiny.yaml --run never data.synthetic.name=none data.train.source=deep.jsonl
says 'deep.jsonl:1: nested more than 32 levels deep'

# ---- named pipes without a writer ----------------------------------------------------------------------------
mkfifo pipe pipe.pgm
for i in 0 1 2 3 4 5 6 7; do echo pipe.pgm >>list && echo dark >>labels; done
status 3 train images.yaml --run never data.train.source=list data.train.target=labels
says 'pipe.pgm: is a named pipe'
status 3 train tiny.yaml --run never data.synthetic.name=none data.train.source=pipe data.train.target=pipe
says 'pipe: is a named pipe'
absent never
for i in 0 1 2 3 4 5 6 7; do echo "a b a"; done >lines
checks=$((checks + 1))   # a pipe of the shell
cat lines | "$heed" train tiny.yaml --run piped data.synthetic.name=none data.train.source=/dev/fd/0 data.train.target=lines train.steps=2 2>err ||
  fail 'a pipe of the shell is refused'

# ---- limits of the system ------------------------------------------------------------------------------------
limited() {   # limited KIB CODE ARGS...: as status, with a limit of the address space
  kib=$1 expected=$2; shift 2
  checks=$((checks + 1))
  (ulimit -v "$kib" && exec "$heed" "$@" >out 2>err </dev/null)
  got=$?
  [ $got -eq "$expected" ] || fail "heed $* with $kib KiB: exit code $got, expected $expected"
}
if (ulimit -v 4000000 && OPENBLAS_NUM_THREADS=1 "$heed" --version) >/dev/null 2>&1; then   # a sanitizer needs more
  if [ "$(nproc)" -gt 1 ]; then
    limited 80000 4 --version
    says 'the limit of the address space is 78 MiB, but OpenBLAS' 'OPENBLAS_NUM_THREADS=1'
  fi
  export OPENBLAS_NUM_THREADS=1
  limited 150000 4 train tiny.yaml --run small threads=1
  says 'OpenBLAS needs 128 MiB for each thread, and has 0 such buffers'
  limited 4000000 4 train tiny.yaml --run small threads=1024
  says '1024 threads are too many for this system, which runs '
  absent small
  limited 4000000 0 train tiny.yaml --run large threads=2 train.steps=2
  unset OPENBLAS_NUM_THREADS
fi
status 0 train tiny.yaml --run with-pipe train.steps=2
status 0 train tiny.yaml --run "$(printf 'a\033[31m')" train.steps=2
for form in --latex --markdown; do
  status 0 compare "$(printf 'a\033[31m')" with-pipe $form
  equal "control characters in compare $form" "$(tr -d '\n\t -~\200-\377' <out | wc -c)" 0
done

# A value of any length is cut in messages; a pipe in place of a run's config is not read.
"$heed" show reference >whole.yaml
long=$(head -c 100000 /dev/zero | tr '\0' x)
sed "s/^name:.*/task: $long/" whole.yaml >long.yaml
status 2 show long.yaml
equal 'bytes of a message, at most 8192' "$(($(wc -c <err) <= 8192))" 1
rm with-pipe/config.yaml; mkfifo with-pipe/config.yaml
for command in train show bench gradcheck; do
  checks=$((checks + 1))
  timeout 60 "$heed" $command with-pipe/config.yaml >out 2>err </dev/null
  equal "status of $command with a pipe as a run's config" $? 3
done
report
