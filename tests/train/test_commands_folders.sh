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
for inside in runs/tiny/best runs/tiny/checkpoints/another runs/tiny/tensorboard/x runs/tiny/average; do
  for command in "train tiny.yaml" "prune runs/tiny --share 0.5" "sweep tiny.yaml seed=1,2"; do
    status 2 $command --run $inside
    says "$inside is inside the run $work/runs/tiny: choose another folder with --run"
    absent runs/tiny/tensorboard runs/tiny/checkpoints/another
  done
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
    says "--output: runs/tiny/$name is a file of the run"
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

# ---- outputs of every command: files of runs, of the config and of other programs ----------------------
cp src before; cp src data.txt; printf 'P5 1 1 255\n\0' >photo.pgm
sed 's/source: src, target: src/source: data.txt, target: data.txt/' split.yaml >named.yaml
status 0 train named.yaml --run named
# sums: prints the names and checksums of all files of the runs
sums() { find runs named data.txt photo.pgm -type f -exec cksum {} + | sort; }
outputs() {   # outputs RUN CONFIG: prints a command line for each command with an output
  cat <<COMMANDS
show $2
show $1
show $1 --json
trace $1 --input a
trace $2 --input a
attention $1 --input a
attention $1 --input a --json
report $1
report $1 --csv train.loss
compare $1
plot positions $2
generate $1 --input before
score $1 --source before --target before
eval $1 --source before --target before
COMMANDS
}
sums >sums.before
outputs runs/tiny tiny.yaml >commands
while read -r command; do
  for name in config.yaml run.json metrics.jsonl tokenizer.vocab .lock last/model.safetensors best checkpoints/new \
              train.log; do
    for run in runs/tiny named; do                       # the run itself, and another one
      status 2 $command --output $run/$name
      says "--output: $run/$name is a file of the run $work/$run: choose another name"
    done
  done
  for name in photo.pgm before; do
    case "$command $name" in *csv*before | *before*before | show*before | compare*before | *json*before) continue ;; esac
    case "$command $name" in trace*before) continue ;; esac   # text replaces text
    status 2 $command --output $name
    says "--output $name: heed has not written this file, and does not replace it"
  done
done <commands
outputs named named.yaml >commands
while read -r command; do
  status 2 $command --output data.txt
  says '--output: data.txt is the same file as data.txt, which is read'
done <commands
status 2 trace runs/tiny --input data.txt --output data.txt    # the name of an image is an input
says '--output: data.txt is the same file as data.txt, which is read'
ln -s ../runs/tiny/config.yaml sub/config
status 2 show tiny.yaml --output sub/config
says "--output: sub/config is a file of the run $work/runs/tiny"
"$heed" show tiny.yaml >>runs/tiny/metrics.jsonl 2>err; equal 'exit code of an output appended to metrics' $? 2
says "--output: standard output is a file of the run $work/runs/tiny"
checks=$((checks + 1)); sums | cmp -s - sums.before || fail 'an output changed a file of a run, of the config or of another program'
for _ in 1 2; do                                         # files that users keep in a run folder, and pages
  status 0 generate runs/tiny --input src --output runs/tiny/translations
  status 0 report runs/tiny
  status 0 trace runs/tiny --input a --output runs/tiny/reports/trace.html
done

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

# ---- a name that is not UTF-8 --------------------------------------------------------------------------
name=$(printf 'bad\377')
status 0 train tiny.yaml --run "$name" train.steps=2
status 0 resume "$name" train.steps=3
status 0 runs "$name" --json
status 0 report "$name"

# ---- a folder that is removed or replaced while a run uses it -------------------------------------------
saving() {   # saving RUN: whether a checkpoint is incomplete
  ls -A "$1/checkpoints" | grep -q '^[.]'
}
endless() {   # endless RUN: starts a run without end and pauses it after its first checkpoint
  "$heed" train tiny.yaml --run "$1" train.steps=100000000 >out 2>err.endless &
  soon "[ -e '$1/last' ]"
  kill -STOP $!
  while saving "$1"; do      # it would report the missing checkpoint
    kill -CONT $!; sleep 0.01; kill -STOP $!
  done
}
continued() {   # continued WHAT: the run ends with status 4 and names its folder
  kill -CONT $!
  wait $!
  equal "exit code of a run $1" $? 4
  cp err.endless err
  says 'taken: the folder, or its file .lock, was moved, removed or replaced while this process was using it'
}
endless taken
rm -r taken
continued 'whose folder was removed'
absent taken
endless taken
rm -r taken
status 0 train tiny.yaml --run taken
find taken -type f -exec cksum {} + | sort >sums.before
continued 'whose folder was made anew'
checks=$((checks + 1)); find taken -type f -exec cksum {} + | sort | cmp -s - sums.before || fail 'two runs wrote into one folder'
rm -r taken
endless taken
mv taken moved
continued 'whose folder was moved'
absent taken
status 0 eval moved

# ---- a full disk ---------------------------------------------------------------------------------------
# full ARGS...: runs heed, which can create files, but write nothing into them, and must exit with 4
full() {
  checks=$((checks + 1))
  (trap '' XFSZ; ulimit -f 0; exec "$heed" "$@") 2>&1 >/dev/null | cat >err
  grep -q 'File too large' err || fail "heed $* on a full disk"
}
full train tiny.yaml --run crowded
equal 'files of a run that could not begin' "$(ls -A crowded)" .lock
for overwrite in '' --overwrite; do
  cp -r crowded again
  status 0 train tiny.yaml --run again $overwrite train.steps=2
  rm -r again
done
cp -r runs/tiny crowded-run
full train tiny.yaml --run crowded-run --overwrite
full resume crowded-run train.steps=31
holds crowded-run/.lock '^heed [0-9]*$'
equal 'weights of a run that could not be replaced' "$(cksum <crowded-run/last/model.safetensors)" "$(cksum <runs/tiny/last/model.safetensors)"
rm crowded-run/run.json                                  # only the lock tells that the folder is a run
status 0 train tiny.yaml --run crowded-run --overwrite train.steps=2

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
