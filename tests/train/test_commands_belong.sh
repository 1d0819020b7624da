#!/bin/sh
# Commands refuse or report what does not belong together: weights, config, tokenizer, data.
# Usage: test_commands_belong.sh HEED
here=$(cd "${0%/*}" && pwd)
. "${0%/*}/commands_support.sh"

config tiny
status 0 train tiny.yaml train.average=2 train.save_every=1 data.synthetic.valid=0
status 0 train tiny.yaml --run plain
printf 'a b c\nb\n' >src

# ---- keys of the model on the command line --------------------------------------------------------------
fixed='a run keeps its model, because its weights fit no other; to change it, start a new run with heed train'
for command in 'eval plain' 'generate plain --input src' 'score plain --source src --target src' \
               'attention plain --input a --json' 'trace plain --input a --target a' \
               'prune plain --share 0.1 --run never'; do
  status 2 $command model.heads=4
  says "model.heads: $fixed"
done
status 2 resume plain model.heads=4
says "model.heads: $fixed"
status 2 eval plain tokenizer.kind=word
says 'tokenizer.kind: a run keeps its tokenizer'
absent never
status 0 eval plain decode.beam=3 train.batch_tokens=100 threads=1 model.dropout=0.5 data.synthetic.test=20

# ---- a config edited by hand ----------------------------------------------------------------------------
# edited NAME WHAT: a copy of the run whose config was edited with sed
edited() { rm -rf "$1"; cp -r plain "$1"; sed -i "$2" "$1/config.yaml"; }
edited heads 's/^  heads: 2/  heads: 4/'
status 0 quantize plain --run small
cp -r small small-heads; sed -i 's/^  heads: 2/  heads: 4/' small-heads/config.yaml
status 0 prune plain --share 0.1 --run thin
cp -r thin thin-heads; sed -i 's/^  heads: 2/  heads: 4/' thin-heads/config.yaml
cp -r runs/tiny mean-heads; sed -i 's/^  heads: 2/  heads: 4/' mean-heads/config.yaml
[ -e mean-heads/average ] || fail 'the run has no mean of checkpoints'
for command in 'eval heads' 'eval heads --weights last' 'eval heads --weights 15' 'eval heads --weights plain/best' \
               'generate heads --input src' 'score heads --source src --target src' 'attention heads --input a --json' \
               'trace heads --input a --target a' 'prune heads --share 0.1 --run never' 'quantize heads --run never' \
               'resume heads train.steps=40' 'eval small-heads' 'eval thin-heads' 'eval mean-heads' \
               'train tiny.yaml --run never train.distill.teacher=heads'; do
  status 3 $command
  says '/config.yaml: model.heads is 4, but the weights in ' ' were trained with 2'
  says 'restore the value; other values need a new run (heed train)'
done
absent never
status 0 report heads --output page.html                  # its results are recorded; the page says why no weights were read
holds page.html 'model.heads is 4, but the weights in heads/best were trained with 2'
edited positions 's/^  positions: sinusoidal/  positions: none/'
status 3 eval positions
says 'positions/config.yaml: model.positions is none, but the weights in positions/best were trained with sinusoidal'
edited task 's/^task: seq2seq/task: text2text/'
status 3 eval task
says 'task/config.yaml: task is text2text, but the weights in task/best were trained with seq2seq'
status 3 resume task
edited harmless 's/^  init: .*/  init: normal/; s/^  steps: 30/  steps: 31/'
status 0 eval harmless
says 'it was edited after the run began'
status 0 resume harmless

# ---- another tokenizer ------------------------------------------------------------------------------------
cp -r plain swapped                                      # two characters exchanged, also in a run without run.json
awk 'NR == 5 { held = $0; next } { print } NR == 6 { print held }' plain/tokenizer.vocab >swapped/tokenizer.vocab
cp -r swapped unrecorded; rm unrecorded/run.json
for run in swapped unrecorded; do
  for command in "eval $run" "resume $run train.steps=40" "quantize $run --run never" \
                 "train tiny.yaml --run never train.distill.teacher=$run" \
                 "train tiny.yaml --run never model.init_from=$run" \
                 "train tiny.yaml --run never model.init_from=$run tokenizer.model=plain/tokenizer.vocab"; do
    status 3 $command
    says "$run/tokenizer.vocab: "
  done
