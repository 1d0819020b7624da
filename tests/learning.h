#pragma once
/// Claims about trained models: that a model learns, or that one learns better than another.
///
/// How well a training ends depends on the rounding of its products, so on the processor, on BLAS and on
/// its version: two machines are like two seeds. A threshold that one training passes may still be close
/// to what others reach. So such a test states each claim with HEED_CHECK_LEARNED, takes its seed from
/// training_seed(), and has the label "learns"; tests/bench/margins then repeats all of them with other
/// seeds on other kernels of BLAS, and reports a claim whose threshold lies within three standard
/// deviations. Environment variables, which that script sets:
///   HEED_TEST_SEED=K        is added to the seeds
///   HEED_TEST_UNTRAINED=1   learning rates are too small to change a weight: claims must fail
///   HEED_TEST_MARGINS=FILE  each claim appends a line of JSON
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "autograd/kernels/gemm/gemm.h"

namespace heed::test {

/// The seed of a training whose outcome is claimed.
inline std::uint64_t training_seed(std::uint64_t seed = 1) {
  const char* const more = std::getenv("HEED_TEST_SEED");
  return seed + (more == nullptr ? 0 : std::stoull(more));
}

/// The learning rate of such a training.
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

/// A claim that training achieves something, which a model that has not been trained misses by far:
/// HEED_CHECK_LEARNED("accuracy", e.value(Metric::accuracy), >, 0.95). The subject names it among those of
/// its test.
#define HEED_CHECK_LEARNED(subject, value, comparison, threshold) \
  HEED_CLAIM_(subject, value, comparison, threshold, true)

/// A claim that depends on the training but may hold without it: what a quantised model changes, say.
#define HEED_CHECK_TRAINED(subject, value, comparison, threshold) \
  HEED_CLAIM_(subject, value, comparison, threshold, false)
