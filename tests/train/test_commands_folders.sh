#!/bin/sh
# What commands may write over, and what they must leave: outputs, run folders, folders that are no run's.
# Usage: test_commands_folders.sh HEED
. "${0%/*}/commands_support.sh"

config tiny
status 0 train tiny.yaml
printf 'a b c\nb\n' >src
status 0 generate runs/tiny --input src
cp out plain
# same FILE: it holds what generate printed
same() { checks=$((checks + 1)); cmp -s plain "$1" || fail "$1 does not hold the translations"; }

# soon CONDITION: waits for it, 20 s at most
soon() {
  for _ in $(seq 200); do eval "$1" && return; sleep 0.1; done
  fail "20 s, and not yet: $1"
}

# ---- outputs ----------------------------------------------------------------------------------------
ln -s /proc/self/fd/1 pipe-out                           # as /dev/stdout is
"$heed" generate runs/tiny --input src --output pipe-out >redirected 2>err
same redirected
echo before >appended
"$heed" generate runs/tiny --input src --output pipe-out >>appended 2>err
equal 'an appended output' "$(head -n 1 appended)" before
"$heed" generate runs/tiny --input src --output pipe-out 2>err | cat >piped
same piped
[ -L pipe-out ] || fail 'the link to standard output was replaced'
echo old >real; chmod 640 real; ln -s real link; ln -s nowhere-yet dangling
status 0 generate runs/tiny --input src --output link
same real
[ -L link ] || fail 'a link was replaced by a file'
equal 'permissions of a replaced file' "$(stat -c %a real)" 640
status 0 generate runs/tiny --input src --output dangling
same nowhere-yet
mkfifo slowly
"$heed" generate runs/tiny --input slowly --output shared 2>/dev/null &
exec 9>slowly
cat src >&9
soon '[ -e .shared.tmp ]'
status 4 generate runs/tiny --input src --output shared
says 'shared.tmp: another process is writing it'
exec 9>&-
wait $!
same shared
status 2 score runs/tiny --source - --target -
status 2 eval runs/tiny --source - --target -
says 'standard input can be one file only'
status 2 eval runs/tiny --source src --target src --json --output -

# ---- a standard error that cannot be written ----------------------------------------------------------
for command in "train nowhere.yaml" "eval nowhere" "fetch nothing" "score runs/tiny --target src" "trian"; do
  "$heed" $command >out 2>err
  expected=$?
  "$heed" $command >out 2>&-
  equal "$command with standard error closed" $? $expected
  [ ! -w /dev/full ] || { "$heed" $command >out 2>/dev/full; equal "$command with standard error full" $? $expected; }
done
cp -r runs/tiny edited
echo '# a remark' >>edited/config.yaml
"$heed" eval edited >out 2>&-
equal 'eval with a note that cannot be said' $? 0

# ---- folders that are no run's -------------------------------------------------------------------------
for name in run.json metrics.jsonl train.log best last average tokenizer.vocab; do
  mkdir mine; echo precious >mine/$name
  status 2 train tiny.yaml --run mine
  says "mine/$name is there already"
  status 2 train tiny.yaml --run mine --overwrite
  says "mine/$name is not a run's"
  holds mine/$name '^precious$'
  rm -r mine
done
mkdir mine; echo '{"tool": "another"}' >mine/run.json; mkdir mine/checkpoints; echo precious >mine/checkpoints/weights
status 2 train tiny.yaml --run mine --overwrite
holds mine/checkpoints/weights precious
rm -r mine; mkdir mine; echo precious >mine/notes.txt      # not in the way
status 0 train tiny.yaml --run mine train.steps=2
status 0 train tiny.yaml --run mine train.steps=2 --overwrite
holds mine/notes.txt precious

# ---- going on with another config ----------------------------------------------------------------------
status 2 resume runs/tiny model.activation=gelu
says 'model.activation: a run keeps its model'
status 2 resume runs/tiny tokenizer.lowercase=true data.lowercase=true
cp -r runs/tiny longer
status 0 resume longer train.steps=40 threads=1
says "note: train.steps is another from here on, in the run's config.yaml too"
holds longer/config.yaml 'steps: 40' 'threads: 2'
status 0 resume longer
says 'going on from step 40'
checks=$((checks + 1)); grep -q 'edited\|another from here' err && fail 'the config that was taken over is a change still'
status 2 train tiny.yaml --run never train.steps.x=3
says 'train.steps.x=3: unknown key'
status 2 resume longer optim.lr.foo.bar=3
says 'optim.lr.foo.bar=3: unknown key'
absent never

# ---- checkpoints out of reach ----------------------------------------------------------------------------
cp -r runs/tiny unmounted
mv unmounted/checkpoints elsewhere
cp unmounted/metrics.jsonl kept.jsonl
for way in none link empty; do
  case $way in
    link) ln -s "$work/nowhere" unmounted/checkpoints ;;
    empty) rm unmounted/checkpoints; mkdir unmounted/checkpoints ;;
  esac
  status 3 resume unmounted
  says 'last is there, but no checkpoint' 'its disk mounted?'
  equal "metrics while checkpoints are away ($way)" "$(cksum <unmounted/metrics.jsonl)" "$(cksum <kept.jsonl)"
done
rmdir unmounted/checkpoints; mv elsewhere unmounted/checkpoints
status 0 resume unmounted train.steps=33
says 'going on from step 30'
cp -rL runs/tiny copied                                  # without its links
status 0 eval copied
status 3 resume copied
says 'copied/last is a folder, where a link to a checkpoint belongs'
rm -r copied/last copied/best
status 0 resume copied
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 755 "$work"; chmod 755 "$heed" 2>/dev/null
  as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$heed" "$@" >out 2>err; }
  status 0 train tiny.yaml --run others train.keep=2 train.save_every=5 train.average=1
  chown -R 65534:65534 others
  chown -R 0:0 others/checkpoints/step-00000025
  if as_nobody eval others; then                         # where the program can be reached
    as_nobody resume others train.steps=45
    equal 'resume beside a checkpoint of another user' $? 0
    says "warning: an old checkpoint stays: cannot remove"
    equal 'times it is said' "$(grep -c 'checkpoint stays' err)" 1
    chmod 700 others; chown 0:0 others
    as_nobody eval others
    equal 'eval of what may not be looked at' $? 4
    says 'cannot look at others' 'Permission denied'
    as_nobody train tiny.yaml --run others
    equal 'train where one may not look' $? 4
    says 'cannot look at others' 'Permission denied'
  fi
fi

# ---- a terminal that is lost ------------------------------------------------------------------------------
"$heed" train tiny.yaml --run lost train.steps=100000 train.save_every=1000000 train.validate_every=1000000 2>err &
soon 'grep -q "train step" err'
kill -HUP $!
wait $!
equal 'exit code after a hangup' $? 129
says 'stopped by signal 1; go on with: heed resume lost'
[ -e lost/last/state.json ] || fail 'a hangup lost the run'

report
