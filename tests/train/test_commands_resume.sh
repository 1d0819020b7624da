#!/bin/sh
# Resuming a run: a changed config, missing checkpoints, files of other users, a lost terminal.
# Usage: test_commands_resume.sh HEED
. "${0%/*}/commands_support.sh"

config tiny
status 0 train tiny.yaml

# ---- resuming with a changed config --------------------------------------------------------------------
status 2 resume runs/tiny model.activation=gelu
says 'model.activation: a run keeps its model'
status 2 resume runs/tiny tokenizer.lowercase=true data.lowercase=true
cp -r runs/tiny longer
status 0 resume longer train.steps=40 threads=1
says "note: train.steps is now 40 (it was 30); recorded in the run's config.yaml"
holds longer/config.yaml 'steps: 40' 'threads: 2'
status 0 resume longer
says 'already finished, at step 40 (train.steps=40)' 'raise train.steps: heed resume longer train.steps=…'
checks=$((checks + 1)); grep -q 'continuing' err && fail 'a finished run is reported as continuing'
checks=$((checks + 1)); grep -q 'edited\|recorded in' err && fail 'an adopted config is still reported as a change'
status 2 train tiny.yaml --run never train.steps.x=3
says 'train.steps.x=3: unknown key'
status 2 resume longer optim.lr.foo.bar=3
says 'optim.lr.foo.bar=3: unknown key'
absent never

status 0 resume longer train.steps=0 train.epochs=1
says 'already finished, at step 40 (train.epochs=1)'
status 0 resume longer train.epochs=0 train.minutes=1e-9
says 'already finished, at step 40 (train.minutes=1e-09)'
status 0 train tiny.yaml --run early train.steps=1000 train.validate_every=1 'train.early_stopping={metric: loss, patience: 1}' optim.lr=1e-30
status 0 resume early
says 'already finished, at step ' '(train.early_stopping.patience=1)'

cp -r runs/tiny dropped
status 0 resume dropped train.steps=35 model.dropout=0.3
status 2 resume dropped train.steps=40 optim.name=sgd
says 'optim.name: a run keeps its moments'
status 0 resume dropped train.steps=40 optim.name=adamw
cp -r runs/tiny reseeded
status 0 resume reseeded train.steps=31
status 0 resume reseeded seed=7 train.shards=3 train.steps=35 data.synthetic.symbols=4
says 'data.train: its samples differ' 'so epoch ' ' starts again'
holds reseeded/run.json '"seed": 7' '"shards": 3'
status 0 resume reseeded train.steps=40
checks=$((checks + 1)); grep -q warning err && fail 'adopted seed and data are still reported as a change'
cp -r runs/tiny unjudged
status 0 resume unjudged data.synthetic.valid=0 train.steps=31
[ -L unjudged/best ] || fail 'the link to the best checkpoint was removed without validation data'
holds unjudged/last/state.json '"validation_due": false'
cp -r runs/tiny judged
status 0 resume judged train.best=token_accuracy train.steps=60 optim.lr=0.01
says 'the deciding metric or the validation data have changed' '(best)'
status 0 resume judged train.steps=70
checks=$((checks + 1)); grep -q 'deciding metric' err && fail 'an adopted metric is still reported as a change'
for record in '[]' '"x"' '{"files":"x"}' '{"files":[]}'; do
  echo "$record" >judged/run.json
  status 0 resume judged train.steps=71 threads=1
  says 'warning: judged/run.json: not the record of a run'
done

# ---- missing checkpoints ---------------------------------------------------------------------------------
cp -r runs/tiny unmounted
mv unmounted/checkpoints elsewhere
cp unmounted/metrics.jsonl kept.jsonl
for way in none link empty; do
  case $way in
    link) ln -s "$work/nowhere" unmounted/checkpoints ;;
    empty) rm unmounted/checkpoints; mkdir unmounted/checkpoints ;;
  esac
  status 3 resume unmounted
  case $way in
    link) says 'unmounted/checkpoints: not a folder, but a link' ;;
    *) says 'last exists, but there is no checkpoint' 'its disk unmounted?' ;;
  esac
  equal "metrics while checkpoints are missing ($way)" "$(cksum <unmounted/metrics.jsonl)" "$(cksum <kept.jsonl)"
