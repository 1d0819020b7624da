#include "autograd/kernels/fast/gemm/blas_kernel.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <string>

BOOST_AUTO_TEST_SUITE(blas_kernel_suite)

namespace {

using namespace heed;
using kernels::BlasVectors;
using kernels::diagnose;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_CASE(diagnosis_names_a_better_kernel_if_openblas_underestimates_the_processor) {
  const auto better = [](const char* kernel, BlasVectors processor) {
    return diagnose({kernel, ""}, processor).better;
  };
  BOOST_TEST(better("Prescott", BlasVectors::avx512) == "SkylakeX");
  BOOST_TEST(better("Haswell", BlasVectors::avx512) == "SkylakeX");
  BOOST_TEST(better("Zen", BlasVectors::avx512) == "SkylakeX");
  BOOST_TEST(better("Prescott", BlasVectors::avx2) == "Haswell");
  BOOST_TEST(better("Excavator", BlasVectors::avx2) == "Haswell");
  BOOST_TEST(better("Nehalem", BlasVectors::avx) == "Sandybridge");
  for (const char* kernel : {"SkylakeX", "Cooperlake", "SapphireRapids", "SAPPHIRERAPIDS"})
    BOOST_TEST(better(kernel, BlasVectors::avx512).empty());
  for (const char* kernel : {"Haswell", "Zen"})
    BOOST_TEST(better(kernel, BlasVectors::avx2).empty());
  BOOST_TEST(better("Prescott", BlasVectors::sse).empty());
  // An unknown kernel is not diagnosed.
  BOOST_TEST(better("Kernel2040", BlasVectors::avx512).empty());
}

BOOST_AUTO_TEST_CASE(kernel_counts_as_chosen_by_openblas_if_the_requested_name_was_ignored) {
  const auto d = diagnose({"Prescott", "Foo"}, BlasVectors::avx512);
  BOOST_TEST(d.better == "SkylakeX");
  BOOST_TEST(contains(
      d.problem, "OpenBLAS runs its kernel Prescott (SSE), although this processor has AVX-512"));
  BOOST_TEST(contains(d.problem, "set OPENBLAS_CORETYPE=SkylakeX"));
}

BOOST_AUTO_TEST_CASE(kernel_requested_by_the_user_is_kept_with_a_warning_if_far_too_slow) {
  const auto slow = diagnose({"Prescott", "PRESCOTT"}, BlasVectors::avx512);
  BOOST_TEST(slow.better.empty());
  BOOST_TEST(!slow.crashes);
  BOOST_TEST(contains(slow.problem, "OPENBLAS_CORETYPE=PRESCOTT"));
  BOOST_TEST(contains(slow.problem, "unset it, or set it to SkylakeX"));
  BOOST_TEST(contains(diagnose({"Sandybridge", "Sandybridge"}, BlasVectors::avx2).problem, "AVX2"));
  BOOST_TEST(diagnose({"Haswell", "Haswell"}, BlasVectors::avx512).problem.empty());
  BOOST_TEST(diagnose({"Prescott", "Prescott"}, BlasVectors::avx).problem.empty());
}

BOOST_AUTO_TEST_CASE(kernel_that_the_processor_does_not_support_is_diagnosed_as_crashing) {
  const auto d = diagnose({"SkylakeX", "SkylakeX"}, BlasVectors::avx2);
  BOOST_TEST(d.crashes);
  BOOST_TEST(
      contains(d.problem, "OPENBLAS_CORETYPE=SkylakeX needs AVX-512, which this processor lacks"));
  BOOST_TEST(!diagnose({"Prescott", "Prescott"}, BlasVectors::avx2).crashes);
}

BOOST_AUTO_TEST_CASE(kernel_requested_for_this_process_equals_the_environment_variable) {
  const char* const requested = std::getenv("OPENBLAS_CORETYPE");
  BOOST_TEST(!kernels::blas_kernel().name.empty());
  BOOST_TEST(kernels::blas_kernel().requested == (requested != nullptr ? requested : ""));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
