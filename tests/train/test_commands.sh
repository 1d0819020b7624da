#!/bin/sh
# The commands, end to end: trains a small model in a temporary folder and uses it with every command.
# Usage: test_commands.sh HEED
. "${0%/*}/commands_support.sh"

# ---- train, resume --------------------------------------------------------------------------------
config tiny
status 0 train tiny.yaml --json
says 'step     30' 'the run is in runs/tiny' '  smoothed loss ' 'valid  unsmoothed loss '
holds out '"exact_match":' '"bleu_signature":"'
equal 'lines of JSON' "$(lines out)" 1
for file in config.yaml run.json train.log metrics.jsonl tokenizer.vocab best/model.safetensors \
            last/state.json; do
  [ -e runs/tiny/$file ] || fail "runs/tiny/$file is missing"
done
cp out trained.json
says 'weights: best, step ' ' (runs/tiny/best)'
holds trained.json '"run":"runs/tiny"' '"split":"test"' '"weights":"/[^"]*/step-000000[13][05]"' '"weights_name":"best"'
checks=$((checks + 1)); grep -q 'continuing\|already finished' err && fail 'a new run is reported as resumed'

status 2 train tiny.yaml
says 'already holds a run' 'heed resume runs/tiny'
status 0 resume runs/tiny train.steps=40
says 'continuing from step 30' 'step     40'
cp runs/tiny/run.json kept.json
sed -i 's/"cpu": ".*"/"cpu": "another"/' runs/tiny/run.json
status 0 resume runs/tiny train.steps=40
says 'warning: the environment of the run has changed, so the result may differ bitwise: cpu: ' '; previously another'
rm runs/tiny/run.json
status 0 resume runs/tiny train.steps=40
holds err 'warning: .*run\.json.*cannot be compared'
cp kept.json runs/tiny/run.json
status 0 train tiny.yaml --run unsmoothed train.steps=15 train.label_smoothing=0
says ')  loss ' 'valid  loss '
status 0 train tiny.yaml --run stopped train.steps=15
status 0 resume stopped train.steps=30 --json
equal 'loss of a resumed run' "$(number loss)" "$(sed -n 's/.*"loss":\([-0-9.e+]*\).*/\1/p' trained.json)"
sed -i 's/"threads": .*/"threads": 2,/' runs/tiny/run.json
status 0 resume runs/tiny train.steps=40 threads=1
checks=$((checks + 1)); grep -q 'note: threads' err && fail 'a different number of threads is reported as a change'
cp runs/tiny/config.yaml kept.yaml
sed -i 's/^  log_every: .*/  log_every: 11/' runs/tiny/config.yaml
status 0 resume runs/tiny train.steps=40
says 'config.yaml: it was edited after the run began'
status 0 eval runs/tiny
says 'note: runs/tiny/config.yaml: it was edited after the run began'
cp kept.yaml runs/tiny/config.yaml
status 0 resume runs/tiny train.steps=40 data.synthetic.symbols=4
says 'data.train: its samples differ' 'data.valid: its samples differ'
cp runs/tiny/tokenizer.vocab kept.vocab
sed -i 's/b/x/' runs/tiny/tokenizer.vocab
for command in resume eval generate; do
  status 3 $command runs/tiny
  says "runs/tiny/tokenizer.vocab: its content has changed"
done
cp kept.vocab runs/tiny/tokenizer.vocab
status 0 train tiny.yaml --overwrite

# ---- numbers that are not finite -------------------------------------------------------------------
status 5 train tiny.yaml --run wild optim.lr=1e30 optim.schedule.warmup=0
says ': the loss is' 'the weights are as before the step' 'first non-finite tensor: the ' \
  'heed resume wild with a smaller optim.lr, or train.on_nonfinite=skip'
holds wild/train.log 'ended by an error: step '
[ -e wild/last/state.json ] || fail 'the steps before the error were not saved'
status 5 train tiny.yaml --run wild --overwrite optim.lr=1e30 optim.schedule.warmup=0 train.on_nonfinite=skip
says 'skipped step' '21 steps in a row were not finite'

# ---- eval -----------------------------------------------------------------------------------------
status 0 eval runs/tiny --json
equal 'lines of JSON' "$(lines out)" 1
holds out '"split":"test"' '"sentences":30' '"loss":[0-9]' '"perplexity":[0-9]' '"token_accuracy":[01]' \
  '"exact_match":' '"bleu":' '"bleu_signature":"[^"]*tok:13a' '"chrf":' '"chrf_signature":"'