done
status 3 eval unrecorded
says 'unrecorded/tokenizer.vocab: not the tokenizer that the weights in unrecorded/best were trained with'
absent never
rm unrecorded/tokenizer.vocab
status 3 eval unrecorded
says 'unrecorded/tokenizer.vocab: '
status 0 train tiny.yaml --run onward model.init_from=heads model.heads=4 train.steps=2
says 'warning: model.init_from: model.heads is 4, but the weights in heads/best were trained with 2'
status 0 train tiny.yaml --run onward --overwrite model.init_from=plain train.steps=2
checks=$((checks + 1)); grep -q 'warning: model.init_from' err && fail 'equal models cause a warning'

# ---- data other than those of the training ---------------------------------------------------------------
# words N FILE: N different lines of letters
words() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; ++i) printf "%c %c %c\n", 97 + i % 6, 97 + int(i / 6) % 6, 97 + int(i / 36) % 6 }' >"$2"; }
words 100 train.txt; words 120 all.txt; tail -n 20 all.txt >test.txt
cat >files.yaml <<CONFIG
data: {train: {source: train.txt, target: train.txt}, valid_fraction: 0.1, test: {source: test.txt, target: test.txt}}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 16, layers: 1, dropout: 0}
train: {steps: 2, batch_tokens: 256}
decode: {max_length: 12}
CONFIG
status 0 train files.yaml --run files
quiet() { checks=$((checks + 1)); if grep -q "$1" err; then fail "$2"; fi; }
quiet warning 'a warning about data without a fault'
for options in '' '--split valid' '--source src --target src'; do
  status 0 eval files $options
  quiet warning "a warning of eval $options on unchanged data"
done
sed -i '1s/.*/a a a/' test.txt
status 0 eval files
says "warning: data.test: its samples are not those of the run's training (run.json), so the metrics cannot be compared" \
  'restore test.txt, test.txt'
status 0 quantize files --run files-int8
status 0 eval files-int8
says 'warning: data.test: its samples are not those'
status 0 prune files --share 0.1 --run files-pruned
status 2 resume files-pruned
says 'files-pruned has no optimizer state'
checks=$((checks + 1)); grep 'samples differ' err | grep -qv 'data.test' && fail 'unchanged data of a pruned run are reported as changed'
for sums in files-int8 files-pruned; do
  equal "sums of the data of $sums" "$(grep -A 4 '"data"' $sums/run.json)" "$(grep -A 4 '"data"' files/run.json)"
done
status 0 eval files --split valid
quiet warning 'a warning about the test data when the validation data are evaluated'
status 0 eval files data.test.target=train.txt data.test.source=train.txt
quiet 'its samples are not' 'a warning about data that the command line names'

# ---- lists of files that pair wrongly ---------------------------------------------------------------------
words 3 three; words 5 five
status 3 train files.yaml --run never 'data.train={source: [three, five], target: [five, three]}'
says "source and target differ in the number of lines: 3 in $work/three, 5 in $work/five"
status 0 train files.yaml --run joined 'data.train={source: [three, five], target: [three, five]}' data.valid_fraction=0
words 8 eight                                             # other numbers of files: only the totals count
status 2 train files.yaml --run never 'data.train={source: [three, five], target: eight}' data.valid_fraction=0
status 0 eval files --source three --source five --target eight
absent never

