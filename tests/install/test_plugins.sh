#!/bin/sh
# Plugins: builds the files of docs/PLUGINS.md against an installed heed; trains, evaluates and decodes with
# them; then checks that heed refuses faulty plugins.
# Usage: test_plugins.sh HEED PREFIX DOCS CXX GENERATOR FLAGS
here=$(cd "${0%/*}" && pwd)
prefix=$2 docs=$3 cxx=$4 generator=$5 flags=$6
. "$here/../train/commands_support.sh"

# ---- building ------------------------------------------------------------------------------------------
# block NAME FOLDER: copies the page's code block that begins with the comment NAME to FOLDER/NAME
block() { awk -v name="$1" '/^```/ { inside = 0 } inside { print } !inside && ($0 == "// " name || $0 == "# " name) { inside = 1 }' "$docs" >"$2/$1"; }
# build FOLDER: configures and builds FOLDER in FOLDER/build
build() {
  cmake -S "$1" -B "$1/build" -G "$generator" "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_CXX_COMPILER=$cxx" \
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wconversion -Wno-sign-conversion -Werror $flags" -DCMAKE_BUILD_TYPE=Release >log 2>&1 &&
    cmake --build "$1/build" >>log 2>&1 || { cat log; exit 1; }
}
mkdir mine
for file in gate.cpp CMakeLists.txt gate.yaml; do block "$file" mine; done
build mine
mkdir more && cp "$here"/plugins/* more && build more
cd mine || exit 1
more=../more/build

# ---- commands --------------------------------------------------------------------------------------------
status 0 show gate.yaml
holds out '^plugins: \[build/libmine.so\]' '  mixer: mine.gate' '  activation: mine.squash' \
  '^plugin +build/libmine.so: mixer mine.gate, activation mine.squash$' 'mixer.slope \[1\]'
status 0 show gate.yaml --json
holds out '"names":\["mixer mine.gate","activation mine.squash"\]' '"sha256":"[0-9a-f]{64}"'
status 0 gradcheck gate.yaml --entries 2
holds out '^encoder.layers.0.mixer.slope .* ok$' '^decoder.layers.0.mixer.gate.weight .* ok$' 'all [0-9]+ parameters have the right gradient'
status 0 bench gate.yaml --steps 2
status 0 train gate.yaml
holds runs/gate/run.json '"file": "build/libmine.so"' '"sha256": "[0-9a-f]{64}"'
status 0 resume runs/gate train.steps=40
checks=$((checks + 1)); grep -q 'libmine.so differs' err && fail 'an unchanged library is reported as changed'
status 0 eval runs/gate --json
metrics() { sed 's/"decode_seconds":[^,]*,//' out; }
cached=$(metrics)
status 0 eval runs/gate --json decode.cached=false
equal 'metrics with decode.cached=false' "$(metrics)" "$cached"
printf 'a b c\nb a\n\n' >lines
status 0 generate runs/gate --input lines
equal 'lines of output' "$(lines out)" 3
status 0 score runs/gate --source lines --target lines
status 0 train gate.yaml plugins=build/libmine.so --run lm task=lm data.synthetic.name=none data.train.text=gate.yaml data.test.text=gate.yaml
status 0 generate lm --prompt 'a'
status 0 quantize runs/gate
status 0 prune runs/gate --share 0.5 --run pruned
rm -r pruned
status 0 train gate.yaml --run parts train.steps=6 threads=1
status 0 train gate.yaml --run whole train.steps=6 threads=2
equal 'weights trained on one thread and on two' "$(cksum <parts/last/model.safetensors)" "$(cksum <whole/last/model.safetensors)"

# The plugin in the installed Python module, if it has been built and Python finds NumPy.
python() { OPENBLAS_CORETYPE=$kernel PYTHONPATH=$prefix/lib/python3/dist-packages /usr/bin/python3 -c "$1"; }
kernel=$(sed -n '/"blas_kernel"/,/}/s/.*"name": "\(.*\)".*/\1/p' parts/run.json)   # the program may have restarted with it
if python 'import numpy, heed' 2>err; then
  python '
import heed
heed.train("gate.yaml", run="by_python", train={"steps": 6})
assert heed.gradcheck("gate.yaml", entries=1).passed' >out 2>err || fail 'the Python module with a plugin'
  equal 'weights trained in Python' "$(cksum <by_python/last/model.safetensors)" "$(cksum <parts/last/model.safetensors)"
fi