for key in loss perplexity token_accuracy exact_match bleu chrf; do
  equal "$key of eval and train" "$(number $key)" "$(sed -n "s/.*\"$key\":\([-0-9.e+]*\).*/\1/p" trained.json)"
done
status 0 eval runs/tiny --split valid --json
holds out '"split":"valid"' '"sentences":40'
status 0 eval runs/tiny --weights 15 --json
holds out '"weights":"/[^"]*/step-00000015"' '"weights_name":"step"' '"weights_steps":\[15\]'
printf 'a b c\nb\n' >src
printf 'a b c\nb\n' >tgt
status 0 eval runs/tiny --source src --target tgt --pretokenised --output translated --json
holds out '"split":"files"' '"sentences":2' 'tok:none'
equal 'lines of translations' "$(lines translated)" 2
status 0 eval runs/tiny
holds out 'perplexity' 'BLEU = '

# ---- commands that read weights print the name of the weights -----------------------------------------
status 0 train tiny.yaml --run mean train.save_every=3 train.average=2 data.synthetic.valid=0 data.synthetic.test=0 --json
says 'weights: average, mean of steps 30, 27 (mean/average)'
equal 'lines of JSON without data to evaluate on' "$(lines out)" 1
holds out '^\{"run":"mean","weights":"/[^"]*/mean/average","weights_name":"average","weights_steps":\[30,27\]\}$'
holds mean/metrics.jsonl '"kind":"weights".*"weights_name":"average","weights_steps":\[30,27\]'
for command in "eval mean --source src --target tgt" "generate mean --input src" "score mean --source src --target tgt"; do
  status 0 $command
  says 'heed: weights: average, mean of steps 30, 27 (mean/average)'
  status 0 $command --weights last
  says 'heed: weights: last, step 30 (mean/last)'
  status 0 $command --weights 27
  says 'heed: weights: step 27 (mean/checkpoints/step-00000027)'
done
cp -r mean/average alone; rm alone/state.json
status 0 generate mean --input src --weights alone
says 'heed: weights: alone'
status 2 eval runs/tiny --split train
status 2 eval runs/tiny data.synthetic.test=0 --split test
says 'the config has no test split: choose --split valid, or give --source FILE --target FILE'
for split in '' '--split valid' '--split test'; do
  status 2 eval runs/tiny data.synthetic.test=0 data.synthetic.valid=0 $split
  says 'the config has neither a validation nor a test split: give --source FILE --target FILE'
done
status 2 eval runs/tiny --source src
status 2 eval runs/tiny --text src
says '--text is for tasks that read text'
status 2 eval runs/tiny --split test --source src --target tgt
for command in eval show resume generate 'score --target src'; do   # a missing run is reported like a missing config
  status 2 $command runs/nowhere
  says 'runs/nowhere'
done
status 2 eval runs/nowhere
says 'not a run'
status 3 eval runs/tiny --weights 77
says 'no weights called 77; available: best, last, 15, 30'
status 2 generate runs/tiny --sample --beam 3
status 2 generate runs/tiny --beam 3 --top-k 2

