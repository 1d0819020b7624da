#!/bin/sh
# Each task from its config to its output, a run folder of an older version of heed, and the commands prune, attention,
# trace, compare and quantize.
# Usage: test_commands_tasks.sh HEED
here=$(cd "${0%/*}" && pwd)
. "$here/commands_support.sh"

# near WHAT ACTUAL EXPECTED: equal except for rounding, which depends on the processor
near() {
  checks=$((checks + 1))
  awk -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !(a != "" && d * d < 1e-8) }' || fail "$1: $2, expected $3"
}

# ---- tag ------------------------------------------------------------------------------------------
cat >tag.yaml <<CONFIG
name: tag
task: tag
threads: 2
data: {synthetic: {name: brackets, train: 600, valid: 40, test: 30, min_length: 2, max_length: 4}}
tokenizer: {kind: word}  # labels have a separate vocabulary
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, dropout: 0.1}
optim: {lr: 1.0e-2, schedule: {name: constant, warmup: 5}}
train: {steps: 60, batch_tokens: 256, validate_every: 20, save_every: 20, log_every: 10, best: exact_match}
CONFIG
status 0 train tag.yaml --json
says 'data: 600 lines, 40 for validation, 30 for testing; vocabulary 9 and ' 'exact match' 'examples:' '  ->  1 '
holds out '"exact_match":' '"token_accuracy":[01]'
equal 'lines of JSON' "$(lines out)" 1
cp out trained.json
status 0 train tag.yaml --run stopped train.steps=40
status 0 resume stopped train.steps=60 --json
equal 'loss of a resumed run' "$(number loss)" "$(sed -n 's/.*"loss":\([-0-9.e+]*\).*/\1/p' trained.json)"
status 0 eval runs/tag --json --output labels
for key in loss perplexity token_accuracy exact_match; do
  equal "$key of eval and train" "$(number $key)" "$(sed -n "s/.*\"$key\":\([-0-9.e+]*\).*/\1/p" trained.json)"
done
equal 'lines of labels' "$(lines labels)" 30
printf '( )\n\n( [ ] )\n( ) ( ) x\n' >src
status 0 generate runs/tag --input src
equal 'number of labels of each line' "$(awk '{ printf "%d ", NF }' out)" '2 0 4 5 '
cp out plain
status 0 generate runs/tag --input src --chunk 1 threads=1
cmp -s out plain || fail 'labels depend on --chunk or on the number of threads'
printf '1 1\n\n1 2 2 1\n1 1 1 1 1\n' >tgt
status 0 score runs/tag --source src --target tgt
equal 'number of scored labels of each line' "$(cut -f2 out | tr '\n' ' ')" '2 0 4 5 '
equal 'score of an empty line' "$(sed -n 2p out | cut -f1)" 0.000000
total=$(awk '{ s += $1; n += $2 } END { printf "%.5f", -s / n }' out)
status 0 eval runs/tag --source src --target tgt --json
printf '( )\n\n( )\n( )\n' >three
status 0 generate runs/tag --input three
{ head -n 1 out && printf '\n9 1\n9 9\n'; } >unknown
status 0 eval runs/tag --source three --target unknown --json
says 'files: the vocabulary lacks 3 of 6 labels, such as "9" (' '/unknown:3)'
equal 'exact match without the empty line' "$(number exact_match | cut -c1-5)" 0.333
printf '\n\n' >blank
status 3 eval runs/tag --source blank --target blank
says 'files: no line has a token'
status 0 eval runs/tag --source src --target tgt --json
equal 'loss, compared with the mean of the scores' "$(number loss | awk '{ printf "%.5f", $1 }')" "$total"
status 0 show tag.yaml
holds out '^encoder.layers.0 ' '^output ' '^vocabulary .* 9 and ' '^memory'
checks=$((checks + 1)); grep -q '^decoder' out && fail 'show prints a decoder for a tagger'
status 0 gradcheck tag.yaml --entries 2
holds out '^output.bias ' 'parameters have the right gradient'
status 0 bench tag.yaml --steps 3
holds out '^  Affine ' '^  labels  .* per second'
status 0 bench tag.yaml --json --steps 3 'bench={sequences: 8, source_length: 7, vocabulary: 20}'
holds out '"gflops":'
counted=$(number gflop_per_step)
status 0 show tag.yaml --json 'bench={sequences: 8, source_length: 7, vocabulary: 20}'
equal 'GFLOP of show and bench for a tagger' "$(number gflop_per_step)" "$counted"

