#!/bin/sh
# User errors: the message names the location, the exit code is correct, and nothing is left behind.
# Usage: test_commands_wrong.sh HEED
. "${0%/*}/commands_support.sh"

config tiny
status 0 train tiny.yaml
printf 'a b c\nb\nd e\n' >src
printf 'a b c\nb\n\n' >tgt
printf 'a\n' >short
printf 'a b\nb \377\n' >broken
awk 'BEGIN { for (i = 0; i < 500000; i++) printf "a "; print "" }' >long

# ---- wrong configs: all errors are reported, and nothing is left behind -------------------------------
cat >wrong.yaml <<CONFIG
name: wrong
data: {synthetic: {name: copy}}
train:
  lable_smoothing: 0.1
  steps: many
  keep: 0
  shards: 2
  shards: 4
CONFIG
status 2 train wrong.yaml
says 'wrong.yaml:4:3: train.lable_smoothing: unknown key (did you mean label_smoothing?)' \
  'wrong.yaml:5:10: train.steps' 'wrong.yaml:6:9: train.keep' 'wrong.yaml:8:3: train.shards'
status 2 train tiny.yaml --run never model.d_model=30 model.heads=4
says 'model.d_model=30: 30 is not a multiple of heads'
status 2 train tiny.yaml --run never train.stpes=3 decode.beam=-1
says 'train.stpes' 'did you mean train.steps?' 'decode.beam'
status 2 train tiny.yaml --run never tokenizer.specials=[a] train.stps=3
says 'tokenizer.specials=[a]: "a" is not a name like <mask>' '(did you mean train.steps?)'
status 2 train runs/tiny
says 'runs/tiny is a folder, but CONFIG must be a YAML file; heed resume continues a run'
status 2 train tiny.yaml --run ''
says '--run: expected a folder'
status 2 show reference seed=2
says 'seed=2: show reference and --schema accept no overrides'
status 2 show tiny.yaml --tape
says '--tape: give --output a name that ends in .svg'
status 2 show tiny.yaml --json --output never.svg
says '--output never.svg: only a model or, with --tape, a training step can be drawn'
status 2 show tiny.yaml --tape --output never.svg model.layers=20
says 'a drawing shows at most 400. Draw a smaller model, for example with model.layers=1'
status 2 show tiny.yaml --output tiny.yaml
status 2 show tiny.yaml --output never.eps
says '--output never.eps: heed show writes text, or a drawing to a file whose name ends in .svg, .png or .pdf'
status 2 plot softmax --output never.jpg
says '--output never.jpg: heed plot writes drawings to files whose names end in .svg, .png or .pdf'
status 2 train copy.yaml --lr 3
says 'not expected: --lr (a key of the config is set without dashes: optim.lr=…)'
status 2 train tiny.yaml --layers 2
says 'not expected: --layers (a key of the config is set without dashes: model.layers=… or model.front_end.layers=…)'
status 2 train copy.yaml --batch-tokens=9
says 'train.batch_tokens=…'
status 2 train copy.yaml --nonsense 9
! grep -qF 'without dashes' err || fail 'a hint for an option that is no key'
absent never.svg never.eps never.jpg
status 2 train nowhere.yaml
says "$work/nowhere.yaml"
status 2 train
status 2 trian tiny.yaml
says 'did you mean train?'
status 2
holds err '^Usage: heed' '^  gradcheck '
equal 'output of heed without arguments' "$(lines out)" 0
status 0 --help
cp out help
status 0 help
checks=$((checks + 1)); cmp -s out help || fail 'heed help and heed --help differ'
for command in train eval help; do
  status 0 $command --help
  cp out help
  status 0 help $command
  checks=$((checks + 1)); cmp -s out help || fail "heed help $command and heed $command --help differ"
done
status 2 help trian
says 'trian: no such command (did you mean train?)'

# ---- wrong data -------------------------------------------------------------------------------------
files() {   # files SOURCE TARGET: writes a config that trains on these files
  cat >files.yaml <<CONFIG
data: {train: {source: $1, target: $2}}
tokenizer: {kind: char}
model: {d_model: 8, heads: 2, d_ff: 8, layers: 1}
train: {steps: 1}
CONFIG
}
: >empty
files nowhere.de tgt
status 3 train files.yaml --run never
says "$work/nowhere.de: no such file"
files src short
status 3 train files.yaml --run never
says 'differ in the number of lines: 3 in' '1 in'
files nowhere.de tgt
status 3 train files.yaml --run never
says 'data.train.source; the path is relative to the folder in which heed was started'
status 3 train files.yaml --run never data.train.source=multi30k/train.de.gz data.train.target=nowhere.en \
  'data.valid={source: src, target: later.en}'
