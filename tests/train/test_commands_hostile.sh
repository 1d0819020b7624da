#!/bin/sh
# Run folders that came from somebody else: nothing outside of them is read as theirs or changed.
# Usage: test_commands_hostile.sh HEED
. "${0%/*}/commands_support.sh"
heed_itself=$heed
heed="$work/limited"                                     # a command that waits for a pipe fails after two minutes
printf '#!/bin/sh\nexec timeout 120 "%s" "$@"\n' "$heed_itself" >limited; chmod +x limited

config tiny
echo 'line 1 of a thesis' >thesis; cp thesis thesis.before
status 0 train tiny.yaml --run original train.tensorboard=true
status 0 eval original
printf 'a b\n' >src
# unharmed WHAT: no file outside the run folder has changed
unharmed() {
  checks=$((checks + 1)); cmp -s thesis thesis.before || { fail "$1 changed a file elsewhere"; cp thesis.before thesis; }
  equal "files in a linked folder after $1" "$(ls -A mine | tr '\n' ' ')" 'notes '
}
mkdir mine; echo precious >mine/notes
# received: a fresh copy of the run
received() { rm -rf run; cp -r original run; }

# ---- links, pipes and folders in place of files and folders -------------------------------------------
step=checkpoints/step-00000030
for name in metrics.jsonl train.log run.json config.yaml .lock outputs.jsonl evaluations.jsonl tokenizer.vocab \
            $step/model.safetensors $step/state.json; do
  for kind in link dangling pipe folder; do
    received
    rm -f "run/$name"
    case $kind in
      link) ln -s "$work/thesis" "run/$name" ;;
      dangling) ln -s "$work/absent" "run/$name" ;;
      pipe) mkfifo "run/$name" ;;
      folder) mkdir "run/$name" ;;
    esac
    # A folder is as harmless within a checkpoint as a missing file: an older checkpoint is used.
    [ $kind = folder ] && case $name in checkpoints/*) continue ;; esac
    set -- 'resume run train.steps=31' 'eval run' "generate run --input src"
    [ "$name $kind" = 'config.yaml link' ] && set -- "$@" 'show run/config.yaml' 'plot schedule run/config.yaml' 'bench run/config.yaml' \
      'train run/config.yaml --run other' 'sweep run/config.yaml --run other model.heads=1'
    for command; do
      status 3 $command
      says "run/$name: not a regular file" 'or remove it'
      unharmed "$command with a $kind as $name"
    done
    absent absent
  done
done
for name in checkpoints average tensorboard reports $step; do
  received; rm -rf "run/$name"; ln -s "$work/mine" "run/$name"
  for command in 'resume run train.steps=31' 'eval run' 'report run' "attention run --input a"; do
    status 3 $command
    says "run/$name: not a "
    unharmed "$command with a linked $name"
  done
done
received; mkdir -p run/reports; rm -f run/reports/*; : >blank; ln -s "$work/blank" run/reports/report.html
status 3 report run
equal 'bytes that a report wrote into a linked file' "$(wc -c <blank | tr -d ' ')" 0
for target in ../mine best ../../elsewhere "$work/original/checkpoints/step-00000030" checkpoints checkpoints/..; do
  for name in best last; do
    received; ln -sfn "$target" run/$name
    for command in 'eval run' 'resume run train.steps=31' 'show run'; do
      status 3 $command
      says "run/$name: a link to $target, which is no checkpoint of this run"
      unharmed "$command with $name -> $target"
    done
  done
done
received; ln -s run reached                              # the folder itself may be reached by a link
status 0 resume reached train.steps=31
status 0 eval reached

# ---- a second name (hard link) ------------------------------------------------------------------------
for name in metrics.jsonl train.log .lock .config.yaml.tmp; do
  received; rm -f "run/$name"; ln thesis "run/$name"
  status 3 resume run train.steps=31
  says "run/$name: the file has a second name (a hard link)"
  unharmed "resume with a hard link as $name"
done
received; rm run/evaluations.jsonl; ln thesis run/evaluations.jsonl
status 0 eval run
says 'the result is not recorded in the run' 'a second name'
unharmed 'eval with a hard link as evaluations.jsonl'
received; cp -al run backup                              # a backup that shares its files remains as it was
status 3 resume run train.steps=31
checks=$((checks + 1)); diff -r backup original >/dev/null || fail 'resume changed a backup of hard links'
status 0 eval backup
rm -r backup

# ---- leftovers of an interrupted write ----------------------------------------------------------------
for kind in link pipe folder; do
  for name in config.yaml run.json; do
    received
    case $kind in
      link) ln -s "$work/thesis" "run/.$name.tmp" ;;
      pipe) mkfifo "run/.$name.tmp" ;;
      folder) mkdir "run/.$name.tmp" ;;
    esac
    status 3 resume run train.steps=31
    says "run/.$name.tmp: a link, folder, pipe or device in place of a regular file: remove it"
    unharmed "resume with a $kind as .$name.tmp"
  done
done

# ---- a new run in a folder with heed's lock -----------------------------------------------------------
for name in train.log metrics.jsonl tokenizer.vocab; do
  rm -rf run; mkdir run; echo 'heed 1' >run/.lock; ln -s "$work/thesis" "run/$name"
  status 3 train tiny.yaml --run run
  says "run/$name: not a regular file, but a link"
  unharmed "train with a linked $name"
  status 0 train tiny.yaml --run run --overwrite train.steps=2
  unharmed "train --overwrite with a linked $name"
done
rm -rf run; mkdir run; mkfifo run/.lock
for overwrite in '' --overwrite; do
  status 2 train tiny.yaml --run run $overwrite
  says 'run/.lock is not known to belong to a run'
done

# ---- text of received files in train.log --------------------------------------------------------------
received
sed -i 's/"cpu": "[^"]*"/"cpu": "x\\ntouch owned\\u001b[2J"/' run/run.json
status 0 resume run train.steps=31
equal 'lines of train.log that a received text has begun' "$(grep -c '^touch owned' run/train.log)" 0
holds run/train.log 'cpu: .*; previously x\\ntouch owned\\x1b'
equal 'escape characters on the terminal' "$(tr -d -c '\033' <err | wc -c | tr -d ' ')" 0

# ---- a list with runs that cannot be read ---------------------------------------------------------------
mkdir shelf; cp -r original shelf/whole
cp -r original shelf/loop; ln -sfn best shelf/loop/best
cp -r original shelf/piped; rm shelf/piped/metrics.jsonl; mkfifo shelf/piped/metrics.jsonl
cp -r original shelf/wrong; sed -i 's/^task:.*/task: no-such-task/' shelf/wrong/config.yaml
sed -i 's/"plugins": \[\]/"plugins": [{"file": "x.so"}]/' shelf/wrong/run.json
cp -r original shelf/spelt; sed -i 's/^task:.*/task: no-such-task/' shelf/spelt/config.yaml; echo '{' >shelf/spelt/run.json
status 0 runs shelf
holds out '^shelf/whole +seq2seq +finished' 'shelf/loop .*broken: shelf/loop/best: a link to best' \
          'shelf/piped .*broken: shelf/piped/metrics.jsonl: not a regular file' \
          'shelf/wrong .*broken: .*task: .*no-such-task.*perhaps a name from a plugin' 'shelf/spelt .*broken: .*task: .*no-such-task'
