#!/bin/sh
# Commands refuse or report what does not belong together: weights, config, tokenizer, data.
# Usage: test_commands_belong.sh HEED
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

report