# ---- outputs that are cut -----------------------------------------------------------------------------------
status 0 eval plain decode.max_length=3 decode.min_length=3 --json
holds out '"cut_outputs":30[,}]'
status 0 eval plain decode.max_length=3 decode.min_length=3
holds out '^30 of 30 outputs were cut at 3 tokens \(decode.max_length\)$'
status 0 eval plain decode.max_length=2 decode.beam=1 --json --output outputs
equal 'outputs that are cut' "$(sed -n 's/.*"cut_outputs":\([0-9]*\).*/\1/p' out)" "$(awk 'length == 2' outputs | wc -l | tr -d ' ')"
status 0 train tiny.yaml --run plain-cut decode.max_length=3 decode.min_length=3
says 'note: 30 of 30 outputs were cut at their maximum length (decode.max_length, model.max_positions)'
printf 'a b\nc\n\n' >three-lines
status 0 generate plain --input three-lines --max-length 2 decode.min_length=2
says 'note: 2 of 2 outputs were cut at 2 tokens (decode.max_length)'
status 0 generate plain --input three-lines --max-length 2 --nbest 2 decode.beam=2 decode.min_length=2
says 'note: 4 of 4 outputs were cut'
status 0 generate plain --input three-lines --max-length 60
printf 'a b c d\nc\n\n' >prefixes
status 3 generate plain --input three-lines --prefix prefixes --max-length 6
says '--prefix: line 1 has 7 tokens, but an output has at most 6; raise decode.max_length (--max-length)'
status 0 generate plain --input three-lines --prefix prefixes --max-length 7

# ---- warnings about the experiment --------------------------------------------------------------------------
# warns TEXT ARGS...: training prints the warning once and logs it
warns() {
  text=$1; shift
  status 0 train files.yaml --run warned --overwrite "$@"
  says "$text"
  equal "lines of train.log with: $text" "$(grep -cF -- "$text" warned/train.log)" 1
  equal "printed lines with: $text" "$(grep -cF -- "$text" err)" 1
}
words 20 test.txt
warns 'warning: data.test: 100 % of it, in bytes, are lines that data.train also contains'
cp train.txt valid.txt
warns 'warning: data.valid: 100 % of it' 'data.valid={source: valid.txt, target: valid.txt}' data.valid_fraction=0
tail -n 20 all.txt >test.txt
{ head -n 11 train.txt; tail -n 10 all.txt; } >half.txt; { head -n 9 train.txt; tail -n 10 all.txt; } >less.txt
warns 'warning: data.test: 52 % of it' 'data.test={source: half.txt, target: half.txt}'
printf '\0\0\10\3\0\0\0\4\0\0\0\2\0\0\0\2abcdefghijklmnop' >images.idx; printf '\0\0\10\1\0\0\0\4\0\1\0\1' >labels.idx
cp images.idx copied.idx                                  # the names of the samples differ, but not the samples
cat >images.yaml <<CONFIG
task: classify
data: {input: image, image: {height: 2, width: 2, patch: 1}, train: {source: images.idx, target: labels.idx},
       test: {source: copied.idx, target: labels.idx}}
model: {d_model: 16, heads: 2, d_ff: 16, layers: 1}
train: {steps: 1}
CONFIG
status 0 train images.yaml --run images
says 'warning: data.test: 100 % of it'
printf '\0\0\10\3\0\0\0\4\0\0\0\2\0\0\0\2abcdefghijklmnoq' >copied.idx
status 0 train images.yaml --run images --overwrite
quiet warning 'a warning about other images'
status 0 train files.yaml --run warned --overwrite 'data.test={source: less.txt, target: less.txt}'
quiet warning 'a warning about test data of which less than half occur in the training data'
printf 'a ж z\n' >foreign; cat train.txt >>foreign
printf 'a ж b\nз a\n' >foreign                             # 3 of 8 characters, spaces included
warns 'warning: data.test.source: the tokenizer does not know 25.0 % of the tokens, such as "ж"' \
  'data.test={source: foreign, target: foreign}'
