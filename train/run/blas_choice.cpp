#include "train/run/blas_choice.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "autograd/base/error.h"
#include "autograd/kernels/fast/gemm/blas_kernel.h"
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

void use_best_blas_kernel(char** argv, bool quiet) {
  blas_kernel_checked = true;
  const kernels::BlasKernel kernel = kernels::blas_kernel();
  const kernels::BlasDiagnosis diagnosis = kernels::diagnose_blas_kernel();
  const Restart restart = find_restart();
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