status 2 train tag.yaml --run never decode.beam=3
says 'decode.beam=3: only for task: seq2seq, lm'
status 2 train tag.yaml --run never train.best=bleu
says 'train.best=bleu: bleu is only for task: seq2seq'
status 2 generate runs/tag --input src --speed speed
says '--speed is for tasks whose outputs are searched or sampled, not tag'
status 2 generate runs/tag --prompt '('
says '--prompt is for language models'
status 2 eval runs/tag --pretokenised
printf '1 1\n1\n1 2 2 1\n1 1 1 1 1\n' >uneven
status 3 eval runs/tag --source src --target uneven
says 'uneven:2: the numbers of tokens (0) and labels (1) differ'
printf '( )\n' >train.src && printf '1 1 1\n' >train.tgt
cat >uneven.yaml <<CONFIG
task: tag
data: {train: {source: train.src, target: train.tgt}}
tokenizer: {kind: word, shared: false}
model: {d_model: 8, heads: 2, d_ff: 8, layers: 1}
train: {steps: 2}
CONFIG
status 3 train uneven.yaml --run never
says 'train.tgt:1: the numbers of tokens (2) and labels (3) differ'
printf '( )\n\n( )\n' >train.src && printf '1 1\n1 1\n1 1\n' >train.tgt
status 3 train uneven.yaml --run never
says 'train.tgt:2: the numbers of tokens (0) and labels (2) differ'
absent never

# ---- mlm, and a classifier initialised with its weights ------------------------------------------------
awk 'BEGIN { for (i = 0; i < 600; i++) { a = i % 5; b = i % 7; print "a" a " b" a " a" b " b" b } }' >lines
cat >mlm.yaml <<CONFIG
name: mlm
task: mlm
data: {train: {text: lines}, valid_fraction: 0.1, test_fraction: 0.1, mask: {rate: 0.2}, max_length: 30}
tokenizer: {kind: word}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, positions: learned, max_positions: 64, segments: 2, dropout: 0}
optim: {lr: 1.0e-2, schedule: {name: constant, warmup: 5}}
train: {steps: 60, batch_tokens: 256, validate_every: 20, save_every: 20, log_every: 10}
CONFIG
status 0 train mlm.yaml --json
says 'data: 480 lines, 60 for validation, 60 for testing; vocabulary 18' 'examples:' '<mask>'
holds out '"perplexity":' '"token_accuracy":[01]'
perplexity=$(number perplexity)
status 0 eval runs/mlm --split test --json
equal 'perplexity of eval and train' "$(number perplexity)" "$perplexity"
printf 'a1 <mask> a2 b2\n\na3 b3\n' | "$heed" generate runs/mlm --input - >out 2>err
equal 'number of tokens of each filled line' "$(awk '{ printf "%d ", NF }' out)" '4 0 2 '
checks=$((checks + 1)); grep -q '<mask>' out && fail 'a mask was not filled'
status 0 gradcheck mlm.yaml --entries 2
holds out '^segments.weight ' 'parameters have the right gradient'
status 0 show mlm.yaml
holds out '^segments '
status 0 bench mlm.yaml --steps 2
status 2 score runs/mlm --source lines --target lines
says '--source is for tasks that read pairs of lines'
status 0 score runs/mlm --target lines
equal 'number of scored lines' "$(wc -l < out)" "$(wc -l < lines)"
status 2 train mlm.yaml --run never data.mask.rate=0
says 'data.mask.rate=0: '
status 3 train mlm.yaml --run never model.max_positions=5 data.max_length=3
says 'data.valid: the longest line has 4 tokens; such a line and its special tokens do not fit into 5 positions'
absent never
awk '{ print $1 " " $2 "\t" $3 " " $4 > "pairs.src"; print (substr($1, 2) == substr($3, 2) ? "same" : "other") > "pairs.tgt" }' lines
cat >classify.yaml <<CONFIG
name: classify
task: classify
data: {train: {source: pairs.src, target: pairs.tgt}, valid_fraction: 0.1, test_fraction: 0.1, max_length: 30}
tokenizer: {kind: word, shared: false}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, positions: learned, max_positions: 64, segments: 2,
        init_from: runs/mlm, freeze: ['encoder.layers.0.*']}