says 'warning: data.test.target: the tokenizer does not know'
{ cat train.txt train.txt; echo 'ж'; } >rarely                # 0.1 % of the tokens
status 0 train files.yaml --run warned --overwrite 'data.valid={source: rarely, target: rarely}' data.valid_fraction=0
quiet 'does not know' 'a warning about rare characters'
sed 's/.*/same/' train.txt >same
sed 's/.*/same/' train.txt >same; sed 's/.*/same/' test.txt >same-test
cat >label.yaml <<CONFIG
task: classify
data: {train: {source: train.txt, target: same}, test: {source: test.txt, target: same-test}}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 16, layers: 1}
train: {steps: 2, batch_tokens: 256}
CONFIG
status 0 train label.yaml --run label
says 'warning: data.train: every label is "same", so there is nothing to learn'
sed -i '1s/.*/other/' same
status 0 train label.yaml --run label --overwrite
says 'warning: data.test: every label is "same", so its metrics say nothing about the others: shuffle the data'
sed -i '1s/.*/other/' same-test
status 0 train label.yaml --run label --overwrite
quiet warning 'a warning about two labels'
: >none; awk 'BEGIN { for (i = 0; i < 90; ++i) printf "a "; print "" }' >long
mixture='mixture: {prefixes: ["p: ", "q: "]}, valid_fraction: 0, max_length: 50, test: {source: [three, five], target: [three, five]}'
warns 'warning: data.train: part "q" of the mixture has no line' task=text2text "data={train: {source: [train.txt, none], target: [train.txt, none]}, $mixture}"
warns 'warning: data.train: part "p" of the mixture is left out, because each of its 1 lines is empty or too long: raise data.max_length (50)' \
  task=text2text "data={train: {source: [long, train.txt], target: [long, train.txt]}, $mixture}"
warns 'warning: data.valid: 10 of 10 targets have more than 2 tokens (decode.max_length), so their outputs are cut: raise' decode.max_length=2
warns 'train.rdrop=1: without dropout, both passes of a step are equal: set model.dropout, or train.rdrop to 0' train.rdrop=1
status 0 train files.yaml --run warned --overwrite train.rdrop=1 model.dropout.attention=0.1
quiet warning 'a warning about rdrop with dropout'
warns 'decode.temperature=0.5: has no effect: set decode.sample to true' decode.temperature=0.5
status 0 train files.yaml --run warned --overwrite decode.temperature=0.5 decode.sample=true
quiet warning 'a warning about the temperature of sampling'
warns 'decode.top_p=0.9: has no effect' decode.top_p=0.9

