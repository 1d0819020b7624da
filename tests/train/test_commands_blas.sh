#!/bin/sh
# The kernel of OpenBLAS: heed restarts itself with a faster kernel if OpenBLAS has chosen a slow one; it keeps a kernel
# that the user has chosen.
# Usage: test_commands_blas.sh HEED
. "${0%/*}/commands_support.sh"
unset OPENBLAS_CORETYPE HEED_BLAS_KERNEL
blas_messages=yes
skip() { echo "skipped: $*"; exit 77; }

${CC:-cc} -O1 -shared -fPIC -o shim.so "${0%/*}/blas_shim.c" -ldl || skip "no C compiler for the shim"
case $(uname -m) in
  x86_64) ;;
  *) skip "heed chooses a kernel of OpenBLAS only on x86_64" ;;
esac
config tiny

# The default kernel of OpenBLAS on this machine, and the fastest kernel for its vector instructions.
status 0 train tiny.yaml --run runs/calm
cp err calm
kernel_of() { sed -n 's/.*"blas": "OpenBLAS .* \([A-Za-z0-9]*\) MAX_THREADS.*/\1/p' "$1/run.json"; }
chooser_of() { sed -n 's/.*"chosen_by": "\([A-Za-z]*\)".*/\1/p' "$1/run.json"; }
grep -q '"blas": "OpenBLAS .*DYNAMIC_ARCH' runs/calm/run.json || skip "this OpenBLAS has only one kernel"
if grep -qw avx512vl /proc/cpuinfo; then best=SkylakeX; elif grep -qw fma /proc/cpuinfo; then best=Haswell; else
  skip "a processor without AVX2: no kernel is much slower than the best"
fi

# OpenBLAS chooses Prescott, as if it did not recognise the processor.
LD_PRELOAD=$work/shim.so BLAS_SHIM_KERNEL=Prescott
export LD_PRELOAD BLAS_SHIM_KERNEL
line="heed: OpenBLAS chose its kernel Prescott, which is slow on this processor; heed uses $best"
status 0 train tiny.yaml --run runs/unknown
says "$line"
equal 'lines about the kernel' "$(grep -c Prescott err)" 1
equal 'the kernel that heed chose' "$(kernel_of runs/unknown)" "$best"
equal 'chosen_by in run.json' "$(chooser_of runs/unknown)" heed
status 0 resume runs/unknown train.steps=31
says "$line"
status 0 bench tiny.yaml --steps 1 --json
holds out "\"blas\":\"OpenBLAS .* $best " '"blas_kernel_chosen_by":"heed"'
echo 'a b' | "$heed" generate runs/unknown --input - >piped 2>err || fail 'generate fails to read a pipe after a restart'
equal 'lines of output for one line of input, after a restart' "$(lines piped)" 1
says "$line"
"$heed" train tiny.yaml --run runs/named train.steps=1000000 >out 2>err &
for _ in $(seq 100); do [ -s runs/named/train.log ] && break; sleep 0.1; done
equal 'the name of the process after a restart' "$(cat /proc/$!/comm)" heed
kill $!
wait
status 0 sweep tiny.yaml train.steps=2 --seeds 2 --run runs/sweep
equal 'the kernel of the first run of a sweep' "$(kernel_of runs/sweep/001-seed=1)" "$best"
for command in 'plot schedule' 'runs runs' 'completion bash' 'complete heed tr' man 'help train' 'compare runs/calm runs/unknown'; do
  status 0 $command                                  # these commands multiply no matrices: no restart, no message
  equal "lines about kernels printed by heed $command" "$(grep -c kernel err)" 0
done

# A name unknown to OpenBLAS counts as unset.
OPENBLAS_CORETYPE=Wrong
export OPENBLAS_CORETYPE
status 0 train tiny.yaml --run runs/wrong
says "$line"
equal 'the kernel used in place of an unknown one' "$(kernel_of runs/wrong)" "$best"

# heed keeps the user's choice, with a warning if it is much slower than the fastest kernel.
OPENBLAS_CORETYPE=prescott
status 0 train tiny.yaml --run runs/mine
says 'heed: warning: OPENBLAS_CORETYPE=prescott makes matrix products several times slower' "set it to $best"
equal 'the kernel that the user chose' "$(kernel_of runs/mine)" Prescott
equal 'chosen_by in run.json' "$(chooser_of runs/mine)" user
OPENBLAS_CORETYPE=Haswell
status 0 train tiny.yaml --run runs/haswell
equal 'lines about kernels' "$(grep -c OPENBLAS_CORETYPE err)" 0
equal 'the kernel that the user chose' "$(kernel_of runs/haswell)" Haswell

# heed prints no message if OpenBLAS chooses the fastest kernel.
unset OPENBLAS_CORETYPE
BLAS_SHIM_KERNEL=$best
status 0 train tiny.yaml --run runs/known
equal 'lines about kernels' "$(grep -ci 'kernel\|openblas' err)" 0
equal 'chosen_by in run.json' "$(chooser_of runs/known)" OpenBLAS
report
