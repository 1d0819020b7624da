#pragma once
/// Which of its kernels OpenBLAS runs. It chooses one when it is loaded, by the processor's family and
/// model, and falls back to its oldest (Prescott, of 2004) on a processor that is newer than the library.
/// The processor's instruction sets say which kernel it could run.
#include <atomic>
#include <string>
#include <string_view>

#include "autograd/base/real.h"

namespace heed {
/// Set when the program has dealt with the choice itself: the library then prints no warning.
inline std::atomic<bool> blas_kernel_checked = false;
}  // namespace heed

HEED_BEGIN
namespace kernels {

/// The vector instructions that a kernel needs or a processor has, in ascending order of speed.
enum class BlasVectors { sse, avx, avx2, avx512 };

struct BlasKernel {
  std::string name;       ///< the kernel that runs: "Haswell"
  std::string requested;  ///< OPENBLAS_CORETYPE, which chooses a kernel by name; empty if unset

  /// Whether OpenBLAS runs what was requested. It ignores names that it does not know.
  bool is_requested() const;
};
/// Of this process.
BlasKernel blas_kernel();

/// What is wrong with a kernel on a processor.
struct BlasDiagnosis {
  std::string
      better;  ///< the kernel to request instead, if the one that runs uses narrower vectors
  bool crashes = false;  /// the kernel needs vectors that the processor lacks
  std::string problem;   ///< one line, with the remedy; empty if there is nothing to say
};
/// A kernel that was requested is only diagnosed if it crashes or is far too slow (no AVX2 where the processor has
/// it). Nothing is said about kernels of unknown names.
BlasDiagnosis diagnose(const BlasKernel& kernel, BlasVectors processor);
/// Of this process. Nothing is said about processors other than x86, or about an OpenBLAS with one kernel only.
BlasDiagnosis diagnose_blas_kernel();

/// Prints the problem, if there is one, to stderr, once per process and unless blas_kernel_checked: for programs that
/// use heed as a library.
void warn_about_blas_kernel();

}  // namespace kernels
HEED_END
