#!/bin/sh
# heed sweep: runs a grid, continues after being stopped or killed, survives a run that fails; heed report and plot.
# Usage: test_commands_sweep.sh HEED
here=$(cd "${0%/*}" && pwd)
. "$here/commands_support.sh"

cat >copy.yaml <<CONFIG
name: copy
task: seq2seq
threads: 2
data: {synthetic: {name: copy, train: 300, valid: 20, test: 20, min_length: 1, max_length: 4, symbols: 4}}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 16, layers: 1, dropout: 0.0}
optim: {lr: 1.0e-2, schedule: {name: constant, warmup: 5}}
train: {steps: 40, batch_tokens: 128, validate_every: 20, save_every: 20, log_every: 10, best: exact_match}
decode: {beam: 1, max_length: 8}
CONFIG

# ---- a grid, run twice ------------------------------------------------------------------------------
status 0 sweep copy.yaml model.norm=pre,post --seeds 2 --jobs 2 --json
says 'sweep in runs/copy-sweep, number of runs: 4' '4 of 4  00' 'exact match' 'output written to runs/copy-sweep/report.html'
equal 'groups of runs' "$(grep -o '"model.norm":"[a-z]*"' out | sort | tr '\n' ' ')" '"model.norm":"post" "model.norm":"pre" '
equal 'number of runs' "$(ls -d runs/copy-sweep/0* | wc -l | tr -d ' ')" 4
holds runs/copy-sweep/report.html 'Report of 4 runs of copy' 'class="band s1"'
cp out first
sum=$(cat runs/copy-sweep/*/metrics.jsonl | cksum)
status 0 sweep copy.yaml model.norm=pre,post --seeds 2 --jobs 2 --json
cmp -s out first || fail 'repeating a finished sweep changes its result'
equal 'metrics of finished runs' "$(cat runs/copy-sweep/*/metrics.jsonl | cksum)" "$sum"
status 2 sweep copy.yaml model.norm=pre,post,none --seeds 2
says 'holds another sweep'
status 0 compare runs/copy-sweep/0*
holds out '^pre +2 +test' '^post +2 +test' 'the ranges of 2 and 2 seeds'
status 0 sweep copy.yaml model.norm=pre,post --run alone  # the weights do not depend on the number of jobs
for run in 001-norm=pre 002-norm=post; do
  equal "weights of $run" "$(cksum <alone/$run/best/model.safetensors)" \
    "$(cksum <"runs/copy-sweep/$(case $run in *pre) echo 001-norm=pre-seed=1 ;; *) echo 003-norm=post-seed=1 ;; esac)/best/model.safetensors")"
done

# ---- sweeps that are killed or stopped --------------------------------------------------------------
"$heed" sweep copy.yaml model.heads=1,2,4 --run killed train.steps=400 >out 2>err </dev/null &
soon '[ -e killed/001-heads=1/checkpoints ]'
kill -9 $!
wait $! 2>/dev/null
status 0 sweep copy.yaml model.heads=1,2,4 --run killed train.steps=400
says '3 of 3'
"$heed" sweep copy.yaml model.heads=1,2,4 --run stopped train.steps=400 >out 2>err </dev/null &
soon '[ -e stopped/001-heads=1/checkpoints ]'
kill -TERM $!
wait $!
equal 'exit code of a stopped sweep' $? 143
says 'the same command continues the sweep in stopped'
status 0 sweep copy.yaml model.heads=1,2,4 --run stopped train.steps=400
for run in 001-heads=1 002-heads=2 003-heads=4; do
  equal "weights of $run" "$(cksum <killed/$run/best/model.safetensors)" "$(cksum <stopped/$run/best/model.safetensors)"
done

