#!/bin/sh
# Overwriting of outputs, run folders and folders that are not runs.
# Usage: test_commands_folders.sh HEED
. "${0%/*}/commands_support.sh"

config tiny
status 0 train tiny.yaml
printf 'a b c\nb\n' >src
status 0 generate runs/tiny --input src
cp out plain
# same FILE: the file contains the output of generate
same() { checks=$((checks + 1)); cmp -s plain "$1" || fail "$1 does not contain the translations"; }

# ---- outputs ----------------------------------------------------------------------------------------
ln -s /proc/self/fd/1 pipe-out                           # like /dev/stdout
"$heed" generate runs/tiny --input src --output pipe-out >redirected 2>err
same redirected
echo before >appended
"$heed" generate runs/tiny --input src --output pipe-out >>appended 2>err
equal 'first line of a file that output is appended to' "$(head -n 1 appended)" before
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
says 'shared.tmp: another process is writing this file'
exec 9>&-
wait $!
same shared
mkdir -p project/checkpoints
printf 'data: {synthetic: {name: copy}}\noptim: {name: adamw}\n' >project/config.yaml
status 0 show project/config.yaml
checks=$((checks + 1)); grep -q 'decay: matrices' out || fail 'a config beside a folder named checkpoints is read as a run'
for inside in runs/tiny/best runs/tiny/checkpoints/another; do
  status 2 train tiny.yaml --run $inside --overwrite
  says "$inside is inside the run $work/runs/tiny: choose another folder with --run"
done
status 2 score runs/tiny --source - --target -
status 2 eval runs/tiny --source - --target -
says 'only one file can be standard input'
for there in - /dev/stdout /dev/fd/1; do
  status 2 eval runs/tiny --source src --target src --json --output $there
done
status 4 eval runs/tiny --source src --target src --output nowhere/out
equal 'lines printed by an eval whose output cannot be created' "$(lines out)" 0
status 2 generate runs/tiny --input src --output ''
says '--output: expected a file name or -'
echo before >kept
"$heed" generate runs/tiny --input src --output /dev/fd/3 3>>kept 2>err
equal 'first line of a file that output is appended to through a descriptor' "$(head -n 1 kept)" before
[ ! -c /dev/null ] || { "$heed" generate runs/tiny --input src --output /dev/null >&- 2>err; equal 'exit code with output to /dev/null' $? 0; }
mkfifo question answer
"$heed" score runs/tiny --source question --target src --output answer 2>err &
sh -c 'cat src >question; cat answer >answered'
wait $!
equal 'lines received by a reader that starts after the writer' "$(lines answered)" 2
status 0 eval runs/tiny --json --output /dev/null
"$heed" eval runs/tiny --json --output /dev/null >/dev/null 2>err
equal 'exit code of eval with all of its output to /dev/null' $? 0
mkfifo patiently
for signal in HUP INT; do                                # ignored under nohup and in background processes of a shell
  sh -c "trap '' HUP INT; exec \"\$0\" generate runs/tiny --input patiently --output kept-$signal" "$heed" 2>/dev/null &
  exec 9>patiently
  cat src >&9
  soon "[ -e .kept-$signal.tmp ]"
  kill -$signal $!
  cat src >&9
  exec 9>&-
  wait $!
  equal "exit code after an ignored SIG$signal" $? 0
  equal 'lines of output' "$(lines kept-$signal)" 4
done

# ---- outputs that are also inputs -----------------------------------------------------------------------
cp src before
ln -s src soft; ln src hard; mkdir sub; ln -s ../src sub/deep
unchanged() { checks=$((checks + 1)); cmp -s src before || fail "$1 overwrote its input"; }
for name in src ./src soft hard sub/deep "$work/src"; do
  for command in "generate runs/tiny --input src" "score runs/tiny --source src --target before" \
                 "score runs/tiny --source before --target src" "eval runs/tiny --source src --target before" \
                 "eval runs/tiny --source before --target src"; do
    status 2 $command --output $name
    says "--output: $name is the same file as src, which is read"
    unchanged "$command --output $name"
  done
done
"$heed" generate runs/tiny --output soft <src >out 2>err; equal 'exit code if the output is also standard input' $? 2
says '--output: soft is the same file as standard input'
"$heed" generate runs/tiny --input src >>hard 2>err; equal 'exit code if the input is also standard output' $? 2
says '--output: standard output is the same file as src'
unchanged 'generate >>'
for name in config.yaml run.json metrics.jsonl tokenizer.vocab last/model.safetensors; do    # files of the run itself
  cp runs/tiny/$name kept
  for command in "generate runs/tiny --input src" "score runs/tiny --source src --target before" \
                 "eval runs/tiny --source src --target before"; do
    status 2 $command --output runs/tiny/$name
    says "--output: runs/tiny/$name is the same file as"
  done
  checks=$((checks + 1)); cmp -s runs/tiny/$name kept || fail "an output replaced the run's $name"