# ---- generate -------------------------------------------------------------------------------------
printf 'a b c\n\n\nd e\r\n \nxyz' >input                # empty lines, an unknown character, no newline at the end
status 0 generate runs/tiny --input input
equal 'lines of output' "$(lines out)" 6
equal 'output for empty lines' "$(sed -n '2,3p' out)" ''
cp out plain
"$heed" generate runs/tiny <input >out 2>err
equal 'translation of standard input' "$(cat out)" "$(cat plain)"
gzip -c input >input.gz; gzip -c input >>input.gz        # a file of two members
status 0 generate runs/tiny --input input.gz --output translated
equal 'lines of two gzip members, the first without a final newline' "$(lines translated)" 11
status 0 generate runs/tiny --input /dev/null
equal 'lines of output for an empty input' "$(lines out)" 0
awk 'BEGIN { for (i = 0; i < 300; i++) print substr("a b c d e", 1, 2 * (i % 5) + 1) }' >many
status 0 generate runs/tiny --input many --beam 1
equal 'lines of output for 300 lines' "$(lines out)" 300
cp out plain
status 0 generate runs/tiny --input many --beam 1 decode.precision=bf16
equal 'lines of output for 300 lines, with decode.precision=bf16' "$(lines out)" 300
status 0 generate runs/tiny --input many --beam 1 --chunk 7
cmp -s out plain || fail 'translations depend on --chunk'
cp out plain
status 0 generate runs/tiny --input many --beam 1 --chunk 150 --speed speed
cmp -s out plain || fail '--speed changes the output'
equal 'speeds of two chunks' "$(lines speed)" 2
holds speed '"input_tokens":[1-9][0-9]*,"output_tokens":[1-9][0-9]*,"seconds":[0-9]'
status 2 generate runs/tiny --input many --output same --speed same
says '--speed and --output name the same file'
status 0 generate runs/tiny --input many --temperature 1.5 --top-k 3 --seed 5
cp out drawn
status 0 generate runs/tiny --input many --temperature 1.5 --top-k 3 --seed 5 threads=1
cmp -s out drawn || fail 'sampling depends on the number of threads'
status 0 generate runs/tiny --input many --temperature 1.5 --top-k 3 --seed 6
cmp -s out drawn && fail 'sampling does not depend on the seed'
status 0 generate runs/tiny --input input --beam 3
cp out plain
status 0 generate runs/tiny --input input --nbest 3 --beam 3
equal 'line numbers in the output of --nbest for six lines' "$(cut -f1 out | sort -u | tr -d '\n')" 123456
equal 'first of three outputs of each line' "$(awk -F'\t' '!($1 in seen) { seen[$1] = 1; print $3 }' out)" "$(cat plain)"
equal 'outputs of each line, sorted by descending score' "$(sort -t"$(printf '\t')" -s -k1,1n -k2,2gr out)" "$(cat out)"
status 2 generate runs/tiny --input input --nbest 9
says '--nbest 9: decode.beam is only'
says 'add --beam 9'
status 0 generate runs/tiny --input many --nbest 2 --sample
equal 'number of samples, two for each of 300 lines' "$(lines out)" 600
printf 'a\n\n\n\nb a\nc\n' >prefix
status 0 generate runs/tiny --input input --prefix prefix --beam 1
equal 'lines of output with prefixes' "$(lines out)" 6
holds out '^a'
status 3 generate runs/tiny --input input --prefix src
says '--prefix: src has fewer lines (2) than the input'
status 2 generate runs/tiny --prompt a --prefix prefix
awk 'BEGIN { for (i = 0; i < 500000; i++) printf "a "; print "" }' >long
{ cat input; echo; cat long; echo b; } >some
status 0 generate runs/tiny --input some --beam 1
equal 'lines of output with an input line of 1 MB' "$(lines out)" 8
says 'only its first 4095'

status 2 generate runs/tiny --prompt a
for wrong in '--beam 0' '--temperature 0' '--temperature x' '--max-length 0' '--top-p 2' '--top-k -1'; do
  status 2 generate runs/tiny --input src $wrong         # the message names the option as typed
  says "heed: $wrong: "
  checks=$((checks + 1)); grep -q 'decode\.' err && fail "the message about $wrong names a key"
done
status 2 generate runs/tiny --input src decode.beam=0
says "decode.beam=0: 0 is out of range"
status 3 generate runs/tiny --input nowhere --output never
says 'nowhere: no such file'
printf 'a b\nb \377\n' >broken
status 3 generate runs/tiny --input broken --output never
says 'broken:2: invalid UTF-8'
head -c 30 input.gz >cut.gz
status 3 generate runs/tiny --input cut.gz --output never
absent never .never.tmp
if [ -w /dev/full ]; then
  for command in "generate runs/tiny --input src" "score runs/tiny --source src --target tgt" "show tiny.yaml" "eval runs/tiny --json"; do
    checks=$((checks + 1))
    "$heed" $command >/dev/full 2>err; equal "exit code of $command with a full disk" $? 4
    says 'No space left'
  done
  status 4 generate runs/tiny --input src --output /dev/full
fi
"$heed" generate runs/tiny --input src >&- 2>err; equal 'exit code of generate with closed output' $? 4
mkfifo late                                              # input arrives only after the reader of the output has exited
{ "$heed" generate runs/tiny --input late 2>err; echo $? >code; } | { exec <&-; cat src >late; }
equal 'exit code of generate after the reader has exited' "$(cat code)" 141
checks=$((checks + 1)); grep -q 'annot write' err && fail 'an exited reader is reported as an error'
for command in '--help' 'show reference' 'eval runs/tiny --json'; do
  { "$heed" $command 2>err; echo $? >code; } | true
  case $(cat code) in 0|141) ;; *) fail "$command after the reader has exited: exit code $(cat code)" ;; esac
  checks=$((checks + 1)); grep -q 'annot write' err && fail "$command: an exited reader is reported as an error"
