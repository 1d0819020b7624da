#include "train/run/blas_choice.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "autograd/base/error.h"
#include "autograd/kernels/fast/gemm/blas_kernel.h"
#include "autograd/kernels/fast/gemm/blas_memory.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

/// A restart sets this variable to two kernels, OpenBLAS's choice and heed's: "Prescott SkylakeX".
/// The processes that heed starts inherit it.
constexpr const char* restart_variable = "HEED_BLAS_KERNEL";

struct Restart {
  std::string before, chosen;
};

/// The restart that led to this process; empty if there was none, or if the user has since chosen a
/// kernel.
Restart find_restart() {
  const char* const value = std::getenv(restart_variable);
  const char* const requested = std::getenv("OPENBLAS_CORETYPE");
  if (value == nullptr || requested == nullptr) return {};
  const std::string text = value;
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.substr(space + 1) != requested) return {};
  return {text.substr(0, space), requested};
}

}  // namespace

std::string blas_kernel_chooser() {
  const kernels::BlasKernel kernel = kernels::blas_kernel();
  if (!kernel.is_requested()) return "OpenBLAS";
  return find_restart().chosen.empty() ? "user" : "heed";
}

void require_memory_of_blas() {
  constexpr rlim_t program = rlim_t{64} << 20, stack = rlim_t{8} << 20;
  const auto threads = static_cast<rlim_t>(kernels::blas_threads_at_start());
  const rlim_t limit = address_space_limit(),
               needed = program + threads * (blas_buffer_bytes + stack);
  if (threads == 0 || limit == RLIM_INFINITY || limit >= needed) return;
  print_error(
      fmt::format("the limit of the address space is {} MiB, but OpenBLAS, which starts a thread "
                  "for each processor, needs {} MiB: raise it (ulimit -v), or set "
                  "OPENBLAS_NUM_THREADS=1",
                  limit >> 20, needed >> 20));
  std::_Exit(static_cast<int>(Exit::io));
}

void use_best_blas_kernel(char** argv, bool quiet) {
  blas_kernel_checked = true;
  const kernels::BlasKernel kernel = kernels::blas_kernel();
  const kernels::BlasDiagnosis diagnosis = kernels::diagnose_blas_kernel();
  const Restart restart = find_restart();
  if (!restart.chosen.empty())  // otherwise ps shows the name of the link, "exe"
    ::prctl(PR_SET_NAME, program_invocation_short_name);
  if (diagnosis.crashes) throw Error(Exit::usage, diagnosis.problem);
  if (!diagnosis.better.empty() && restart.chosen.empty()) {
    ::setenv("OPENBLAS_CORETYPE", diagnosis.better.c_str(), 1);
    ::setenv(restart_variable, fmt::format("{} {}", kernel.name, diagnosis.better).c_str(), 1);
    ::execv("/proc/self/exe", argv);
    ::unsetenv(restart_variable);  // execv failed: continue with the slow kernel
    ::unsetenv("OPENBLAS_CORETYPE");
  }
  if (quiet) return;
  if (!diagnosis.problem.empty()) return print_note("warning: " + diagnosis.problem);
  if (!restart.chosen.empty() && kernel.is_requested()) {
    print_note(
        fmt::format("OpenBLAS chose its kernel {}, which is slow on this processor; heed uses {}",
                    restart.before, restart.chosen));
  }
}

}  // namespace heed
