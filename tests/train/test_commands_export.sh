#!/bin/sh
# Models in the formats of other programs. The clients themselves are tested in tests/clients.
# Usage: test_commands_export.sh HEED
. "${0%/*}/commands_support.sh"

for i in 1 2 3 4 5 6; do printf 'ab ba\nabc cab\n'; done >text
cat >lm.yaml <<CONFIG
task: lm
data: {train: {text: text}, valid_fraction: 0.2}
tokenizer: {kind: char}
model: {d_model: 8, heads: 2, d_ff: 16, layers: 1, positions: learned, context: 8}
train: {steps: 2, batch_tokens: 64}
CONFIG
status 0 train lm.yaml
status 0 export runs/lm --to huggingface --check
says 'every tensor equals the model' 'the model is in runs/lm-huggingface'
equal 'files of an export' "$(ls runs/lm-huggingface | tr '\n' ' ')" \
  'README.md config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json '
holds runs/lm-huggingface/config.json '"model_type": "gpt2"' '"n_positions": 8' '"vocab_size": 8'
holds runs/lm-huggingface/README.md '^library_name: transformers$' 'Licence and terms of the data' '^SHA-256|- SHA-256 of the train data'
cp -R runs/lm-huggingface first
status 2 export runs/lm --to huggingface
says 'runs/lm-huggingface already holds an export: replace it with --overwrite'
status 0 export runs/lm --to huggingface --overwrite
checks=$((checks + 1)); diff -r first runs/lm-huggingface || fail 'two exports of a run differ'
mkdir mine && echo years >mine/thesis
status 2 export runs/lm --to huggingface --output mine --overwrite
says 'mine exists and is not an export of heed'
equal 'a folder that is not an export' "$(cat mine/thesis)" years
mkdir runs/lm-huggingface/.git
status 2 export runs/lm --to huggingface --overwrite
says 'runs/lm-huggingface/.git is not a file of this export'
rmdir runs/lm-huggingface/.git
mkdir runs/.lm-huggingface.tmp && echo years >runs/.lm-huggingface.tmp/thesis
status 2 export runs/lm --to huggingface --overwrite
says 'runs/.lm-huggingface.tmp exists, and heed would write the export under this name'
equal 'a folder of the user' "$(cat runs/.lm-huggingface.tmp/thesis)" years
mv runs/.lm-huggingface.tmp/thesis runs/.lm-huggingface.tmp/.heed-export  # as a killed export leaves it
status 0 export runs/lm --to huggingface --overwrite
absent runs/.lm-huggingface.tmp
ln -s first link
status 2 export runs/lm --to huggingface --output link --overwrite
says '--output: link is a link, which heed does not replace'
echo mine >file
for output in runs/lm/checkpoints/new runs/lm/reports/new file; do
  status 2 export runs/lm --to huggingface --output $output --overwrite
done
says '--output: file is not a folder'
status 0 export runs/lm/ --to huggingface --output slash/ --weights last
holds slash/README.md 'Weights: step 2' '^These weights were not evaluated'
holds slash/generation_config.json '"max_length": 8'
printf '<unk> of words\n%.0s' 1 2 3 4 5 6 7 8 >words
status 0 train lm.yaml --run words-run data.train.text=words tokenizer.kind=word
status 2 export words-run --to huggingface
says 'the vocabulary contains "<unk>" as a word and as a special piece'
status 0 quantize runs/lm
status 0 export runs/lm-int8 --to huggingface --output elsewhere/new --check
status 0 train lm.yaml --run alibi model.positions=alibi
status 2 export alibi --to huggingface
says 'model.positions is alibi (it has learned or sinusoidal or none)' 'model.norm_kind is layer (it has rms)'
absent alibi-huggingface .alibi-huggingface.tmp
status 0 export alibi --to onnx --int8 --check
says 'every tensor equals the model'
equal 'files of graphs' "$(ls alibi-onnx alibi-onnx/onnx | tr '\n' ' ')" \
  'alibi-onnx: README.md config.json generation_config.json onnx tokenizer.json tokenizer_config.json  alibi-onnx/onnx: model.onnx model_quantized.onnx '
status 0 export runs/lm --to huggingface,onnx --output both --check
equal 'files of two formats' "$(ls both both/onnx | tr '\n' ' ')" \
  'both: README.md config.json generation_config.json model.safetensors onnx tokenizer.json tokenizer_config.json  both/onnx: model.onnx '
status 0 train lm.yaml --run bigbird model.attention.pattern=bigbird model.positions=none
status 2 export bigbird --to onnx
says 'model.attention.pattern is bigbird' 'train with window or full'
absent bigbird-onnx .bigbird-onnx.tmp
status 2 export runs/lm --to word
says 'huggingface'