equal 'broken runs that a plugin is named for' "$(grep -c plugin out)" 1
status 0 runs shelf --json
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 755 "$work"; cp "$heed_itself" ./heed; chmod 755 heed
  mkdir -p shelf/shut shelf/locked; chmod 700 shelf/shut
  cp original/config.yaml original/.lock shelf/locked; chmod 600 shelf/locked/.lock
  chmod 600 shelf/spelt/config.yaml
  if setpriv --reuid 65534 --regid 65534 --clear-groups ./heed runs shelf >out 2>err; then
    holds out '^shelf/whole +seq2seq +finished' 'shelf/locked .*broken: cannot open shelf/locked/.lock: Permission denied' \
              'shelf/spelt .*broken: .*Permission denied'
  else
    fail 'an unreadable folder ended the list of runs'
  fi
fi

# ---- files that are too large to read -----------------------------------------------------------------
for name in metrics.jsonl outputs.jsonl train.log; do
  received; truncate -s 4T run/$name 2>/dev/null || continue   # a file system without sparse files of this size
  status 3 report run
  says "run/$name: longer than "
done
received
state=run/last/state.json
if truncate -s 4T run/last/model.safetensors 2>/dev/null; then   # a checksum that would take hours
  sed -i '/"model.safetensors"/,/}/s/"bytes": [0-9]*/"bytes": 4398046511104/' $state
  sum=$(sed '/^  "sha256"/d' $state | sha256sum | cut -d ' ' -f 1)
  sed -i "s/^  \"sha256\": \"[0-9a-f]*\"/  \"sha256\": \"$sum\"/" $state
  status 3 eval run --weights last
  says 'model.safetensors: its 4398046511104 bytes exceed the memory of this machine'
  status 0 resume run train.steps=31
  says 'skipped a damaged checkpoint' 'exceed the memory of this machine' 'continuing from step 15'
fi

report