done

# ---- score ----------------------------------------------------------------------------------------
printf 'a b c\nb\nd e\n' >src
printf 'a b c\nb\n\n' >tgt                               # five characters, one, none; each plus </s>
status 0 score runs/tiny --source src --target tgt
equal 'lines of scores' "$(lines out)" 3
equal 'tokens including the end token' "$(cut -f2 out | tr '\n' ' ')" '6 2 1 '
holds out '^-[0-9]+\.[0-9]{6}	6$'
total=$(awk '{ s += $1; n += $2 } END { printf "%.5f", -s / n }' out)
status 0 eval runs/tiny --source src --target tgt --json
equal 'loss, compared with the mean of the scores' "$(number loss | awk '{ printf "%.5f", $1 }')" "$total"
status 0 score runs/tiny --source src --target tgt --json
holds out '^\{"log_prob":\[-[0-9.,-]*\],"tokens":\[[0-9,]*\],"weights":"[^"]*","weights_name":"[a-z]*","weights_steps":\[[0-9,]*\]\}$'
status 2 score runs/tiny --target tgt
printf 'a\n' >short
status 3 score runs/tiny --source src --target short
says 'differ in the number of lines'

# ---- show, gradcheck ------------------------------------------------------------------------------
status 0 show tiny.yaml
holds out '^  d_model: 16' '^encoder.layers.0 ' 'in_proj_weight \[48, 16\]' 'GFLOP' '^memory'
status 0 show runs/tiny --json
holds out '"gflop_per_step":0\.0' '"d_model":16'
params=$(number params)
status 0 show runs/tiny --json --output shown
equal 'standard output of show --output' "$(cat out)" ''
holds shown '"gflop_per_step":0\.0'
status 0 show tiny.yaml --json model.d_ff=33
equal 'number of parameters with d_ff increased by one in two layers' "$(number params)" $((params + 66))
cat >absent.yaml <<CONFIG
data: {train: {source: nowhere.de, target: nowhere.en}}
CONFIG
status 0 show absent.yaml
holds out 'an upper bound'
status 2 show runs
says 'not a run'
status 0 gradcheck tiny.yaml --entries 3
holds out '^embedding.weight .* 3 \+ 2 directions .* ok$' 'parameters have the right gradient'
status 0 gradcheck tiny.yaml --entries 40   # all entries of small parameters, some of large ones
holds out 'all 16 ' '40 \+ 2 directions'
status 0 gradcheck tiny.yaml --entries 1 --json model.norm=post model.activation=gelu model.positions=learned
holds out '"passed":true' '"name":"source_positions.weight"'

# ---- bench ------------------------------------------------------------------------------------------
status 0 bench tiny.yaml --json --steps 30 threads=1 'bench={sequences: 16, source_length: 7, target_length: 9, vocabulary: 20}'
holds out '"gemm_share":' '"executed_gflop_per_step":' '"products_ms":' '"first_step_ms":' '"peak_rss_mb":'
equal 'steps measured' "$(number steps)" 30
if ! grep -qa __asan_init "$heed"; then   # AddressSanitizer does not reuse memory
  equal 'allocations per step' "$(number allocations_per_step)" 0.0
fi
counted=$(number gflop_per_step)
status 0 show tiny.yaml --json 'bench={sequences: 16, source_length: 7, target_length: 9, vocabulary: 20}'
equal 'GFLOP of show and bench' "$(number gflop_per_step)" "$counted"
status 0 bench tiny.yaml --steps 3
holds out 'tokens .* per second' '^  products .* ms alone' '^  blas +OpenBLAS' '^  Affine ' '^  gradient sums, update '
status 0 bench tiny.yaml --steps 1 train.precision=bf16
if grep -q 'using float32 instead' err; then
  status 1 bench tiny.yaml --precisions
  holds err 'compares float32 and bf16, but '
