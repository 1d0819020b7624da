#!/bin/sh
# test_launcher.sh LAUNCHER: runs ./heed in a fake clone. Scripts that record their calls replace apt-get, sudo, cmake
# and other commands, so the test installs and builds nothing.
set -eu
launcher=$1
patience=$(sed -n 's/.*patience = \([0-9]*\);.*/\1/p' "${0%/*}/../patience.h")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
clone="$dir/a clone"
bin=$dir/bin
calls=$dir/calls
failures=0

# fake NAME: creates a command that records its call and then runs the script from standard input
fake() {
  rm -f "$bin/$1"                 # so that a link is replaced
  { echo '#!/bin/sh'; printf 'echo "%s $*" >>"%s"\n' "$1" "$calls"; cat; } >"$bin/$1"
  chmod +x "$bin/$1"
}

# ---- the fake clone and machine ------------------------------------------------------------------
mkdir -p "$bin" "$clone"
for module in autograd nn optim data train; do mkdir "$clone/$module"; : >"$clone/$module/x.cpp"; done
: >"$clone/CMakeLists.txt"; : >"$clone/CMakePresets.json"
cp "$launcher" "$clone/heed"

for tool in sh cat cp date dirname env find flock grep mkdir mv nproc readlink rm sed sleep tail touch; do
  ln -s "$(command -v $tool)" "$bin/$tool"
done
# The file `installed` lists the installed packages.
fake dpkg-query <<END
for p in "\$@"; do grep -qx -- "\$p" "$dir/installed" && printf ' %s=installed ' "\$p"; done; true
END
# until_err TEXT: waits until the launcher has printed TEXT
fake until_err <<END
began=\$(date +%s)
until grep -qsF "\$1" "$dir/err"; do
  [ \$((\$(date +%s) - began)) -lt $patience ] || break
  real_sleep 0.1
done
END
fake apt-get <<END
[ -f "$dir/apt-fails" ] && { echo 'E: no such mirror'; exit 100; }
case "\$*" in
  *' install '*) [ -f "$dir/reported" ] && { echo 'Setting up g++ (12.2)'; until_err 'installing packages, '; } ;;
esac
for p in "\$@"; do echo "\$p"; done >>"$dir/installed"
END
fake sudo <<'END'
exec "$@"
END
fake ctest <<'END'
pwd
END
# Configuring creates build.ninja, building creates the program; with "-n", the script reports whether there is work.
fake cmake <<END
case "\$*" in
  --build*-n) [ -f "$dir/no-work" ] && echo 'ninja: no work to do.' ;;
  --build*)
    [ -f "$dir/build-fails" ] && { echo 'x.cpp:1: error: planted'; exit 1; }
    began=\$(date +%s)               # if the file slow exists: builds until another launcher waits
    while [ -f "$dir/slow" ] && ! grep -qs waiting "$dir/err" "$dir/err2"; do
      [ \$((\$(date +%s) - began)) -lt $patience ] || break
      sleep 0.05
    done
    [ -f "$dir/reported" ] && { echo '[120/350] Building CXX object x'; until_err 'building, '; }
    mkdir -p build/release/train; cp "$dir/program" build/release/train/heed ;;
  *)
    [ -f "$dir/configure-fails" ] && { echo 'CMake Error: planted'; exit 1; }
    : >build/release/build.ninja
    echo "CMAKE_HOME_DIRECTORY:INTERNAL=\$PWD" >build/release/CMakeCache.txt ;;
esac; true
END
cat >"$dir/program" <<'END'
#!/bin/sh
echo "in $(pwd)"
for a in "$@"; do echo "[$a]"; done
[ "${1-}" = read ] && cat
[ "${1-}" = fail ] && exit 5
[ "${1-}" = pid ] && echo "pid $$"
exit 0
END
chmod +x "$dir/program"

# run ARGUMENTS: runs the launcher, sets `status`, and writes the output to out and err
run() {
  : >"$calls"
  status=0
  env -i PATH="$bin" $vars "${as:-$clone/heed}" "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
}
vars=
as=