optim: {schedule: {warmup: 10}}
train: {steps: 40, batch_tokens: 256, validate_every: 20, save_every: 20, log_every: 10, best: accuracy}
CONFIG
status 0 train classify.yaml --json
says 'model.init_from: transferred: embedding.weight, segments.weight, positions.weight, encoder.layers.0.*, encoder.norm.weight, encoder.norm.bias' \
  'model.init_from: initialised: output.weight, output.bias'
holds out '"accuracy":' '"f1":' '"confusion":' '"precision":'
accuracy=$(number accuracy)
status 0 eval runs/classify
holds out 'true label \(rows\) and predicted label \(columns\):'
status 0 train classify.yaml --run again train.steps=20
status 0 resume again train.steps=40 --json
equal 'accuracy of a resumed run' "$(number accuracy)" "$accuracy"
status 2 train classify.yaml --run never model.init_from=nowhere
says 'nowhere'
status 2 train classify.yaml --run never 'model.freeze=[decoder.*]'
says 'model.freeze: no parameter matches "decoder.*"'
status 3 train classify.yaml --run never model.d_ff=64
says "model.init_from: the weights do not fit this config's model"
printf 'x\n' >one.src && printf 'yes no\n' >one.tgt
status 3 eval runs/classify --source one.src --target one.tgt
says 'one.tgt:1: 2 labels: each line of the target, or folder of a class, must be one label, without spaces'
absent never

# ---- training of a language model ends with a sample -------------------------------------------------
awk 'BEGIN { for (i = 0; i < 400; i++) print "abc abd " (i % 7) }' >text
cat >lm.yaml <<CONFIG
name: lm
task: lm
data: {train: {text: text}, valid_fraction: 0.1}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, context: 16}
train: {steps: 5, batch_sequences: 8}
decode: {sample: true, max_length: 900}
CONFIG
status 0 train lm.yaml --run lm
says 'examples:'
sample=$(sed -n '/examples:/,/the run is in/p' lm/train.log | sed '1d;$d')
checks=$((checks + 1)); [ -n "$sample" ] || fail 'the log contains no sample'
checks=$((checks + 1)); [ "$(echo "$sample" | wc -l)" -le 10 ] || fail 'the sample has more than ten lines'
checks=$((checks + 1)); [ "$(echo "$sample" | awk '{ if (length > n) n = length } END { print n }')" -le 130 ] ||
  fail 'the sample has a line of more than 130 characters'

# ---- a run folder of an older version of heed ---------------------------------------------------------
cp -r "$here/old_run" old
status 0 eval old --json
near 'loss of an old run' "$(number loss)" 0.333609436722889
near 'exact match of an old run' "$(number exact_match)" 0.3
for run in old old/config.yaml; do  # keys missing from the config keep the behaviour of the older version
  status 0 show $run optim.name=adamw
  holds out '  decay: all'
  status 0 show $run --json
  holds out '"decay":"matrices"'
done
printf 'a b c\nd a\nb b d c\n' >src
status 0 generate old --input src
equal 'translations of an old run' "$(tr '\n' '/' <out)" 'a b c/d a/b b d d/'
status 0 resume old train.steps=310
says 'continuing from step 300'
checks=$((checks + 1)); grep -q -e 'data\.' -e 'starts again' err && fail 'the data of an old run are reported as changed'
status 0 eval old --weights last --json
near 'loss of an old run after ten more steps' "$(number loss)" 0.20817754294861826