# A format that lacks the precision has its own beside one that has it.
status 0 export runs/lm --to huggingface,onnx --int8 --output mixed --check
equal 'graphs of both precisions' "$(ls mixed/onnx | tr '\n' ' ')" 'model.onnx model_quantized.onnx '
holds mixed/config.json '"model_type": "gpt2"'
checks=$((checks + 1)); [ -s mixed/model.safetensors ] || fail 'there are no weights for transformers'
status 2 export runs/lm --to huggingface,onnx --precision float16
says '--to huggingface,onnx: none of them has precision float16'

# One file: its name, what --overwrite replaces, and what --check reads
status 2 export runs/lm --to gguf
says 'model.activation is relu (it has gelu_tanh)' 'export to huggingface or onnx'
absent runs/lm.gguf runs/.lm.gguf.tmp
for kind in char byte sentencepiece; do
  status 0 train lm.yaml --run runs/$kind model.activation=gelu_tanh tokenizer.kind=$kind tokenizer.vocab_size=20
  status 0 export runs/$kind --to gguf --check
  says 'every tensor equals the model' "the model is in runs/$kind.gguf" "--model runs/$kind.gguf"
done
cp runs/char.gguf first.gguf
status 2 export runs/char --to gguf
says 'runs/char.gguf already holds an export: replace it with --overwrite'
status 0 export runs/char --to gguf --overwrite
checks=$((checks + 1)); cmp first.gguf runs/char.gguf || fail 'two exports of a run differ'
status 2 export runs/char --to gguf --output file --overwrite
says 'file exists and is not an export of heed'
status 2 export runs/char --to gguf --output mine
says 'mine is not a file'
status 0 export runs/char --to gguf --precision float16 --output half.gguf --check
status 0 export runs/char --to gguf --int8 --output bytes.gguf --check
checks=$((checks + 1)); [ "$(wc -c <half.gguf)" -lt "$(wc -c <first.gguf)" ] || fail 'float16 is not smaller'
status 2 export words-run --to gguf
says 'tokenizer.kind is word (it has sentencepiece or char or byte)'

# A folder that cannot be shared
status 0 export alibi --to ctranslate2 --check
says 'every tensor equals the model' 'the model is in alibi-ctranslate2'
equal 'files of a decoder' "$(ls alibi-ctranslate2 | tr '\n' ' ')" 'config.json model.bin tokenizer.json vocabulary.json '
status 0 export alibi --to ctranslate2 --int8 --overwrite --check
status 2 export alibi --to ctranslate2 --precision float16
says '--to ctranslate2 has no precision float16: choose float32 or int8'
status 2 export alibi --to huggingface,ctranslate2
says '--to ctranslate2 cannot share a folder: export it separately'
status 2 export runs/lm --to ctranslate2 --output runs/lm-huggingface --overwrite
says 'runs/lm-huggingface exists and is not an export of heed'
cat >pairs.yaml <<CONFIG
task: seq2seq
data: {train: {source: text, target: text}, valid_fraction: 0.2}
tokenizer: {kind: word, shared: false}
model: {d_model: 8, heads: 2, d_ff: 16, layers: 1}
train: {steps: 2, batch_tokens: 64}
CONFIG
status 0 train pairs.yaml
status 0 export runs/pairs --to ctranslate2 --check
equal 'files of two vocabularies' "$(ls runs/pairs-ctranslate2 | tr '\n' ' ')" \
  'config.json model.bin source_vocabulary.json target_tokenizer.json target_vocabulary.json tokenizer.json '

# A page, which contains programs that only npm has: what is refused without them
status 2 export runs/lm --to page
says '--to page contains programs from npm' 'npm install --prefix FOLDER onnxruntime-web@1.30.0 @huggingface/tokenizers@0.2.0'
status 2 export runs/lm --to gguf --runtime programs
says '--runtime is only for --to page, not for --to gguf'
status 3 export runs/lm --to page --runtime programs
says 'programs/node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs: no such file' \
  'npm install --prefix programs onnxruntime-web@1.30.0'
mkdir -p programs/node_modules/onnxruntime-web/dist
echo 'alert(1)' >programs/node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs
status 3 export runs/lm --to page --runtime programs
says 'ort.wasm.bundle.min.mjs: not the file of onnxruntime-web 1.30.0' \
  "SHA-256 $(echo 'alert(1)' | sha256sum | cut -c1-64), expected 11e64bd8" 'npm install --prefix programs'