fail() { echo "FAILED: $*"; for f in out err calls; do echo "--- $f"; cat "$dir/$f"; done; failures=$((failures + 1)); }
expect_status() { [ "$status" = "$1" ] || fail "$what: exit status $status instead of $1"; }
expect() { grep -qF -- "$2" "$dir/$1" || fail "$what: $1 does not contain: $2"; }
expect_no() { ! grep -qF -- "$2" "$dir/$1" || fail "$what: $1 contains: $2"; }
# all_built: makes the sources old and the launcher's stamp current, so that files touched afterwards are newer
all_built() {
  find "$clone" -exec touch -d '2 hours ago' {} +
  touch "$clone/build/release/.launcher-built"
  sleep 0.05                        # the resolution of file times is up to 10 ms
}

fake id <<'END'
echo 1000
END
: >"$dir/installed"

what='with HEED_NO_INSTALL, the launcher lists the packages and stops'
vars=HEED_NO_INSTALL=1; run train; vars=
expect_status 1; expect err '  g++'; expect err '  libopenblas-dev'; expect err 'apt-get install'
expect_no calls 'apt-get '; expect_no calls 'cmake --'
[ -s "$dir/out" ] && fail "$what: wrote to standard output"

what='without root and sudo, the launcher prints the command to run'
mv "$bin/sudo" "$dir/sudo"; run train; mv "$dir/sudo" "$bin/sudo"
expect_status 1; expect err 'no sudo'; expect err 'apt-get update && apt-get install --no-install-recommends g++'
expect_no calls 'apt-get '

what='the error of a failing apt-get is shown'
touch "$dir/apt-fails"; run train; rm "$dir/apt-fails"
expect_status 1; expect err 'E: no such mirror'; expect err 'could not install'; expect_no calls 'cmake --'

what='with sudo, the launcher installs missing packages, configures, builds and runs'
echo g++ >"$dir/installed"; cd "$dir"; run train 'my file.yaml' a=b ''
expect_status 0
expect err 'installing through apt-get, with sudo: cmake ninja-build'
expect calls 'sudo env DEBIAN_FRONTEND=noninteractive apt-get'
grep 'apt-get.* install' "$calls" | grep -q ' g++' && fail "$what: installs an installed package"
expect calls 'cmake --preset release'; expect calls 'cmake --build --preset release --target heed'
expect out "in $dir"; expect out '[my file.yaml]'; expect out '[a=b]'; expect out '[]'

what='long installations and builds report progress'
ln -s "$(command -v sleep)" "$bin/real_sleep"
fake sleep <<'END'
exec real_sleep 0.1
END
echo cmake >"$dir/installed"; : >"$dir/reported"; rm -r "$clone/build"; run show
rm "$dir/reported" "$bin/sleep"; mv "$bin/real_sleep" "$bin/sleep"
expect_status 0
expect err 'installing packages, '; expect err ' s: Setting up g++ (12.2)'
expect err 'building, '; expect err ' s: 120 of 350 steps'

all_built
what='an up-to-date program runs without a build'
run show x
expect_status 0; expect out '[show]'; [ -s "$calls" ] && fail "$what: called another command"
[ -s "$dir/err" ] && fail "$what: wrote to standard error"

what='the program'"'"'s exit status is returned'
run fail; expect_status 5

what='standard input reaches the program'
echo 'some text' | env -i PATH="$bin" "$clone/heed" read >"$dir/out"; expect out 'some text'

what='the program replaces the launcher, so that signals reach it'
env -i PATH="$bin" "$clone/heed" pid >"$dir/out" & child=$!; wait $child; expect out "pid $child"

what='absolute and relative links start the launcher'
mkdir "$dir/links"; ln -s "$clone/heed" "$dir/links/first"; ln -s first "$dir/links/second"
as=$dir/links/second; run show; expect_status 0; expect out '[show]'
cd "$dir/links"; as=./second; run show; expect_status 0
cd "$clone/nn"; as=../heed; run show; expect_status 0; expect out "in $clone/nn"
cd "$clone"; as=./heed; run show; expect_status 0; cd "$dir"; as=