# ---- verify ---------------------------------------------------------------------------------------------------
status 0 verify runs/tiny
status 0 verify runs/tiny/                               # as the completion of a shell leaves it
holds out '^runs/tiny: whole$' '^  version +[0-9]' '^  started +20' '^  command +.*train tiny.yaml' '^  checkpoints +2' '^  task +seq2seq$'
status 0 verify files --json
holds out '"whole":true' '"findings":\[\]' '"data.test.source":\["test.txt"\]' '"data.train.target":\["train.txt"\]' '"seed":1'
for run in files-int8 files-pruned onward; do status 0 verify $run; done
status 0 verify onward
holds out '^  model.init_from +plain$'
tar -cf given.tar -C runs tiny; mkdir received; tar -xf given.tar -C received
status 0 verify received/tiny
cp -r "$here/old_run" old
status 0 verify old
status 2 verify nowhere
status 2 verify tiny.yaml
# finds TEXT COMMAND: verify reports what the command does to a copy of a run, on one line
finds() {
  rm -rf bad; cp -r plain bad; (cd bad && eval "$2")
  status 3 verify bad
  checks=$((checks + 1)); sed "s|$work/||" out | grep -qF -- "finding: $1" || { fail "verify does not find: $1"; cat out; }
  status 3 verify bad --json
  holds out '"whole":false'
}
finds 'bad/config.yaml: model.heads is 4, but the weights in bad/checkpoints/step-00000030 were trained with 2' "sed -i 's/^  heads: 2/  heads: 4/' config.yaml"
finds 'bad/config.yaml: it was edited after the run began' "echo '# a' >>config.yaml"
finds 'bad/config.yaml:' "sed -i 's/^seed: 1/seed: x/' config.yaml"
finds 'bad/tokenizer.vocab: ' 'echo x >>tokenizer.vocab'
finds 'bad/tokenizer.vocab: not the tokenizer that the weights in bad/checkpoints/step-00000015 were trained with' 'rm run.json; echo x >>tokenizer.vocab'
finds 'bad/run.json' 'rm run.json'
finds 'bad/checkpoints/step-00000015/training.safetensors: its content has changed' "printf x | dd of=checkpoints/step-00000015/training.safetensors bs=1 seek=200 conv=notrunc 2>/dev/null"
finds 'bad/checkpoints/step-00000015: state.json has no entry for extra' '> checkpoints/step-00000015/extra'
finds 'bad/checkpoints/step-00000015/state.json: its content has changed' "sed -i 's/\"epoch\": 0/\"epoch\": 1/; s/\"seconds\": /\"seconds\": 1/' checkpoints/step-00000015/state.json"
finds 'bad: no checkpoint' 'rm -r checkpoints best last'
finds 'bad/best: a link to checkpoints/step-00000030, which is missing' 'rm -r checkpoints/step-00000030'
finds 'bad/best: a link to /etc; a run has only the links best and last, to checkpoints' 'rm best; ln -s /etc best'
finds 'bad/best: a link to ../plain/checkpoints/step-00000030;' 'rm best; ln -s ../plain/checkpoints/step-00000030 best'
finds 'bad/tokenizer.vocab: a link to ../plain/tokenizer.vocab;' 'rm tokenizer.vocab; ln -s ../plain/tokenizer.vocab tokenizer.vocab'
finds 'bad/checkpoints/step-00000030: a link to ' 'rm -r checkpoints/step-00000030; ln -s ../../plain/checkpoints/step-00000030 checkpoints/step-00000030'
finds 'bad/run.json: neither a file nor a folder' 'rm run.json; mkfifo run.json'
finds 'bad/config.yaml: a link to ' 'mv config.yaml ..; ln -s ../config.yaml config.yaml'
rm config.yaml; mkdir elsewhere
finds 'bad/checkpoints: a link to ../elsewhere' 'rm -r checkpoints; ln -s ../elsewhere checkpoints'
finds 'bad/libevil.so: heed does not write this file' 'echo x >libevil.so'
finds 'bad/checkpoints/scripts: heed does not write this folder' 'mkdir checkpoints/scripts; echo x >checkpoints/scripts/x'
finds 'bad/checkpoints/step-00000015/scripts: heed does not write this folder' 'mkdir checkpoints/step-00000015/scripts'
finds 'bad/metrics.jsonl' 'sed -i "1s/.*/{/" metrics.jsonl'
finds 'bad/last and bad/best are folders instead of links' 'cp -rL best b; rm best; mv b best; cp -rL last l; rm last; mv l last'
echo 'not a library' >plug.so
finds 'plugin plug.so: not the library that the run was started with' "sed -i 's|^plugins: .*|plugins: [plug.so]|' config.yaml"
holds out "\"plugins\":\\[\\{\"file\":\"plug.so\",\"sha256\":\"$(sha256sum plug.so | cut -d' ' -f1)\""
# A name that only a plugin registers: the plugin is not loaded, so the config cannot be compared.
edited named "s|^plugins: .*|plugins: [plug.so]|; s/^  mixer: .*/  mixer: mine.gate/"
sed -i "s|\"plugins\": \[\]|\"plugins\": [{\"file\": \"plug.so\", \"sha256\": \"$(sha256sum plug.so | cut -d' ' -f1)\"}]|" named/run.json
status 3 verify named
holds out '^  plugins +plug.so \(SHA-256 [0-9a-f]{64}\)$' '^note: config.yaml is not compared with the weights' '^finding: named/config.yaml: it was edited'
equal 'findings about a run with a plugin' "$(grep -c ^finding out)" 1
sed -i "s|^plugins: .*|plugins: [other.so, plug.so]|" named/config.yaml   # run.json does not decide what is listed
status 3 verify named
holds out '^  plugins +other.so \(SHA-256 unknown\)$' '^  plugins +plug.so '
rm plug.so
status 3 verify named
holds out '^note: plugin .*plug.so: no such file'
mkdir -p plain/reports; cp tiny.yaml plain/reports/page.html
status 0 verify plain

report