# ---- pruning ------------------------------------------------------------------------------------------
config prunable
status 0 train prunable.yaml
status 0 prune runs/prunable --heads 2 --share 0.3 --run few --json
holds out '"removed_heads":2' '"zero_weights":[0-9]+' '"run":"few"'
status 0 eval few
says 'heed: weights: best, step'
status 0 quantize few --json
holds out '"earlier":..[^]]*"kind":"pruned","removed_heads":2,'
status 0 eval few-int8
status 0 compare few few-int8
holds out '^float32 +pruned, 2 heads, [0-9]+ zero weights ' '^int8 +pruned, 2 heads, [0-9]+ zero weights, then quan'
status 0 train prunable.yaml --run warm train.steps=0 train.epochs=1 optim.schedule.warmup=600
says 'warning: optim.schedule.warmup: 600 of the '
status 0 train prunable.yaml --run warm --overwrite train.steps=0 train.epochs=1 optim.schedule.warmup=auto
! grep -q warning err || fail 'a warning about an automatic warmup'
status 2 resume few
says 'few has no optimizer state: it is a pruned copy of runs/prunable' 'heed train CONFIG model.init_from=few'
status 0 train prunable.yaml --run onward model.init_from=few train.steps=2
status 2 prune runs/prunable --heads 1 --run few
says 'few already holds a run'
status 0 prune runs/prunable --heads 1 --run few --overwrite
holds out '^attention' 'self_attn .* removed'
status 2 prune runs/prunable --run other
says '--heads or --share'
status 2 prune runs/prunable --heads 1000 --run other
says '--heads 1000: expected at most'
status 2 prune runs/prunable --heads 1 --run runs/prunable --overwrite
says '--run must differ'
status 2 prune runs/prunable --share nan --run other
says '--share nan: expected a number from 0 to 1'
status 2 prune runs/prunable --share 0.1 --run other model.heads=1
status 2 prune runs/prunable --share 0.1 --run ''
absent other
status 2 prune few --heads 6 --run other   # one of six heads has been removed
says '--heads 6: expected at most 5, the number of remaining heads'
status 2 train prunable.yaml --run few --overwrite train.distill.teacher=few
says 'train.distill.teacher: few is the folder of the run itself'

# ---- attention ----------------------------------------------------------------------------------------
status 0 attention few --input 'a b' --json
holds out '"name":"encoder.layers.0.self_attn"' '"output":"' '"source":\["a"," ","b","</s>"\]' '"weights":\[\['
status 0 attention few --input 'a <b' --target 'c' --output page.html
says 'written to page.html'
holds page.html '<dd>a &lt;b</dd>' 'decoder.layers.0.multihead_attn' '</html>'
status 0 attention few --input 'a b' --layer decoder.layers.0.multihead_attn --head 0 --output map.svg
holds map.svg '^<svg xmlns' '^</svg>'
if python3 -c '' 2>/dev/null; then  # the drawing must be well-formed XML
  checks=$((checks + 1))
  python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' map.svg || fail 'map.svg is not well-formed XML'
fi
status 2 attention few --input 'a b' --output all.svg
says 'a drawing contains one layer' 'give --layer with one of encoder.layers.0.self_attn'
status 2 attention few --input 'a b' --layer nowhere
says '--layer nowhere: no layer has these parts in its name' 'encoder.layers.0.self_attn'
status 2 attention few --input 'a b' --head 9 --output all.html
says '--head 9: expected a number less than 2, the number of heads of encoder.layers.0.self_attn'
status 2 attention few
says '--input is required'
status 2 attention lm --input 'a b' --target c --output all.html
says '--target is for models with an encoder and a decoder'
status 3 attention few --input "$(printf 'a \377')" --output all.html
says '--input: invalid UTF-8'
status 2 attention few --input 'a b' --layer decoder.layers.0.multihead
says 'whole words between dots'
for view in lines neurons graph rollout; do
  head='--head 1'
  [ $view = rollout ] && head=
  status 0 attention few --input 'a b' --target 'a b' --layer encoder $head --view $view --width 84mm --output $view.svg
  holds $view.svg '^<svg xmlns.* width="84mm"' '^</svg>'