else
  status 0 bench tiny.yaml --precisions --steps 2 --json
  holds out '"times_as_fast":' '"float32":[{]' '"bf16":[{]' '"gemm_gflops":' '"step_ms":'
  status 0 bench tiny.yaml --precisions --steps 2
  holds out '^  float32 ' '^  bf16 ' 'bf16 is [0-9.]+ times as fast on this machine: train.precision='
fi

# ---- a language model -----------------------------------------------------------------------------
awk 'BEGIN { for (i = 0; i < 400; i++) print "abc abd " (i % 7) }' >text
cat >lm.yaml <<CONFIG
name: lm
task: lm
data: {train: {text: text}, valid_fraction: 0.1}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, context: 16, positions: learned, max_positions: 16}
train: {steps: 10, batch_sequences: 8, validate_every: 10, save_every: 10}
decode: {sample: true, max_length: 40}
CONFIG
status 0 train lm.yaml --run lm
status 0 eval lm --json
holds out '"split":"valid"' '"bits_per_byte":' '"loss":'
printf 'abc\n\nabd 1 abc abd 2 abc abd 3\n' >prompts
status 0 generate lm --input prompts
equal 'lines for three prompts' "$(lines out)" 3
status 0 generate lm --input prompts --speed speed --max-length 5
equal 'speeds of three prompts' "$(lines speed)" 3
equal 'tokens of the prompts' "$(sed 's/.*"input_tokens":\([0-9]*\).*/\1/' speed | tr '\n' ' ')" '3 1 25 '
holds speed '"first_token_seconds":[0-9]' '"output_tokens":5,'
holds out '^abc.' '^abd 1 abc abd 2 abc abd 3.'
status 0 generate lm --prompt 'abc abd' --seed 3
holds out '^abc abd'
cp out whole
status 0 generate lm --prompt 'abc abd' --seed 3 --output whole2
equal 'a continuation streamed to a file' "$(cat whole2)" "$(cat whole)"
status 0 generate lm --prompt 'abc abd' --seed 3 --nbest 2 --max-length 5
equal 'number of continuations with scores' "$(grep -c '^1	-[0-9.]*	abc abd' out)" 2
status 2 generate lm --prompt 'abc abd' --nbest 2
says 'lower decode.max_length'
status 2 generate lm --input prompts --prefix prompts
says 'a language model continues its input lines'
status 0 score lm --target prompts
equal 'tokens without an end token' "$(cut -f2 out | tr '\n' ' ')" '3 0 25 '
status 2 score lm --source prompts --target prompts
status 0 gradcheck lm.yaml --entries 2
holds out '^positions.weight '

# ---- learned positions: the message names a line that exceeds max_positions ---------------------------
printf 'a b\nb a\n' >few && printf 'a\na b a b a b a b a b\n' >many
cat >learned.yaml <<CONFIG
data: {train: {source: few, target: few}, valid: {source: many, target: many}, max_length: 8}
tokenizer: {kind: char}
model: {d_model: 8, heads: 2, d_ff: 8, layers: 1, positions: learned, max_positions: 9}
decode: {max_length: 9}
train: {steps: 2}
CONFIG
status 3 train learned.yaml --run never
says 'data.valid: line 2 of the target has 20 tokens, its end token included, but the model has only 9 positions'

# ---- files left by earlier, failed and stopped commands ----------------------------------------------
status 0 train tiny.yaml --run over tokenizer.shared=false train.steps=2
status 0 train tiny.yaml --run over train.steps=2 --overwrite
status 0 eval over --json
equal 'tokenizers left over from the previous run' "$(ls over | grep -c -e '^source\.' -e '^target\.')" 0
status 3 train learned.yaml --run never data.max_length=1 data.valid.source=few data.valid.target=few
says 'no sample is left to train on'
equal 'run folder of a train command that was refused' "$(ls -d never 2>/dev/null)" ''
cp -r over damaged
printf 'xxxx' | dd of=damaged/last/model.safetensors bs=1 seek=4000 conv=notrunc 2>/dev/null
status 3 eval damaged --weights last
says 'model.safetensors: its content has changed'
mkfifo slowly
"$heed" generate over --input slowly --output slow.out 2>err &
exec 9>slowly
echo x >&9
soon '[ -e .slow.out.tmp ]'
kill -TERM $!
wait $!
equal 'exit code of a stopped generate' $? 143
exec 9>&-
equal 'files left by a stopped generate' "$(ls -A | grep -c 'slow\.out')" 0

report