done
cat >split.yaml <<CONFIG
data: {train: {source: src, target: src}, test: {source: src, target: before}}
tokenizer: {kind: char}
model: {d_model: 8, heads: 2, d_ff: 8, layers: 1}
train: {steps: 1}
CONFIG
status 0 train split.yaml --run split
for name in soft before; do
  status 2 eval split --output $name
  says "--output: $name is the same file as"
done
unchanged 'eval of a split'
cmp -s src before || fail 'the reference was overwritten'
status 0 generate runs/tiny --input src --output another  # other files are replaced
status 0 generate runs/tiny --input src --output another
same another
rm hard

# ---- standard error cannot be written to --------------------------------------------------------------
for command in "train nowhere.yaml" "eval nowhere" "fetch nothing" "score runs/tiny --target src" "trian"; do
  "$heed" $command >out 2>err
  expected=$?
  "$heed" $command >out 2>&-
  equal "exit code of $command with standard error closed" $? $expected
  [ ! -w /dev/full ] || {
    "$heed" $command >out 2>/dev/full; equal "exit code of $command with standard error on a full disk" $? $expected
  }
done
cp -r runs/tiny edited
echo '# a remark' >>edited/config.yaml
"$heed" eval edited >out 2>&-
equal 'exit code of eval with a note that cannot be printed' $? 0

# ---- folders that are not runs -------------------------------------------------------------------------
for name in run.json metrics.jsonl train.log best last average tokenizer.vocab; do
  mkdir mine; echo precious >mine/$name
  for overwrite in '' --overwrite; do                    # the message recommends another folder in both cases
    status 2 train tiny.yaml --run mine $overwrite
    says "mine/$name is not known to belong to a run" 'even with --overwrite: choose another folder with --run'
  done
  holds mine/$name '^precious$'
  rm -r mine
done
mkdir mine; echo '{"tool": "another"}' >mine/run.json; mkdir mine/checkpoints; echo precious >mine/checkpoints/weights
for overwrite in '' --overwrite; do
  status 2 train tiny.yaml --run mine $overwrite
  says "mine/checkpoints is not known to belong to a run" 'even with --overwrite: choose another'
done
holds mine/checkpoints/weights precious
rm -r mine; mkdir mine; cp tiny.yaml mine/config.yaml; mkdir mine/checkpoints; echo precious >mine/checkpoints/weights
status 2 resume mine
says 'not a run (there is a config.yaml, but neither a run.json nor a checkpoint)'
equal 'files after resume in a folder that is not a run' "$(ls -A mine | wc -l)" 2
for overwrite in '' --overwrite; do
  status 2 train tiny.yaml --run mine $overwrite
  says "mine/config.yaml is not known to belong to a run" 'even with --overwrite: choose another'
done
for lock in 'precious' '4711'; do                        # lock of another program
  echo "$lock" >mine/.lock
  status 2 train tiny.yaml --run mine --overwrite
  status 2 resume mine
  holds mine/.lock "^$lock\$"
  holds mine/checkpoints/weights precious
done
rm -r mine; mkdir mine; echo 4711 >mine/.lock
status 2 train tiny.yaml --run mine
says "mine/.lock is not known to belong to a run"
status 2 train tiny.yaml --run mine --overwrite
holds mine/.lock '^4711$'
: >mine/.lock; mkdir mine/checkpoints; echo precious >mine/checkpoints/weights
status 2 resume mine
equal 'bytes that resume wrote into the lock of another program' "$(wc -c <mine/.lock | tr -d ' ')" 0
status 2 train tiny.yaml --run mine --overwrite
holds mine/checkpoints/weights precious
cp -r runs/tiny unknown; rm unknown/run.json unknown/.lock # a resumable run: the message recommends resume
for overwrite in '' --overwrite; do
  status 2 train tiny.yaml --run unknown $overwrite
  says 'even with --overwrite: continue the run with `heed resume unknown`, choose another'
done
cp -r runs/tiny older; echo 4711 >older/.lock            # run.json shows that it is a run
status 0 resume older train.steps=31
rm -r mine; mkdir mine; echo precious >mine/notes.txt      # a file that belongs to no run
status 0 train tiny.yaml --run mine train.steps=2
echo '{"step' >mine/metrics.jsonl.damaged                # a resume keeps damaged metrics under this name
status 0 train tiny.yaml --run mine train.steps=2 --overwrite
absent mine/metrics.jsonl.damaged
holds mine/notes.txt precious

# ---- run.json contains the commit of the folder that heed was started in -----------------------------
export GIT_CEILING_DIRECTORIES="$work/.."
status 0 train tiny.yaml --run unversioned train.steps=2
checks=$((checks + 1)); grep -q '"revision"' unversioned/run.json && fail 'run.json has a revision outside a repository'
if command -v git >/dev/null; then
  export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
  git init -q . && git add tiny.yaml && git commit -q -m one
  status 0 train tiny.yaml --run versioned train.steps=2
  holds versioned/run.json "\"revision\": \"$(git rev-parse HEAD)\""
  echo '# changed' >>tiny.yaml
  status 0 train tiny.yaml --run changed train.steps=2
  holds changed/run.json "\"revision\": \"$(git rev-parse HEAD)-dirty\""
fi

report