done
status 2 attention few --input 'a b' --view graph --output all.svg
says '--view graph draws one stack; give --layer encoder or decoder'
status 2 attention few --input 'a b' --layer encoder --view neurons --output all.svg
says '--view neurons needs --head'
status 2 attention few --input 'a b' --layer encoder --head 0 --view neurons --query 4 --output all.svg
says '--query 4: expected a number less than 4, the number of rows'
status 2 attention few --input 'a b' --layer encoder --width 8in --output all.svg
says '--width 8in: expected 1 to 10000 millimetres'
status 2 attention few --input 'a b' --view lines --output all.html
says '--view is for drawings'
status 2 attention few --input 'a b' --output all.jpg
says '--output all.jpg: heed attention writes a page, or a drawing to a file whose name ends in .svg, .png or .pdf'
status 2 attention few --input 'a b' --layer encoder --head 1 --view rollout --output all.svg
says '--view rollout uses the mean of the heads: leave out --head'
status 2 attention few --input 'a b' --layer decoder.layers.0.multihead_attn --view lines --query 1 --output all.svg
says '--query is for --view neurons'
status 2 attention few --input 'a b' --layer decoder.layers.0.multihead_attn --view lines --threshold 0.5 --output all.svg
says '--threshold is for --view graph and rollout'
status 2 attention lm --input '' --output all.html
says '--input: a line without tokens has no attention weights'
absent all.html all.svg all.jpg

# ---- trace --------------------------------------------------------------------------------------------
status 0 trace prunable.yaml --input 'a b'
holds out 'weights  freshly initialised, seed 1' 'encoder.layers.0.self_attn, head 0 of 2' \
  '^Q = X W_Q \+ b_Q  \[4 × 8\]' '^P = softmax\(S\)  \[4 × 4\]' '^Y = O W_O'
status 0 trace few --input 'a b' --target 'a b' --layer multihead_attn --head 1 --backward --json
holds out '"layer":"decoder.layers.0.multihead_attn"' '"symbol":"dM"' '"weights_name":"best"' '"labels":4'
status 0 trace few --input 'a b' --backward --output head.html
holds head.html 'dS = P ⊙ \(dP − D\)' '</html>'
status 0 trace runs/tag --input '( )' --target '1 1' --backward
holds out '^Backward: The loss of this line.*over 2 labels'
status 2 trace prunable.yaml --input 'a b' --backward
says '--backward needs --target'
status 2 trace few --input 'a b' --head 9
says '--head 9: expected a number less than 2, the number of heads of encoder.layers.0.self_attn'
status 2 trace few --input 'a b' --output head.svg
says '--output head.svg: heed trace writes text, or a page to a file whose name ends in .html'
status 2 trace few --input 'a b' --output head.png
says '--output head.png: heed trace writes text, or a page'
absent head.png
status 2 trace lm --input 'a' --backward
says 'give --input at least two tokens'
status 2 trace lm --input ''
says '--input: a line without tokens has no attention weights'
status 2 trace prunable.yaml --input 'a b' --weights best
says '--weights is for run folders'
status 2 trace nowhere.yaml --input 'a b'
status 3 trace few --input "$(printf 'a \377')"

# ---- compare ------------------------------------------------------------------------------------------
status 0 train prunable.yaml --run seeded seed=9
status 0 compare runs/prunable seeded onward
holds out '^model.init_from  optim.schedule.warmup  train.steps  seeds .*minutes$' '^few  *0  *2  *1 ' 'one seed cannot show'
status 0 compare runs/prunable seeded --markdown
holds out '^\| run \| seeds ' '^\| runs/prunable \| 2 \|' ' ± '
status 0 compare runs/prunable seeded --json
holds out '"count":2'
status 2 compare runs/prunable lm
says 'lm is one of task lm: only runs of one task can be compared'
status 3 compare few
says 'few: no results yet: few/metrics.jsonl contains neither a test nor a validation'
status 2 compare runs/prunable runs/../runs/prunable
says 'is given twice, so it would count as two runs'
status 2 compare nowhere

# Without its data, the model of a config is drawn with ten labels.
status 0 show "$here/../../configs/vit-mnist.yaml" --json
holds out '"params":457165' '"vocabulary_basis":"a guess, 10 labels: [^"]*train-images-idx3-ubyte'

