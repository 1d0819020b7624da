#!/bin/sh
# Plants each kind of violation in a small tree; check.sh must report each, and accept a clean tree.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/check.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

for module in autograd nn optim data train; do
  mkdir -p "$tree/$module" "$tree/tests/$module"
  printf '#pragma once\n#include <vector>\n' >"$tree/$module/$module.h"
  printf '#include "%s/%s.h"\n' $module $module >"$tree/$module/$module.cpp"
  : >"$tree/$module/CMakeLists.txt"
  : >"$tree/tests/$module/CMakeLists.txt"
done
printf '#include "autograd/base/error.h"\n#include "autograd/base/random.h"\n' >>"$tree/data/data.h"
mkdir -p "$tree/autograd/kernels/fast"
printf '#include "hwy/highway.h"\n' >"$tree/autograd/kernels/fast/lanes-inl.h"   # may be quoted
printf '#include "autograd/autograd.h"\n' | tee -a "$tree/nn/nn.h" >>"$tree/optim/optim.h"
printf '#include "nn/nn.h"\n#include "optim/optim.h"\n#include "data/data.h"\n' >>"$tree/train/train.h"

failed=0
sh "$check" "$tree" >"$tree/out" || { echo "a clean tree is rejected:"; cat "$tree/out"; failed=1; }

# planted MESSAGE FILE TEXT: adds the text to the file, expects the message, restores the file
planted() {
  cp "$tree/$2" "$tree/backup" 2>/dev/null || rm -f "$tree/backup"
  mkdir -p "$(dirname "$tree/$2")"
  printf '%b' "$3" >>"$tree/$2"
  if sh "$check" "$tree" >"$tree/out"; then
    echo "not reported: $1"; failed=1
  elif ! grep -qF "$1" "$tree/out"; then
    echo "reported differently; expected: $1"; cat "$tree/out"; failed=1
  fi
  if [ -f "$tree/backup" ]; then cp "$tree/backup" "$tree/$2"; else rm "$tree/$2"; fi
}
for upper in nn optim data train tests; do
  planted "autograd.h:3: autograd/ must not include $upper/x.h" autograd/autograd.h "#include \"$upper/x.h\"\n"
done
planted 'nn/ must not include optim/adam.h' nn/nn.cpp '#include "optim/adam.h"\n'
planted 'nn/ must not include data/batches/batch.h' nn/nn.cpp '  #  include <data/batches/batch.h>\n'
planted 'nn/ must not include sibling.h' nn/nn.cpp '#include "sibling.h"\n'
planted 'optim/ must not include nn/linear.h' optim/optim.cpp '#include "nn/linear.h"\n'
planted 'optim/ must not include train/x.h' optim/optim.cpp '#include "train/x.h"\n'
planted 'data/ must not include autograd/tensor.h' data/data.h '#include "autograd/tensor.h"\n'
planted 'data/ must not include nn/linear.h' data/data.h '#include "nn/linear.h"\n'
planted 'train/ must not include tests/x.h' train/train.cpp '#include "tests/x.h"\n'
planted 'nn.h:4: a lower folder must not include nn/layers/norm.h' nn/nn.h '#include "nn/layers/norm.h"\n'
planted 'its folder is not listed in tests/layout/check.sh' nn/extra/x.h '#pragma once\n'
rm -rf "$tree/nn/extra"
for n in $(seq 24); do printf '#pragma once\n' >"$tree/nn/h$n.h"; done
planted 'nn: more than 24 files of code in one folder' nn/nn.cpp '\n'
rm "$tree"/nn/h*.h
planted 'nn/nn.cpp:2: this folder must not include <cblas.h>' nn/nn.cpp '#include <cblas.h>\n'
planted 'this folder must not include <hwy/highway.h>' autograd/autograd.cpp '#include <hwy/highway.h>\n'
planted 'this folder must not include "hwy/targets.h"' nn/nn.cpp '#include "hwy/targets.h"\n'
planted 'autograd/kernels/fast/x.cpp: includes hwy/foreach_target.h without' autograd/kernels/fast/x.cpp \
  '#include "hwy/foreach_target.h"\n'
planted 'this folder must not include <yaml-cpp/yaml.h>' data/data.cpp '#include <yaml-cpp/yaml.h>\n'
planted 'nn/nn.cpp: more than 600 lines' nn/nn.cpp "$(printf '%600s' '' | sed 's/ /\\n/g')"
planted 'nn/b.h: a header without #pragma once' nn/b.h 'int x;\n'
planted 'tests/nn/test_x.cpp: no CMakeLists.txt names this source' tests/nn/test_x.cpp 'int x;\n'
planted 'tests/misc: neither a module nor' tests/misc/x.cpp 'int x;\n'
rm -rf "$tree/tests/misc" "$tree/tests/optim"
planted 'optim: has sources but no tests/optim/CMakeLists.txt' optim/optim.cpp '\n'
mkdir "$tree/tests/optim" && : >"$tree/tests/optim/CMakeLists.txt"
if command -v git >/dev/null; then
  git -C "$tree" init -q && mkdir "$tree/misc" && : >"$tree/misc/x" && git -C "$tree" add misc/x
  planted 'misc: does not belong at the top level' nn/nn.cpp '\n'
fi
exit $failed
