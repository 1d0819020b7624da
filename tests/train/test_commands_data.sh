#!/bin/sh
# Each kind of data file from the config to the outputs: training, eval, score and generate give the same figures and lines as
# with plain files of lines.
# Usage: test_commands_data.sh HEED
here=$(cd "${0%/*}" && pwd)
. "$here/commands_support.sh"

# experiment NAME TASK DATA MORE: writes the config of a small model
experiment() {
  cat >"$1.yaml" <<CONFIG
name: $1
task: $2
data: {$3, valid_fraction: 0.1, test_fraction: 0.1}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, dropout: 0}
optim: {lr: 1.0e-2, schedule: {name: constant, warmup: 5}}
train: {steps: 30, batch_tokens: 256, validate_every: 15, save_every: 15, log_every: 10}
$4
CONFIG
}
# trains NAME...: trains on each NAME.yaml; the metrics are equal
trains() {
  first=
  for run; do
    status 0 train "$run.yaml" --json
    metrics=$(grep -o '"\(loss\|exact_match\|f1\|accuracy\|bits_per_byte\)":[-0-9.e+]*' out | tr '\n' ' ')
    equal "metrics of $run" "$metrics" "${first:=${metrics:-none}}"
  done
}

# ---- pairs ------------------------------------------------------------------------------------------
awk 'BEGIN {
  for (i = 0; i < 300; i++) {
    a = i % 7; b = int(i / 7) % 7; s = a ", \"" b "\""; t = b " " a
    print s > "src"; print t > "tgt"
    q = s; gsub(/"/, "\"\"", q); print i ",\"" t "\",\"" q "\"" > "rows"
    j = s; gsub(/"/, "\\\"", j); print "{\"text\": \"" j "\", \"label\": \"" t "\"}" > "pairs.jsonl"
  } }'
{ echo 'id,output,input' && cat rows; } >pairs.csv
{ printf 'target\tsource\n' && paste tgt src; } >pairs.tsv
gzip -k pairs.tsv pairs.jsonl
chars='tokenizer: {kind: char}'
experiment lines seq2seq 'train: {source: src, target: tgt}' "$chars"
experiment csv seq2seq 'train: {source: pairs.csv}, columns: {source: input, target: output}' "$chars"
experiment numbers seq2seq "train: {source: rows}, format: csv, columns: {source: '3', target: '2'}" "$chars"
experiment tsv seq2seq 'train: {source: pairs.tsv.gz}' "$chars"
experiment jsonl seq2seq 'train: {source: pairs.jsonl.gz}' "$chars"
trains lines csv numbers tsv jsonl
status 0 show runs/csv
holds out '    source: \[pairs.csv\]' '    source: \[input\]'
status 0 eval runs/lines --source src --target tgt --json
of_lines=$(number loss)
status 0 eval runs/csv --source pairs.csv --json
equal 'loss of a table' "$(number loss)" "$of_lines"
status 0 eval runs/tsv --source pairs.jsonl --json
equal 'loss of a table in another format' "$(number loss)" "$of_lines"
status 2 eval runs/csv --source src
says '--source and --target must be used together'
status 0 score runs/lines --source src --target tgt
cp out scores
status 0 score runs/csv --source pairs.csv --target pairs.csv
cmp -s out scores || fail 'the scores of a table differ from those of its lines'
status 0 generate runs/lines --input src
cp out outputs
status 0 generate runs/csv --input pairs.csv
cmp -s out outputs || fail 'the outputs of a table differ from those of its lines'
"$heed" generate runs/numbers --input - <src >out 2>err
cmp -s out outputs || fail 'standard input does not consist of lines'
status 3 train csv.yaml --run never data.columns.target=outptu
says 'pairs.csv:1: no column "outptu" (data.columns.target); the columns are "id", "output", "input"'
{ cat pairs.csv && echo '300,"a'; } >torn.csv
status 3 train csv.yaml --run never data.train.source=torn.csv
says 'torn.csv:302: column 2: no closing quotation mark'
status 2 train csv.yaml --run never data.format=lines
says 'data.train.target: missing, but source is given'
status 3 generate runs/csv --input pairs.jsonl
says 'pairs.jsonl:1: no column "input" (data.columns.source); the columns are "label", "text"'
absent never
cat >parts.yaml <<CONFIG
name: parts
task: text2text
data: {train: {source: [src, pairs.csv], target: [tgt, pairs.csv]}, test: {source: [pairs.csv, src], target: [tgt, tgt]},
       columns: {source: input, target: output}, mixture: {prefixes: ['one: ', 'two: ']}}
$chars
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1}
train: {steps: 5, batch_tokens: 256}
CONFIG
status 0 train parts.yaml --json
loss=$(number loss)
status 0 eval runs/parts --json
equal 'loss of a mixture of files in train and eval' "$(number loss)" "$loss"
holds out '"parts":{"one":{' '"two":{"exact_match":[0-9.]+,"sentences":300}'

# ---- labels and two texts ------------------------------------------------------------------------------
awk 'BEGIN {
  print "premise,hypothesis,label" > "two.csv"
  for (i = 0; i < 300; i++) {
    a = "a" i % 5; b = "b" i % 3; label = i % 5 == i % 3 ? "same" : "other"
    print a "\t" b > "two.src"; print label > "two.tgt"; print a "," b "," label > "two.csv"
  } }'
