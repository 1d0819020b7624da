#!/bin/sh
# The commands that list runs and document heed: runs, completion, man.
# Usage: test_commands_help.sh HEED
. "${0%/*}/commands_support.sh"
skipped=

# ---- runs -------------------------------------------------------------------------------------------
config tiny
status 2 runs
says 'runs: no such folder'
mkdir runs
status 0 runs
says 'runs: no runs in this folder'
equal 'lines of output without runs' "$(lines out)" 0
status 0 runs --json
equal 'JSON without runs' "$(cat out)" '{"runs":[]}'
status 0 train tiny.yaml
status 0 train tiny.yaml --run runs/sweep/other train.steps=15 seed=2
status 0 prune runs/tiny --share 0.5 --run runs/pruned
status 0 quantize runs/tiny
mkdir runs/broken && cp -r runs/tiny/checkpoints runs/broken && echo 'task: [' >runs/broken/config.yaml
status 0 runs
equal 'lines of a table of five runs' "$(lines out)" 6
holds out '^run +task +state +step +figure +minutes +changed$' \
  '^runs/tiny +seq2seq +finished +30 +loss [0-9.]+ \(test\) +0\.[0-9] +just now$' \
  '^runs/sweep/other +seq2seq +finished +15 ' '^runs/pruned +seq2seq +pruned +[13][05] ' \
  '^runs/tiny-int8 +seq2seq +quantised ' '^runs/broken +- +broken: runs/broken/config.yaml:'
status 0 runs runs/sweep --json
holds out '^\{"runs":\[\{.*"run":"runs/sweep/other".*"state":"finished"'
rm -r runs/sweep/other/checkpoints runs/sweep/other/last runs/sweep/other/best
status 0 runs runs/sweep
holds out '^runs/sweep/other +seq2seq +no checkpoint +15 of 15 '

