#pragma once
/// The kernel that OpenBLAS runs. OpenBLAS chooses it at load time by the family and model of the
/// processor, and falls back to an old kernel (Prescott, 2004) if the processor is newer than the
/// library. Which kernels a processor can run depends only on its instruction sets.
#include <atomic>
#include <cstdint>
#include <string>

#include "autograd/base/real.h"

namespace heed {
/// Set by a program that checks the kernel itself; the library then prints no warning.
inline std::atomic<bool> blas_kernel_checked = false;
}  // namespace heed

HEED_BEGIN
namespace kernels {

/// The vector instructions that a kernel needs or a processor has, in ascending order of speed.
enum class BlasVectors { sse, avx, avx2, avx512 };

struct BlasKernel {
  std::string name;       ///< the kernel that runs, such as "Haswell"
  std::string requested;  ///< OPENBLAS_CORETYPE, which chooses a kernel by name; empty if unset

  /// Whether OpenBLAS runs the requested kernel. OpenBLAS ignores unknown names.
  bool is_requested() const;
};
/// The kernel of this process.
BlasKernel blas_kernel();

/// The problem with a kernel on a processor.
struct BlasDiagnosis {
  /// The kernel to request instead; empty if there is none, or if the user has requested the
  /// present kernel and it is slow but does not crash.
  std::string better;
  bool crashes = false;  ///< the kernel needs instructions that the processor lacks
  std::string problem;   ///< one line, with the remedy; empty if there is no problem
};
/// A requested kernel is diagnosed only if it crashes or is far too slow (no AVX2, although the
/// processor has it). A kernel with an unknown name is not diagnosed.
BlasDiagnosis diagnose(const BlasKernel& kernel, BlasVectors processor);
/// The diagnosis of this process's kernel; empty on processors other than x86 and if OpenBLAS
/// contains only one kernel.
BlasDiagnosis diagnose_blas_kernel();

/// The number of threads that OpenBLAS has started when it was loaded. Each has a buffer
/// (blas_memory.h). Correct only before the first product.
std::int64_t blas_threads_at_start();

/// For programs that use heed as a library: if another kernel is better, prints the problem to
/// stderr, once per process. Prints nothing if blas_kernel_checked is true.
void warn_about_blas_kernel();

}  // namespace kernels
HEED_END
