#pragma once
/// Claims about trained models: that a model learns, or that one learns better than another.
///
/// The outcome of training depends on the rounding of matrix products, and therefore on the
/// processor, on BLAS and on its version: two machines differ as two seeds do. One run may pass a
/// threshold that another run just misses. Such a test therefore states each claim with
/// HEED_CHECK_LEARNED, takes its seed from training_seed(), and has the label "learns";
/// tests/bench/margins repeats all of these tests with other seeds on other BLAS kernels, and
/// reports claims whose threshold lies within three standard deviations of the mean. That script
/// sets these environment variables:
///   HEED_TEST_SEED=K        adds K to every training_seed()
///   HEED_TEST_UNTRAINED=1   makes every training_rate() too small to change a weight, so that each
///                           HEED_CHECK_LEARNED must fail
///   HEED_TEST_MARGINS=FILE  appends a line of JSON to FILE for each claim
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "autograd/kernels/gemm.h"

namespace heed::test {

/// The seed for a training run whose outcome is the subject of a claim.
inline std::uint64_t training_seed(std::uint64_t seed = 1) {
  const char* const more = std::getenv("HEED_TEST_SEED");
  return seed + (more == nullptr ? 0 : std::stoull(more));
}

/// The learning rate for such a training run; 1e-30 with HEED_TEST_UNTRAINED.
inline double training_rate(double rate) {
  return std::getenv("HEED_TEST_UNTRAINED") == nullptr ? rate : 1e-30;
}

inline void record_claim(const std::string& name, const std::string& subject, double value,
                         const char* comparison, double threshold, bool learned) {
  const char* const file = std::getenv("HEED_TEST_MARGINS");
  if (file == nullptr) return;
  std::ofstream(file, std::ios::app) << nlohmann::json{{"case", name},
                                                       {"subject", subject},
                                                       {"value", value},
                                                       {"comparison", comparison},
                                                       {"threshold", threshold},
                                                       {"learned", learned},
                                                       {"blas", kernels::blas_name()}}
                                     << '\n';
}

}  // namespace heed::test

#define HEED_CLAIM_(subject, value, comparison, threshold, learned)                                \
  do {                                                                                             \
    const std::string subject_{subject};                                                           \
    const double value_ = static_cast<double>(value), threshold_ = static_cast<double>(threshold); \
    heed::test::record_claim(boost::unit_test::framework::current_test_case().full_name(),         \
                             subject_, value_, #comparison, threshold_, learned);                  \
    BOOST_TEST((value_ comparison threshold_),                                                     \
               subject_ << ": " << value_ << ", expected " #comparison " " << threshold_);         \
  } while (false)

/// A claim about what training achieves, which an untrained model misses by far:
/// HEED_CHECK_LEARNED("accuracy", e.value(Metric::accuracy), >, 0.95). The subject distinguishes
/// the claim from the other claims of its test.
#define HEED_CHECK_LEARNED(subject, value, comparison, threshold) \
  HEED_CLAIM_(subject, value, comparison, threshold, true)

/// A claim that depends on training but may hold without it, such as one about the effect of
/// quantisation.
#define HEED_CHECK_TRAINED(subject, value, comparison, threshold) \
  HEED_CLAIM_(subject, value, comparison, threshold, false)