# ---- completion -------------------------------------------------------------------------------------
status 2 completion fish
says 'SHELL' 'bash'
status 0 complete                       # hidden: the scripts call it
equal 'lines of candidates for no word' "$(lines out)" 0
status 0 complete heed eval --json --help -- --spl
holds out "^--split$(printf '\t')valid or test"
status 0 --help
equal 'hidden commands in the help' "$(grep -c '^  complete ' out)" 0
status 0 completion bash
cp out heed.bash
status 0 completion zsh
cp out _heed
mkdir -p folder/wrong folder/killed configs 'runs/with space' runs/sweep/001-seed=1 runs/.hidden
touch configs/a.yaml configs/b.yml configs/c.txt 'configs/with space.yaml'
for run in 'with space' sweep/001-seed=1 .hidden; do touch "runs/$run/config.yaml"; done
# Programs that are broken: one prints only messages, one is killed.
printf '#!/bin/sh\necho wrong >&2; exit 1\n' >folder/wrong/heed
printf '#!/bin/sh\nkill -9 $$\n' >folder/killed/heed
chmod +x folder/*/heed
PATH=${heed%/*}:$PATH
# completes WORDS... EXPECTED: the sorted completions of the last word in bash; bash splits words at =
completes() {
  checks=$((checks + 1))
  got=$(bash -c '
    set -u
    source ./heed.bash
    COMP_WORDBREAKS=$1 wanted=${!#}
    COMP_WORDS=("${@:2:$#-2}") COMP_CWORD=$(($# - 3))
    _heed
    ((${#COMPREPLY[@]} == 0)) || printf "%s\n" "${COMPREPLY[@]}" | LC_ALL=C sort | tr "\n" " "' bash "$breaks" "$@" 2>&1)
  for wanted; do :; done
  [ "$got" = "${wanted:+$wanted }" ] || fail "bash completion of: $*: $got"
}
if command -v bash >/dev/null; then
  breaks='= :'
  completes heed tr 'trace train'
  completes heed --v --version
  completes heed help qu quantize
  completes heed fetch m 'mnist multi30k'
  completes heed completion '' 'bash zsh'
  completes heed train conf configs
  completes heed train configs/ 'configs/a.yaml configs/b.yml configs/with space.yaml'
  completes heed train configs/a.yaml --o --overwrite
  completes heed train configs/a.yaml --run fol folder
  completes heed train --overwrite --run folder configs/a configs/a.yaml
  completes heed train configs/a.yaml train.ste train.steps=
  completes heed train configs/a.yaml model.norm = 'none post pre'
  completes heed train configs/a.yaml model.norm = p 'post pre'
  completes heed train configs/a.yaml train.steps = 20 optim.schedule.name = co 'constant cosine'
  completes heed train configs/a.yaml train.recompute = t true
  completes heed train configs/a.yaml data.train.source = configs/c configs/c.txt
  completes heed train configs/a.yaml model.init_from = runs/t 'runs/tiny runs/tiny-int8'
  completes heed train configs/a.yaml train.steps = ''
  completes heed eval '' 'configs/ folder/ runs/ runs/broken runs/pruned runs/sweep/ runs/tiny runs/tiny-int8 runs/with\ space'
  completes heed eval runs/ti 'runs/tiny runs/tiny-int8'
  completes heed eval runs/tiny --split '' 'test valid'
  completes heed eval runs/tiny --split = v valid
  completes heed eval runs/tiny --weights be best
  completes heed eval runs/tiny --source configs/c configs/c.txt
  completes heed eval runs/tiny decode.be decode.beam=
  completes heed compare runs/tiny runs/pr runs/pruned
  completes heed show configs/a configs/a.yaml
  completes heed eval runs/ 'runs/broken runs/pruned runs/sweep/ runs/tiny runs/tiny-int8 runs/with\ space'
  completes heed eval runs/. runs/.hidden
  completes heed eval runs/sweep/ 'runs/sweep/001-seed=1 runs/sweep/other'
  completes heed eval runs/sweep/001-seed = 1
  completes heed eval runs/tiny --weights '' 'average best configs folder last runs'
  completes heed plot schedule '' 'configs folder runs tiny.yaml'
  completes heed show '' 'configs folder runs runs/broken runs/pruned runs/sweep/ runs/tiny runs/tiny-int8 runs/with\ space tiny.yaml'
  completes heed train configs/a.yaml model.dro 'model.dropout.activation= model.dropout.attention= model.dropout.residual= model.dropout='
  completes heed dance '' ''
  completes heed dance tr ''
  for program in absent wrong killed; do completes folder/$program/heed tr ''; done
  breaks=' '
  completes heed train configs/a.yaml model.norm=p 'model.norm=post model.norm=pre'
  for command in $("$heed" --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    completes heed "$command" --hel --help
  done
else
  skipped="$skipped bash"
fi
[ -z "$(command -v zsh)" ] || zsh -n _heed 2>err || fail 'zsh -n reports errors in the completion script'
# Lines before and after TAB.
cat >lines <<'LINES'
heed trai
heed fetch mu
heed train configs/a
heed train configs/a.yaml --over
heed train configs/a.yaml --run fol
heed train configs/a.yaml train.ste
heed train configs/a.yaml model.norm=po
heed train configs/a.yaml train.steps=20 optim.schedule.name=cos
heed train configs/a.yaml data.train.source=configs/c
heed eval runs/prun
heed eval runs/tiny --split val
heed eval runs/tiny --split=val
heed eval runs/with
heed eval runs/sweep/001-seed=
heed eval "configs/with" --source configs/with\ 
heed train "configs/with 
heed eval ~/ru
folder/absent/heed trai
folder/wrong/heed trai
folder/killed/heed trai
LINES
cat >expected <<'LINES'
heed train 
heed fetch multi30k 
heed train configs/a.yaml 
heed train configs/a.yaml --overwrite 
heed train configs/a.yaml --run folder/
heed train configs/a.yaml train.steps=
heed train configs/a.yaml model.norm=post 
heed train configs/a.yaml train.steps=20 optim.schedule.name=cosine 
heed train configs/a.yaml data.train.source=configs/c.txt 
heed eval runs/pruned 
heed eval runs/tiny --split valid 
heed eval runs/tiny --split=valid 
heed eval runs/with\ space 
heed eval runs/sweep/001-seed=1 
heed eval "configs/with" --source configs/with\ space.yaml 
heed train "configs/with space.yaml" 
heed eval ~/runs/
folder/absent/heed trai
folder/wrong/heed trai
folder/killed/heed trai
LINES
for shell in bash zsh; do
  if ! command -v $shell >/dev/null || ! command -v python3 >/dev/null; then
    skipped="$skipped TAB-in-$shell"
    continue
  fi
  script=heed.bash
  [ $shell = bash ] || script=_heed
  HOME=$work python3 -B "${0%/*}/press_tab.py" $shell $script "$patience" <lines >completed 2>err
  checks=$((checks + 1))
  cmp -s completed expected || { fail "the completions in $shell differ from the expected ones"; diff expected completed; }
done

# ---- man --------------------------------------------------------------------------------------------
status 0 man
cp out heed.1
checks=$((checks + 1))
grep -q '^\.SS complete$' heed.1 && fail 'the man page has the hidden command'
checks=$((checks + 1))
LC_ALL=C grep -q '[^ -~]' heed.1 && fail 'the man page is not ASCII'
holds heed.1 '^\.TH HEED 1 ' '^\.SS train$' '^\\fB\\-\\-overwrite\\fR$' '^\\fBtrain\.steps\\fR$' '^\.SH FILES$'
if command -v groff >/dev/null; then
  for device in utf8 ascii; do
    checks=$((checks + 1))
    LC_ALL=C.UTF-8 groff -ww -man -T$device heed.1 >page 2>err || fail "groff -T$device fails"
    [ "$device" = ascii ] || [ ! -s err ] || fail 'groff prints warnings about the man page'
  done
  LC_ALL=C.UTF-8 groff -man -Tutf8 -P-cbou heed.1 >page 2>/dev/null
  holds page '^NAME$' '^ +heed - trains' "heed generate runs/tinyshakespeare --prompt 'ROMEO:'" '^ +train\.steps$'
else
  skipped="$skipped groff"
fi
if command -v man >/dev/null; then
  checks=$((checks + 1))
  LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l heed.1 >page 2>err || fail 'man -l fails'
  [ ! -s err ] || fail 'man prints warnings about the man page'
else
  skipped="$skipped man"
fi

[ -z "$skipped" ] || echo "not installed, so not tested:$skipped"
report