says "$work/multi30k/train.de.gz: no such file (data.train.source" "$work/nowhere.en: no such file (data.train.target" \
  "$work/later.en: no such file (data.valid.target" 'To download the data set: heed fetch multi30k --to multi30k'
awk 'BEGIN { for (i = 0; i < 5000; ++i) printf "a "; print "" }' >endless
files src src
status 3 train files.yaml --run never data.valid.source=endless data.valid.target=endless
says 'data.valid: line 1 of the target has ' 'at most 4097 are accepted'
status 3 eval runs/tiny --source endless --target endless
says 'line 1 of the target has'
printf 'a' >letter
status 3 train files.yaml --run never task=lm 'data={train: {text: src}, valid: {text: letter}}'
says 'data.valid: the text has 1 token; at least 2 are required'
printf '  ' >blank
status 3 train files.yaml --run never task=lm tokenizer.kind=word 'data={train: {text: src}, valid: {text: blank}}'
says 'data.valid: the text has 0 tokens'
mkdir -p mine/checkpoints
echo kept >mine/checkpoints/precious
status 2 train tiny.yaml --run mine --overwrite
says "mine/checkpoints is not known to belong to a run" 'choose another folder with --run'
holds mine/checkpoints/precious kept
files empty empty
status 3 train files.yaml --run never
says "$work/empty: empty file"
files broken src
status 3 train files.yaml --run never
says "$work/broken:2: invalid UTF-8"
{ cat long; cat long; } | tr -d '\n' >huge; echo >>huge
files huge huge
status 3 train files.yaml --run never
says "$work/huge:1: a line of more than 1000000 bytes"
files src src
status 3 gradcheck files.yaml data.train.source=nowhere.de
absent never runs/never runs/wrong runs/files

# ---- weights that do not fit the model ----------------------------------------------------------------
# Only a state.json states what weights were trained with, so weights without it are compared by their tensors.
mkdir bare; cp runs/tiny/last/model.safetensors bare
# unfit EDIT TEXT...: eval of these weights with a config edited by sed fails with each text
unfit() {
  rm -rf edited; cp -r runs/tiny edited; sed -i "$1" edited/config.yaml; shift
  status 3 eval edited --weights bare
  says "$@"
}
unfit 's/^  d_ff: 32/  d_ff: 40/' 'the weights do not fit the model' 'shape or type differs: encoder.layers.0.linear1.weight'
unfit 's/^    encoder: 1/    encoder: 2/' 'missing: encoder.layers.1.self_attn.in_proj_weight'
unfit 's/^  norm_kind: layer/  norm_kind: rms/' 'extra: encoder.layers.0.norm1.bias'

# ---- models that do not fit into memory ----------------------------------------------------------------
# heed checks the memory before it allocates or computes anything. Training one of these encoder layers needs 3.2 GB.
status 0 show tiny.yaml --json
layers=$(($(number machine | cut -d. -f1) / 3200 + 1))
set -- "model.layers={encoder: $layers, decoder: 1}" model.d_model=4096 model.heads=32 model.d_ff=16384
status 0 show tiny.yaml "$@"
holds out '^memory of training, at least [0-9.]* MB; this machine has' '^  activations   not measured'
for command in bench 'train --run large'; do
  status 4 $command tiny.yaml "$@"
  says 'moments alone require' 'this machine has'
done
absent large
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allocator_may_return_null=1"
status 4 train tiny.yaml --run large model.layers=512 model.d_model=65536 model.d_ff=1000000
holds err 'this machine' 'which has|this machine has'
absent large

# ---- fetch, from a folder ---------------------------------------------------------------------------
mkdir -p from
printf 'not Shakespeare\n' >from/input.txt
status 3 fetch tinyshakespeare --from from --to fetched
absent fetched/input.txt
status 2 fetch shakespeare
status 0 --help
holds out '^  gradcheck '
for command in eval generate score; do                  # the example keys in the help are keys that the command reads
  status 0 $command --help
  holds out 'key=value for each config key to change, such as threads=1 or decode\.'
  checks=$((checks + 1)); grep -q 'train\.steps' out && fail "$command --help mentions train.steps"
done
status 0 generate --help
holds out 'Examples:'

report