# ---- a run that fails -------------------------------------------------------------------------------
status 1 sweep copy.yaml optim.lr=0.01,1e30 optim.clip_norm=0 optim.name=sgd --run failing
says '002-lr=1e30 failed: status 5' 'output written to failing/report.html'
status 0 compare failing
! grep -q '002-lr=1e30' out || fail 'a run without results is compared'
holds out 'exact match'
echo garbage >>failing/001-lr=0.01/metrics.jsonl  # a damaged run does not stop the other runs
status 1 sweep copy.yaml optim.lr=0.01,1e30 optim.clip_norm=0 optim.name=sgd --run failing
says '1 of 2  001-lr=0.01  failed: failing/001-lr=0.01/metrics.jsonl:' '2 of 2  002-lr=1e30  failed: status 5'
lost() { "$heed" sweep copy.yaml model.heads=1,2 --run lost train.steps=20000 </dev/null; }
trainer() { sed -n 's/^heed \([0-9]*\)$/\1/p' lost/001-heads=1/.lock; }   # the process that trains the first run
lost >out1 2>err1 &
soon '[ -e lost/001-heads=1/last ]'
sweep=$(sed -n 's/^heed //p' lost/.lock)
find lost -name sweep.json -o -name .lock | sort | xargs cksum >sums
status 6 sweep copy.yaml model.heads=1,2 --run lost train.steps=20000
says "lost: another heed process ($sweep) is running a sweep in this folder: wait until it ends, or choose another folder with --run"
equal 'files that the second sweep changed' "$(find lost -name sweep.json -o -name .lock | sort | xargs cksum | diff - sums)" ''
kill -9 "$sweep"; wait $!                                # the run continues, and the same command waits for it
first=$(trainer)
"$heed" sweep copy.yaml model.heads=1,2 --run lost train.steps=20000 >out2 2>err2 </dev/null &
second=$!
soon 'grep -q "001-heads=1  waits for another process that is training it" err2'
kill -9 "$first"
soon '[ "$(trainer)" != "$first" ]'
kill -9 "$(trainer)"
soon 'grep -q "001-heads=1  failed: killed by SIGKILL" err2'
kill -TERM $second
wait $second
equal 'exit code of a stopped sweep' $? 143

# ---- on a terminal ----------------------------------------------------------------------------------
[ -z "$(command -v python3)" ] || python3 - "$heed" <<'END' || fail 'a sweep shows no progress on a terminal'
import os, pty, subprocess, sys
terminal, end = pty.openpty()
sweep = subprocess.Popen([sys.argv[1], "sweep", "copy.yaml", "optim.lr=1e-3,1e-2", "--run", "watched"],
                         stdout=subprocess.DEVNULL, stderr=end, env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"})
os.close(end)
shown = b""
try:
    while part := os.read(terminal, 4096):
        shown += part
except OSError:  # the sweep has ended
    pass
assert sweep.wait() == 0, shown
bar = shown.find(b"/80")  # the steps of both runs
assert shown.find(b"sweep  ") >= 0 and bar >= 0, shown
assert bar < shown.find(b"2 of 2  002"), shown
END

# ---- halving ----------------------------------------------------------------------------------------
status 0 sweep copy.yaml optim.lr=1e-5,1e-2,3e-2 optim.schedule.name=cosine --halving --run halved
holds halved/001-lr=1e_5/config.yaml 'steps: 40$'  # end of the schedule
equal 'steps of the runs' "$(for run in halved/0*; do sed -n 's/.*"kind":"test".*"step":\([0-9]*\).*/\1/p' $run/metrics.jsonl | tail -n 1; done | sort -n | tr '\n' ' ')" '10 20 40 '
holds halved/001-lr=1e_5/config.yaml 'steps: 10$'
# A resumed sweep repeats its decisions: it uses the validations of each round and ignores later ones.
best=$(grep -l '"step":40' halved/0*/metrics.jsonl) && best=${best%/*}
sed -i '/"kind":"valid"/{/"step":40/{s/"exact_match":[0-9.e-]*/"exact_match":0/;s/"loss":[0-9.e-]*/"loss":99/}}' "$best/metrics.jsonl"
sum=$(cat halved/*/metrics.jsonl | cksum)
status 0 sweep copy.yaml optim.lr=1e-5,1e-2,3e-2 optim.schedule.name=cosine --halving --run halved
equal 'metrics of a finished sweep' "$(cat halved/*/metrics.jsonl | cksum)" "$sum"

# ---- the sweep section of the config ----------------------------------------------------------------
{ cat copy.yaml && echo 'sweep: {model.activation: [relu, gelu]}'; } >own.yaml
sed -i 's/^name: copy/name: own/' own.yaml
status 0 sweep own.yaml
equal 'files of a sweep defined in the config' "$(ls runs/own-sweep | tr '\n' ' ')" '001-activation=relu 002-activation=gelu report.html sweep.json '
status 2 sweep copy.yaml
says 'nothing to vary'