# ---- int8 ---------------------------------------------------------------------------------------------
config whole
status 0 train whole.yaml model.d_model=64 model.d_ff=64 --run whole
status 0 quantize whole --json
holds out '"kind":"quantised"' '"from":"whole"' '"run":"whole-int8"' '"bytes":[0-9]+' '"float32_bytes":'
says 'heed: weights: best, step' 'the quantised run is in whole-int8'
size() { wc -c <"$1/best/model.safetensors"; }
[ "$(($(size whole-int8) * 10))" -le "$(($(size whole) * 3))" ] || fail 'int8 weights have more than 0.3 of the bytes of float32 weights'
status 0 eval whole-int8 --json threads=1
holds out '"bleu":' '"exact_match":'
cp out int8.json
status 0 eval whole
holds out '^BLEU = ' '^ROUGE-1 = '
status 0 eval whole train.best=exact_match
! grep -q -e ROUGE -e '^BLEU = ' out || fail 'lines that are judged by exact match are judged as texts'
status 0 eval whole --json
status 0 compare whole whole-int8
holds out '^decode.precision  weights ' '^float32 +trained ' '^int8 +quantised ' 'weights=quantised: '
status 0 compare whole whole-int8 --latex
holds out '^.begin.tabular..llr' '^int8 & quantised & ' '^.bottomrule'
status 2 compare whole --latex --markdown
status 0 report whole whole-int8 --output both.html
holds both.html 'quantised: '
status 0 report whole-int8
status 0 eval whole --json
equal 'exact match of int8 and float32' "$(number exact_match | cut -c1-3)" \
  "$(sed -n 's/.*"exact_match":\([-0-9.e+]*\).*/\1/p' int8.json | cut -c1-3)"
status 0 show whole-int8
holds out 'precision: int8'
seq 100 160 | sed 's/[5-9]//g; s/./& /g; s/ $//; s/ //g; y/01234/abcde/' | grep . >many
status 0 generate whole-int8 --input many --nbest 2 threads=1
cp out one
status 0 generate whole-int8 --input many --nbest 2 --chunk 7 threads=2
cmp -s out one || fail 'int8 outputs depend on --chunk or on the number of threads'
status 0 generate whole-int8 --input many --nbest 2 decode.precision=float32
cmp -s out one && fail 'int8 outputs equal those of float32'
status 0 score whole-int8 --source many --target many threads=1
cp out one
status 0 score whole-int8 --source many --target many threads=2
cmp -s out one || fail 'int8 scores depend on the number of threads'
status 0 score whole-int8 --source many --target many decode.precision=float32
cmp -s out one && fail 'int8 scores equal those of float32'
status 0 generate whole --input many decode.precision=int8
status 2 resume whole-int8
says 'whole-int8 has no optimizer state: it is a quantised copy of whole' 'model.init_from=whole-int8'
status 2 prune whole-int8 --share 0.1 --run other
says 'whole-int8 has int8 weights'
status 2 quantize whole-int8
says 'the weights of whole-int8 are already int8'
absent whole-int8-int8
status 2 quantize whole
says 'whole-int8 already holds a run: choose another folder with --run, or replace it with --overwrite'
status 2 quantize whole --run whole
says '--run must differ from the original run'
status 2 quantize whole --run whole --overwrite
says '--run must differ'
status 2 quantize nowhere
status 0 quantize whole/ --overwrite
holds out 'bytes of weights, 0\.[23]'
status 0 train whole.yaml model.d_model=64 model.d_ff=64 --run onward --overwrite model.init_from=whole-int8 train.steps=2
says 'model.init_from: transferred: '
grep -q 'model.init_from: unused' err && fail 'scales of int8 weights are reported as unused tensors'
status 0 train whole.yaml model.d_model=16 train.distill.teacher=whole-int8 \
  --run student train.steps=2
status 2 train whole.yaml train.precision=int8
says 'train.precision'
file=whole-int8/best/model.safetensors
head -c 5000 "$file" >short && cat short >"$file"
status 3 eval whole-int8
says 'model.safetensors'
for run in runs/tag runs/mlm runs/classify; do
  status 0 quantize $run
  holds out 'bytes of weights'
  status 0 eval $run-int8 --json
  holds out '"token_accuracy":|"accuracy":'
  status 0 generate $run-int8 --input src
done
status 0 quantize lm
status 0 score lm-int8 --target text
cp out int8
status 0 score lm-int8 --target text decode.precision=float32
cmp -s out int8 && fail 'int8 scores of a language model equal those of float32'
status 0 generate lm-int8 --input src decode.max_length=5
equal 'lines of output' "$(lines out)" 3

report