for change in train/x.cpp CMakeLists.txt nn/new.h; do
  all_built; what="a newer $change causes a build"; touch "$clone/$change"; run show
  expect_status 0; expect calls '--target heed'; expect_no calls 'cmake --preset'
done
all_built; what='completion in a shell causes no build'; touch "$clone/train/x.cpp"; run complete heed tr
expect_status 0; expect out '[complete]'; expect_no calls 'cmake --'
all_built; what='a deleted file causes a build'; rm "$clone/nn/new.h"; run show; expect calls '--target heed'
all_built; what='changed presets cause a new configuration'; touch "$clone/CMakePresets.json"; run show
expect calls 'cmake --preset release'

all_built; what='with HEED_WITH_MPI, the launcher installs Open MPI and builds with it'
vars=HEED_WITH_MPI=1; run show
expect_status 0; expect calls 'libopenmpi-dev openmpi-bin'
expect calls 'cmake --preset release'; expect calls '--target heed'
: >"$clone/build/release/train/libheed_mpi_openmpi.so"; all_built; run show; vars=
expect_status 0; [ -s "$calls" ] && fail "$what: builds again"

all_built; what='a touched but unchanged file causes no message'
touch "$clone/train/x.cpp" "$dir/no-work"; run show; rm "$dir/no-work"
[ -s "$dir/err" ] && fail "$what: wrote to standard error"

all_built; what='after a failing build, the error is shown and the old program does not run'
touch "$clone/train/x.cpp" "$dir/build-fails"; run show
expect_status 1; expect err 'error: planted'; [ -s "$dir/out" ] && fail "$what: ran the program"
what='a failed build is retried at the next start'; run show; expect_status 1; rm "$dir/build-fails"; run show; expect_status 0

all_built; what='the error of a failing configuration is shown'
touch "$clone/CMakePresets.json" "$dir/configure-fails"; run show; rm "$dir/configure-fails"
expect_status 1; expect err 'CMake Error: planted'; expect err 'configuring failed'

what='a moved clone is configured from scratch'
all_built; mv "$clone" "$dir/moved"; clone=$dir/moved; touch "$clone/nn/x.cpp"; run show
expect_status 0; expect calls 'cmake --fresh --preset release'

what='of two concurrent launchers, one builds and the other waits'
all_built; touch "$clone/nn/x.cpp" "$dir/slow"; : >"$calls"
env -i PATH="$bin" "$clone/heed" first >"$dir/out" 2>"$dir/err" & one=$!
env -i PATH="$bin" "$clone/heed" second >"$dir/out2" 2>"$dir/err2" || fail "$what"
wait $one || fail "$what"
cat "$dir/err2" >>"$dir/err"
rm "$dir/slow"; expect err 'waiting'; expect out '[first]'; grep -qF '[second]' "$dir/out2" || fail "$what"
[ "$(grep -c 'target heed$' "$calls")" = 1 ] || fail "$what: built twice"

what='heed test builds everything and passes the arguments to ctest'
run test -R layout
expect_status 0; expect calls 'cmake --build --preset release'; expect_no calls '--target'
expect calls 'ctest --preset release'; expect calls '-R layout'; expect out "$clone"

what='as root, the launcher installs without sudo'
fake id <<'END'
echo 0
END
rm "$bin/sudo"; : >"$dir/installed"; rm -r "$clone/build"; run show
expect_status 0; expect calls 'apt-get -q'; expect calls 'cmake --preset release'

what='without apt-get, the launcher lists the requirements and builds; without cmake too, it stops'
rm "$bin/apt-get" "$bin/dpkg-query"; rm -r "$clone/build"; run show
expect_status 0; expect err libyaml-cpp-dev
mv "$bin/cmake" "$dir/cmake"; rm -r "$clone/build"; run show
expect_status 1; expect err 'apt-get and cmake are missing'; expect err libhwy-dev

[ $failures = 0 ] && echo "launcher: passed"
exit $failures