done
rmdir unmounted/checkpoints; mv elsewhere unmounted/checkpoints
status 0 resume unmounted train.steps=33
says 'continuing from step 30'
cp -rL runs/tiny copied                                  # a copy without links
status 0 eval copied
status 3 resume copied
says 'copied/last and copied/best are folders instead of links to checkpoints'
rm -r copied/last
cp copied/metrics.jsonl untouched
status 3 resume copied train.steps=31
says 'copied/best is a folder'
[ -e copied/best/model.safetensors ] || fail 'a folder named best was removed'
checks=$((checks + 1)); cmp -s untouched copied/metrics.jsonl || fail 'a refused resume changed the metrics'
rm -r copied/best
status 0 resume copied
[ -L copied/best ] || fail 'the link to the best checkpoint was not restored'
mkdir copied/aside; mv copied/checkpoints/step-* copied/aside
mv copied/aside/step-00000030 copied/checkpoints/.step-00000030.old
status 3 resume copied
says 'no checkpoint exists except copied/checkpoints/.step-00000030.old' 'rename it to step-'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 755 "$work"; chmod 755 "$heed" 2>/dev/null
  as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$heed" "$@" >out 2>err; }
  status 0 train tiny.yaml --run others train.keep=2 train.save_every=5 train.average=1
  chown -R 65534:65534 others
  chown -R 0:0 others/checkpoints/step-00000025
  if as_nobody eval others; then                         # the user may lack access to the program
    as_nobody resume others train.steps=45
    equal 'exit code of resume next to a checkpoint of another user' $? 0
    says "warning: an old checkpoint was not removed: cannot remove"
    equal 'number of warnings about an old checkpoint' "$(grep -c 'checkpoint was not removed' err)" 1
    chmod +t others/checkpoints; chown 0:0 others/checkpoints; chmod 1777 others/checkpoints
    mkdir -m 755 others/checkpoints/.step-00000050.tmp others/checkpoints/.step-00000050.old
    touch others/checkpoints/.step-00000050.tmp/x others/checkpoints/.step-00000050.old/x
    as_nobody resume others train.steps=65
    equal 'exit code of resume in a folder with the sticky bit' $? 0
    says 'warning: an old checkpoint was not removed: cannot remove others/checkpoints/.step-00000050.tmp'
    chmod 700 others; chown 0:0 others
    as_nobody eval others
    equal 'exit code of eval of an inaccessible run' $? 4
    says 'cannot examine others' 'Permission denied'
    as_nobody train tiny.yaml --run others
    equal 'exit code of train into an inaccessible folder' $? 4
    says 'cannot examine others' 'Permission denied'
  fi
fi

# ---- a lost terminal --------------------------------------------------------------------------------------
# Under nohup, SIGHUP is ignored on entry, which a shell cannot undo.
env --default-signal=HUP "$heed" train tiny.yaml --run lost train.steps=100000 train.save_every=1000000 train.validate_every=1000000 2>err &
soon 'grep -qs "train step" err'
kill -HUP $!
wait $!
equal 'exit code after a hangup' $? 129
says 'stopped by SIGHUP (hangup); to continue: heed resume lost'
[ -e lost/last/state.json ] || fail 'no checkpoint was saved after a hangup'

for other in 1 2; do       # two signals at once, as from a shell and timeout(1); after SIGSTOP, both are pending
  rm -rf lost err
  "$heed" train tiny.yaml --run lost train.steps=100000 train.save_every=1000000 train.validate_every=1000000 2>err &
  soon 'grep -qs "train step" err'
  kill -STOP $!; kill -TERM $!; kill -$other $!; kill -CONT $!
  wait $!
  got=$?                                                 # exit code for the signal handled first
  case $got in 143 | $((128 + other))) got=either ;; esac
  equal "exit code after signals 15 and $other at once" "$got" either
  says 'stopped by SIG'
  [ -e lost/last/state.json ] || fail "no checkpoint was saved after signals 15 and $other at once"
done

report