# A plugin's task, with the mixer of the first plugin.
cat >echo.yaml <<CONFIG
plugins: [$more/libmore.so, build/libmine.so]
task: more.echo
data: {synthetic: {name: copy, train: 600, valid: 40, test: 30, max_length: 5, symbols: 5}}
tokenizer: {kind: char}
model: {d_model: 32, heads: 2, d_ff: 64, layers: 1, mixer: mine.gate, dropout: 0.0}
optim: {lr: 1.0e-2, schedule: {name: constant, warmup: 5}}
train: {steps: 60, batch_tokens: 256, validate_every: 30, save_every: 30, best: token_accuracy}
CONFIG
status 0 show echo.yaml
holds out '^plugin +../more/build/libmore.so: task more.echo$'
status 0 gradcheck echo.yaml --entries 2
status 0 train echo.yaml
says 'echoes'
status 0 resume runs/echo train.steps=70
status 0 bench echo.yaml --steps 2
status 0 eval runs/echo
holds out 'token accuracy 100'
echo 'a c b' >lines
status 0 generate runs/echo --input lines
equal 'output of the echo task' "$(cat out)" 'a c b'
status 2 generate runs/echo --beam 3
says '--beam 3: only for task: seq2seq, lm'
status 2 show echo.yaml train.best=bleu
says 'bleu is only for task'

# ---- changed, missing and moved libraries ----------------------------------------------------------------
cp build/libmine.so kept.so
printf 'x' >>build/libmine.so
status 3 resume runs/gate train.steps=41
says '--trust-plugins'
status 0 resume runs/gate train.steps=41 --trust-plugins
says 'plugin build/libmine.so differs from the one that the run was started with'
status 0 resume runs/gate
checks=$((checks + 1)); grep -q 'libmine.so differs' err && fail 'an adopted plugin is still reported as a change'
mv kept.so build/libmine.so
status 0 eval runs/gate
says 'note: plugin build/libmine.so differs'
mkdir moved && mv build/libmine.so moved
status 3 eval runs/gate
says 'plugin build/libmine.so: ' 'no such file'
status 0 resume runs/gate plugins=moved/libmine.so train.steps=42
says 'plugins is now [moved/libmine.so] (it was [build/libmine.so])'
status 0 eval runs/gate
mv moved/libmine.so build

# ---- run folders of strangers ----------------------------------------------------------------------------
# The folder "received" contains a run and the library that its config names.
state=$XDG_STATE_HOME
mkdir received && cp $more/libmarks.so $more/libmarks_f64.so received
status 0 train gate.yaml plugins=received/libmarks.so model.mixer=attention model.activation=marks.same --run received/run
checks=$((checks + 1)); [ -e ran ] || fail 'libmarks.so leaves no mark, so the following checks detect nothing'
sum=$(sha256sum received/libmarks.so)
equal 'lines of the list of trusted plugins that name libmarks.so' \
  "$(grep -c "^${sum%% *}  $PWD/received/libmarks.so\$" "$state/heed/trusted")" 1