words='tokenizer: {kind: word, shared: false}'
experiment two_lines classify 'train: {source: two.src, target: two.tgt}' "$words"
experiment two_texts classify 'train: {source: two.csv}, columns: {source: [premise, hypothesis]}' "$words"
trains two_lines two_texts
printf '{"premise": "a1", "hypothesis": "b1", "label": "same"}\n{"premise": "a1", "hypothesis": "b2", "label": 7}\n' >new.jsonl
status 0 eval runs/two_texts --source new.jsonl
says 'files: the vocabulary lacks 1 of 2 labels, such as "7" (' '/new.jsonl:2)'

# ---- texts ------------------------------------------------------------------------------------------
awk 'BEGIN { for (i = 0; i < 300; i++) { s = "abc \"" i % 7 "\""; print s > "text"
  gsub(/"/, "\\\"", s); print "{\"text\": \"" s "\"}" > "text.jsonl" } }'
for task in lm mlm; do
  experiment ${task}_lines $task 'train: {text: text}' "$chars"
  experiment ${task}_table $task 'train: {text: text.jsonl}' "$chars"
  trains ${task}_lines ${task}_table
done
status 0 eval runs/lm_lines --text text --json
of_lines=$(number loss)
status 0 eval runs/lm_lines --text text.jsonl --json
equal 'loss of the texts of a table' "$(number loss)" "$of_lines"
status 0 score runs/lm_lines --target text
cp out scores
status 0 score runs/lm_lines --target text.jsonl
cmp -s out scores || fail 'the scores of the texts of a table differ from those of lines'

# ---- tags -------------------------------------------------------------------------------------------
awk 'BEGIN { for (i = 0; i < 300; i++) { s = t = ""
  for (k = 0; k <= i % 4; k++) { w = (i * 7 + k * 3) % 11; s = s " w" w; t = t (w % 2 ? " odd" : " even")
    print "w" w "\t_\t" (w % 2 ? "odd" : "even") > "tags.conll" }
  print "" > "tags.conll"; print substr(s, 2) > "tags.src"; print substr(t, 2) > "tags.tgt" } }'
cp tags.conll tags.train
experiment tag_lines tag 'train: {source: tags.src, target: tags.tgt}' 'tokenizer: {kind: word}'
experiment tag_conll tag 'train: {source: tags.conll}' 'tokenizer: {kind: word}'
experiment tag_format tag "train: {source: tags.train}, format: conll, columns: {target: '3'}" 'tokenizer: {kind: word}'
trains tag_lines tag_conll tag_format
status 0 generate runs/tag_lines --input tags.src
cp out outputs
status 0 generate runs/tag_conll --input tags.conll
cmp -s out outputs || fail 'the labels of a CoNLL file differ from those of its lines'
printf 'w1\t_\todd\nw2\teven\n' >>tags.train
status 3 train tag_format.yaml --run never
says 'tags.train:1052: 2 columns; line 1 has 3'
status 2 train tag_conll.yaml --run never data.columns.source=word
says 'data.columns.source: "word": in a CoNLL file, the column is a number'
absent never

# ---- a folder of images for each class -------------------------------------------------------------------
mkdir -p images/dark images/light
for i in 0 1 2 3 4 5 6 7 8 9; do
  printf 'P5\n4 4\n255\n0%s%s0000000000000' $i $i >images/dark/$i.pgm
  printf 'P5\n4 4\n255\nz%s%szzzzzzzzzzzzz' $i $i >images/light/$i.pgm
  echo "images/dark/$i.pgm" && echo "images/light/$i.pgm"
done >list
awk -F/ '{ print $2 }' list >list.labels
sed 's/\(.*\)/\1,\1/; s/,images.\(.*\)\/.*/,\1/' list >list.csv
{ echo 'file,class' && cat list.csv; } >named.csv
image='input: image, image: {height: 4, width: 4, patch: 2}'
experiment images_lines classify "$image, train: {source: list, target: list.labels}" ''
experiment images_folder classify "$image, train: {source: images}" ''
experiment images_list classify "$image, train: {source: list.csv}" ''
experiment images_named classify "$image, train: {source: named.csv}, columns: {source: file, target: class}" ''
trains images_lines images_folder images_list images_named
says ' inputs, '
status 0 eval runs/images_lines --source list --target list.labels --json
of_lines=$(number loss)
for source in images list.csv; do
  status 0 eval runs/images_folder --source $source --json
  equal "loss of $source" "$(number loss)" "$of_lines"
done
status 0 generate runs/images_lines --input list
cp out outputs
status 0 generate runs/images_folder --input list.csv
cmp -s out outputs || fail 'the outputs of a table of images differ from those of a list'
mkdir 'images/very dark' && cp images/dark/0.pgm 'images/very dark'
status 3 train images_folder.yaml --run never
says 'images: 2 labels: each line of the target, or folder of a class, must be one label, without spaces; got "very dark"'
status 2 train images_folder.yaml --run never data.train.source=list
says 'data.train.target: names no file'
absent never

report