status 2 export bigbird --to page --runtime programs
says 'model.attention.pattern is bigbird'
yes 'label' | head -n 12 >labels
sed '/^tokenizer/d; s/lm/classify/; s/train: {text: text}/train: {source: text, target: labels}/; s/, context: 8//' lm.yaml >classify.yaml
status 0 train classify.yaml model.positions=sinusoidal
status 2 export runs/classify --to page --runtime programs
says 'task classify with data.input: text has no page' 'export to onnx'
sed 's/task: lm/task: denoise/; s/, context: 8//' lm.yaml >denoise.yaml
status 0 train denoise.yaml model.positions=sinusoidal
status 2 export runs/denoise --to page --runtime programs
says 'task denoise with data.input: text has no page'
absent runs/lm.html runs/.lm.html.tmp runs/classify.html runs/.classify.html.tmp
printf '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="generator" content="heed export --to page">\n' >old.html
status 2 export runs/lm --to page --runtime programs --output old.html
says 'old.html already holds an export: replace it with --overwrite'
status 2 export runs/lm --to page --runtime programs --output file --overwrite
says 'file exists and is not an export of heed'
status 2 export runs/lm --to page,onnx --runtime programs
says '--to page cannot share a folder: export it separately'

# ---- import: a folder becomes a run with the same function -------------------------------------
status 0 import first --run back
equal 'what import prints' "$(cut -d, -f1 out)" 'GPT2LMHeadModel: task lm'
status 0 score runs/lm --target text --weights last
cp out score
status 0 score back --target text
checks=$((checks + 1)); diff out score || fail 'scores of the imported run differ'
status 0 export back --to huggingface --output again
for file in config.json model.safetensors tokenizer.json; do
  checks=$((checks + 1)); cmp first/$file again/$file || fail "$file of the second export differs"
done
status 0 generate back --prompt ab --max-length 4
status 0 quantize back
status 2 resume back data.train.text=text
says 'it is an imported copy of first'
status 2 import first --run back
says 'back already holds a run'
status 0 import first --run back --overwrite --json
holds out '"class":"GPT2LMHeadModel"' '"kind":"imported"' '"run":"back"'
# A disk that fills while an import replaces a run leaves the run as it was.
mkdir back/reports && echo kept >back/reports/notes
find back -type f -exec cksum {} + | grep -v '/\.lock$' | sort >sums.before
checks=$((checks + 1))
(trap '' XFSZ; ulimit -f 4; exec "$heed" import first --run back --overwrite) >out 2>err
equal 'import on a full disk' $? 4
says 'File too large'
find back -type f -exec cksum {} + | grep -v '/\.lock$' | sort >sums.after
equal 'a run that could not be replaced' "$(cat sums.after)" "$(cat sums.before)"
mkdir -p back/.new.tmp/checkpoints && echo cut >back/.new.tmp/config.yaml  # as a killed import leaves it
sed -i 's/"layer_norm_epsilon": 1e-05/"layer_norm_epsilon": 0.25/' first/config.json
status 0 import first --run back --overwrite
holds back/config.yaml 'norm_eps: 0.25'
equal 'a file that does not belong to a run' "$(cat back/reports/notes)" kept
absent back/.new.tmp
status 0 verify back
status 0 generate back --prompt ab --max-length 4
sed -i 's/"n_layer": 1/"n_layer": 2/' again/config.json
status 3 import again --run never
says 'again: the tensor transformer.h.1.ln_1.weight is missing'
rm again/config.json && ln -s ../first/config.json again/config.json
status 3 import again --run never
says 'again/config.json: a link, which heed does not follow'
status 3 import nowhere --run never
says 'nowhere: no such folder; heed reads models that are on this machine'
absent never
status 2 show again
sed 's/context: 8}/context: 8, scale_embeddings: false, tie_embeddings: false, output_bias: false, init_from: first}/' lm.yaml >tuned.yaml
status 0 train tuned.yaml --run tuned --json
says 'model.init_from: first is imported into tuned-init' 'transferred: embedding.weight'
holds out '^\{.*\}$'
# A refused call leaves the import, which the next one uses. Another folder of this name is never replaced.
status 2 train tuned.yaml --run again-tuned model.freeze=nothing
status 0 train tuned.yaml --run again-tuned
says 'model.init_from: first has been imported into again-tuned-init; --overwrite imports it again'
status 0 train tuned.yaml --run again-tuned --overwrite
says 'model.init_from: first is imported into again-tuned-init'
cp -r runs/lm other-init; cksum other-init/config.yaml >sum.before
status 2 train tuned.yaml --run other --overwrite
says 'model.init_from: first would be imported into other-init, which exists and is something else' 'move it away'
mkdir foreign-init; echo mine >foreign-init/notes
status 2 train tuned.yaml --run foreign
equal 'a run beside' "$(cksum other-init/config.yaml)" "$(cat sum.before)"
equal 'files of the user' "$(ls -A foreign-init)" notes
status 2 train tuned.yaml --run tuned2 model.init_from=tuned data.train.text=[] data.valid_fraction=0

status 2 export runs/lm --to gguf --output new/folder/lm.gguf
absent new
status 0 export runs/char --to gguf --output new/folder/lm.gguf
says 'the model is in new/folder/lm.gguf'

report
