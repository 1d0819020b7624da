#include "autograd/kernels/fast/gemm/blas_kernel.h"

#include <cblas.h>
#include <fmt/format.h>

#include <strings.h>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>

HEED_BEGIN
namespace kernels {

namespace {

constexpr std::array<std::string_view, 4> vector_names{"SSE", "AVX", "AVX2", "AVX-512"};
constexpr std::array<std::string_view, 4> best_kernels{"Nehalem", "Sandybridge", "Haswell",
                                                       "SkylakeX"};

std::string_view vectors_name(BlasVectors vectors) {
  return vector_names[static_cast<std::size_t>(vectors)];
}

bool equal_ignoring_case(const std::string& a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), b.size()) == 0;
}

/// The vector instructions that one of OpenBLAS's kernels for x86 needs (driver/others/dynamic.c
/// and kernel/x86_64/KERNEL.* in its source); nullopt for an unknown name.
std::optional<BlasVectors> vectors_of(const std::string& kernel) {
  using enum BlasVectors;
  struct Row {
    std::string_view name;
    BlasVectors vectors;
  };
  static constexpr Row rows[] = {{"Katmai", sse},        {"Coppermine", sse},
                                 {"Northwood", sse},     {"Prescott", sse},
                                 {"Banias", sse},        {"Atom", sse},
                                 {"Core2", sse},         {"Penryn", sse},
                                 {"Dunnington", sse},    {"Nehalem", sse},
                                 {"Athlon", sse},        {"Opteron", sse},
                                 {"Barcelona", sse},     {"Opteron_SSE3", sse},
                                 {"Bobcat", sse},        {"Nano", sse},
                                 {"Bulldozer", avx},     {"Piledriver", avx},
                                 {"Steamroller", avx},   {"Excavator", avx},
                                 {"Sandybridge", avx},   {"Haswell", avx2},
                                 {"Zen", avx2},          {"SkylakeX", avx512},
                                 {"Cooperlake", avx512}, {"SapphireRapids", avx512}};
  for (const Row& row : rows)
    if (equal_ignoring_case(kernel, row.name)) return row.vectors;
  return std::nullopt;
}

/// The best vector instructions of this processor that the operating system has enabled; nullopt on
/// processors other than x86.
std::optional<BlasVectors> processor_vectors() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return BlasVectors::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return BlasVectors::avx2;
  return __builtin_cpu_supports("avx") ? BlasVectors::avx : BlasVectors::sse;
#else
  return std::nullopt;
#endif
}

}  // namespace

bool BlasKernel::is_requested() const {
  return !requested.empty() && equal_ignoring_case(requested, name);
}

BlasKernel blas_kernel() {
  const char* const requested = std::getenv("OPENBLAS_CORETYPE");
  return {openblas_get_corename(), requested != nullptr ? requested : ""};
}

BlasDiagnosis diagnose(const BlasKernel& kernel, BlasVectors processor) {
  const std::optional<BlasVectors> vectors = vectors_of(kernel.name);
  if (!vectors) return {};
  const std::string_view best = best_kernels[static_cast<std::size_t>(processor)];
  if (*vectors > processor) {
    return {
        std::string(best), true,
        fmt::format(
            "OPENBLAS_CORETYPE={} needs {}, which this processor lacks: unset it, or set it to {}",
            kernel.requested, vectors_name(*vectors), best)};
  }
  if (*vectors == processor) return {};
  if (kernel.is_requested()) {
    if (*vectors >= BlasVectors::avx2 || processor < BlasVectors::avx2) return {};
    return {
        "", false,
        fmt::format(
            "OPENBLAS_CORETYPE={} makes matrix products several times slower: it uses {}, and this "
            "processor has {}; unset it, or set it to {}",
            kernel.requested, vectors_name(*vectors), vectors_name(processor), best)};
  }
  return {std::string(best), false,
          fmt::format("OpenBLAS runs its kernel {} ({}), although this processor has {}: set "
                      "OPENBLAS_CORETYPE={}",
                      kernel.name, vectors_name(*vectors), vectors_name(processor), best)};
}

BlasDiagnosis diagnose_blas_kernel() {
  const std::optional<BlasVectors> processor = processor_vectors();
  if (!processor) return {};
  if (std::string_view(openblas_get_config()).find("DYNAMIC_ARCH") == std::string_view::npos)
    return {};
  return diagnose(blas_kernel(), *processor);
}

std::int64_t blas_threads_at_start() {
  return openblas_get_parallel() == OPENBLAS_THREAD ? openblas_get_num_threads() - 1 : 0;
}

void warn_about_blas_kernel() {
  if (blas_kernel_checked.exchange(true)) return;
  const BlasDiagnosis diagnosis = diagnose_blas_kernel();
  if (diagnosis.better.empty()) return;  // also if the user has requested a slow kernel
  std::fputs(("heed: warning: " + diagnosis.problem + "\n").c_str(), stderr);
}

}  // namespace kernels
HEED_END
