#pragma once
/// Checks and arrays shared by the tests.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "autograd/base/random.h"
#include "autograd/tensor.h"

/// Checks that the expression throws heed::Error with a message that contains the text.
#define EXPECT_FAIL(expression, text)                                                          \
  do {                                                                                         \
    std::string expect_fail_message = "(no error)";                                            \
    try {                                                                                      \
      static_cast<void>(expression);                                                           \
    } catch (const heed::Error& error) {                                                       \
      expect_fail_message = error.what();                                                      \
    }                                                                                          \
    BOOST_TEST(                                                                                \
        expect_fail_message.find(text) != std::string::npos,                                   \
        "expected an error that contains \"" << (text) << "\", got: " << expect_fail_message); \
  } while (false)

namespace heed {
/// Prints a shape in Boost.Test messages.
inline std::ostream& boost_test_print_type(std::ostream& out, const Shape& shape) {
  return out << shape.str();
}
}  // namespace heed

HEED_BEGIN

inline Array array_of(const Shape& shape, std::initializer_list<double> values) {
  std::vector<real> reals;
  for (const double value : values) reals.push_back(static_cast<real>(value));
  return Array(shape, reals);
}

/// An array of values drawn from the standard normal distribution.
inline Array random_array(const Shape& shape, std::uint64_t seed) {
  Array x(shape);
  Random random({.seed = seed, .stream = Stream::check, .index = 0, .part = 0});
  for (real& value : x.values()) value = static_cast<real>(random.normal());
  return x;
}

inline bool same_bits(const Array& a, const Array& b) {
  return a.shape() == b.shape() &&
         (a.size() == 0 ||
          std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(real)) == 0);
}

/// Whether the shapes are equal and all values differ by at most `tolerance`. A NaN differs from
/// every value.
inline bool same(const Array& a, const Array& b, double tolerance = 0) {
  if (a.shape() != b.shape()) return false;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = a.data()[i], y = b.data()[i];
    if (!(x == y || (x - y <= tolerance && y - x <= tolerance))) return false;
  }
  return true;
}

HEED_END