status 0 gradcheck received/run/config.yaml --trust-plugins --entries 1
equal 'lines of the list for libmarks_f64.so' "$(grep -c '/libmarks_f64.so$' "$state/heed/trusted")" 1
status 0 gradcheck received/run/config.yaml --entries 1
equal 'lines of the list that are repeated' "$(sort "$state/heed/trusted" | uniq -d)" ''
cp gate.yaml student.yaml && sed -i '/^plugins/d; s/mixer: mine.gate, activation: mine.squash/activation: relu/' student.yaml
refused() {   # refused ARGS...: heed refuses these arguments and runs no code of the library
  rm -f ran
  status 3 "$@"
  says '/config.yaml:' 'plugin received/libmarks.so: only the config of a run names it' 'repeat the command with --trust-plugins'
  absent ran
}
XDG_STATE_HOME=$PWD/stranger
for command in show eval compare report resume quantize 'generate --input lines' 'score --source lines --target lines' \
  'prune --share 0.5 --run pruned' 'attention --input a' 'trace --input a' 'compare runs/parts'; do
  # shellcheck disable=SC2086
  refused ${command%% *} received/run ${command#"${command%% *}"}
done
for command in show gradcheck bench 'train --run again' sweep; do
  # shellcheck disable=SC2086
  refused ${command%% *} received/run/config.yaml ${command#"${command%% *}"}
done
refused train student.yaml --run student train.distill.teacher=received/run
# The stranger decides which of the other files there are.
mv received/run/run.json kept.json
ln -s run.json received/run/run.json
refused bench received/run/config.yaml
rm received/run/run.json
refused bench received/run/config.yaml
rm -f received/run/.lock
refused bench received/run/config.yaml
mv kept.json received/run/run.json
absent pruned again student received/run-int8 "$XDG_STATE_HOME"
status 0 runs received
absent ran
# What the user names is loaded, listed, and from then on trusted in run folders.
status 0 show received/run plugins=received/libmarks.so
status 0 compare received/run
printf 'x' >>received/libmarks.so
refused compare received/run
cp $more/libmarks.so received
status 0 compare received/run
mkdir elsewhere && mv received/libmarks.so elsewhere && ln -s ../elsewhere/libmarks.so received
refused compare received/run   # the same bytes elsewhere: beside other libraries
rm -r received/libmarks.so elsewhere && cp $more/libmarks.so received
status 3 gradcheck received/run/config.yaml --entries 1
says 'plugin received/libmarks_f64.so: only the config of a run names it'
XDG_STATE_HOME=$PWD/stranger-2
status 0 compare received/run --trust-plugins
status 0 train student.yaml --run student train.distill.teacher=received/run
# Without a list, training continues, and its run folder needs the option.
XDG_STATE_HOME=$PWD/gate.yaml
status 0 train gate.yaml plugins=received/libmarks.so model.mixer=attention model.activation=marks.same --run unlisted
says 'heed: warning: plugin received/libmarks.so cannot be listed as trusted, so commands that read a run with it will need --trust-plugins: ' gate.yaml
refused resume unlisted train.steps=31
status 0 resume unlisted train.steps=31 --trust-plugins
status 0 sweep gate.yaml plugins=received/libmarks.so model.mixer=attention model.activation=marks.same optim.lr=1e-3,3e-3 train.steps=4 --run swept --halving --trust-plugins
XDG_STATE_HOME=$state

# ---- plugins that are refused ----------------------------------------------------------------------------
status 2 show gate.yaml 'plugins=[]'
says 'model.mixer: expected one of attention, lstm, gru, conv, got "mine.gate" (a name with a dot is registered by a plugin' 'model.activation: expected one of relu,'
status 2 show gate.yaml model.mixer=mine.gait
says 'expected one of attention, lstm, gru, conv, mine.gate, got "mine.gait" (did you mean mine.gate?)'
status 2 show gate.yaml model.positions=alibi
says 'alibi is only for mixer: attention'
status 3 show gate.yaml plugins=build/nothing.so
says 'command line: plugins=build/nothing.so: plugin build/nothing.so: ' 'no such file'
status 3 show gate.yaml plugins=libmine.so   # the system's folders are not searched
says 'no such file'
status 3 show gate.yaml plugins=gate.yaml
says 'plugin gate.yaml: not a shared library'
status 3 show gate.yaml plugins=build
says 'plugin build: '
status 3 show gate.yaml "plugins=$("$cxx" -print-file-name=libstdc++.so)"
says 'it registers nothing: expected HEED_MIXER'
status 3 show gate.yaml plugins=build/libmine_f64.so
says 'it is a float64 build, which gradcheck loads automatically'
status 3 show gate.yaml "plugins=[build/libmine.so, $more/libundotted.so]"
says "plugin $more/libundotted.so: activation \"gelu\": expected a name of words joined by dots"
status 3 show gate.yaml "plugins=$more/liblost.so"
says "plugin $more/liblost.so: cannot be loaded: " 'undefined symbol' 'defined_nowhere'
cp build/libmine.so twice.so
status 3 show gate.yaml 'plugins=[build/libmine.so, twice.so]'
says 'plugin twice.so: mixer mine.gate is already registered by build/libmine.so'
sed 's/a plugin for heed [0-9.]* (/a plugin for heed 9.8.7 (/' build/libmine.so >old.so
status 3 show gate.yaml plugins=old.so
says 'plugin old.so: it was built for heed 9.8.7 (headers ' 'but this is heed 0.' 'build it again'
for command in 'train --run ahead' gradcheck bench; do
  # shellcheck disable=SC2086
  status 1 $command gate.yaml "plugins=[build/libmine.so, $more/libahead.so]" model.mixer=wrong.ahead
  says 'mixer wrong.ahead: row ' ' of a sequence depends on rows '
done
absent ahead
forgets="gradcheck gate.yaml plugins=[build/libmine.so,$more/libforgets.so] --entries 2"
# shellcheck disable=SC2086
status 1 $forgets model.mixer=wrong.forgets
holds out '^wrong op: the backward of Forgetful: .*missing term: the difference is, along axis 1, a multiple of the output y'
# shellcheck disable=SC2086
status 1 $forgets model.mixer=wrong.alone
holds out '^failed: with a batch of one sequence, the gradient of ' '^wrong op: the backward of Forgetful: '
cp build/libmine.so alone.so
status 3 gradcheck gate.yaml plugins=alone.so
says 'plugin alone.so: gradients are checked in float64, and alone_f64.so is missing'
cp build/libmine.so alone_f64.so
status 3 gradcheck gate.yaml plugins=alone.so
says 'plugin alone_f64.so: it is a float32 build'
report