# ---- reports and plots ------------------------------------------------------------------------------
first=runs/copy-sweep/001-norm=pre-seed=1
page=$first/reports/report.html
status 0 report $first
says "output written to $page"
absent report.html
holds $page '<h2>Attention</h2>' '<h2>Model</h2>' 'Worst outputs'
status 0 eval runs/copy-sweep/001-norm=pre-seed=1 --json
for key in loss token_accuracy exact_match; do
  grep -q "<data value=\"$(number $key)\"" $page || fail "$key of eval is not in the report: $(number $key)"
done
status 0 report runs/copy-sweep/001-norm=pre-seed=1 --csv train.nll
equal 'lines of a curve as CSV' "$(lines out)" 5
status 2 report runs/copy-sweep/001-norm=pre-seed=1 --csv train.nil
says 'no run has such a curve; available: train.gradient_norm'
status 0 compare runs/copy-sweep
cp out whole
status 0 compare runs/copy-sweep/0*
equal 'comparison of a sweep and of its runs' "$(cat whole)" "$(cat out)"
status 0 report runs/copy-sweep --output sweep.html
holds sweep.html '001-norm=pre-seed=1'
mkdir runs/unbegun && echo '{"runs": [{"name": "001"}]}' >runs/unbegun/sweep.json
status 2 compare runs/unbegun
says 'runs/unbegun: no run of this sweep has results yet'
echo '{"runs": [7]}' >runs/unbegun/sweep.json
status 3 compare runs/unbegun
says 'runs/unbegun/sweep.json: '
status 2 report no-such-run
says 'no-such-run'
status 0 report runs/copy-sweep/001-norm=pre-seed=1 --profile --output profile.html
holds profile.html '<h2>Time by op</h2>'
status 0 report runs/copy-sweep/001-norm=pre-seed=1 --follow --output followed.html
for what in positions schedule softmax masks activations layers gradcheck scores loss tiles beam cache; do
  status 0 plot $what
  holds $what.svg '^<svg' '</svg>$'
done
# heed replaces pages and drawings that it has written, and no other file.
status 0 report $first
status 0 plot masks
printf 'notes of a year\n' >notes.html
cp notes.html notes.svg
for wrong in "report $first --output notes.html" 'plot masks --output notes.svg' 'show copy.yaml --output notes.svg'; do
  status 2 $wrong
  says 'heed has not written this file, and does not replace it; remove it or choose another name'
done
equal 'a file of the user' "$(cat notes.html notes.svg)" "$(printf 'notes of a year\nnotes of a year')"
: >empty.svg
status 0 plot masks --output empty.svg
# Other formats of drawings are converted by librsvg, if it is installed.
for format in png pdf; do
  if command -v rsvg-convert >/dev/null; then
    for again in 1 2; do status 0 plot softmax --output softmax.$format; done
    status 0 report $first --output curves.$format
    equal "format of softmax.$format" "$(head -c 5 softmax.$format | tr -cd 'A-Z')" "$(echo $format | tr a-z A-Z)"
    cp softmax.$format foreign.$format && printf '%100s' >>foreign.$format
    status 2 plot softmax --output foreign.$format
  else
    status 2 plot softmax --output softmax.$format
    says 'this format needs the program rsvg-convert (Debian: apt-get install librsvg2-bin)'
  fi
done
if command -v rsvg-convert >/dev/null && command -v python3 >/dev/null; then
  python3 - <<'END' || fail 'softmax.png is not a valid PNG'
import struct, zlib
data = open("softmax.png", "rb").read()
at, seen = 8, []
while at < len(data):
    length, = struct.unpack(">I", data[at:at + 4])
    body = data[at + 4:at + 8 + length]
    assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(body)
    seen.append(body[:4])
    at += 12 + length
assert seen[0] == b"IHDR" and seen[-2:] == [b"tEXt", b"IEND"], seen
END
fi
status 0 plot schedule copy.yaml optim.lr=0.25 --output -
holds out 'peak 0.25'
status 0 plot masks 'model.attention={pattern: window, window: 2}' --length 8 --output -
holds out 'window of 2'
status 2 plot nothing

report
