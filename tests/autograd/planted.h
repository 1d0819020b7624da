#pragma once
/// Ops whose backward, correct or deliberately wrong, is defined by a test.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "autograd/gradcheck.h"
#include "autograd/ops.h"

HEED_BEGIN

/// y = f(x), dx = df(x, y, dy).
struct Planted {
  using Forward = std::function<Array(const Array& x)>;
  using Backward = std::function<Array(const Array& x, const Array& y, const Array& dy)>;
  struct Functions {
    Forward f;
    Backward df;
  };
  std::shared_ptr<const Functions> functions;
  Array x, y;

  Array forward(const Array& input) {
    x = input;
    y = functions->f(input);
    return y;
  }
  void backward(const Array& dy, Grad dx) const { dx.add(functions->df(x, y, dy)); }
};

/// An op with forward f and backward df, as a function of a tensor.
inline auto planted(Planted::Forward f, Planted::Backward df) {
  const auto functions =
      std::make_shared<const Planted::Functions>(Planted::Functions{std::move(f), std::move(df)});
  return [functions](const Tensor& x) { return apply(Planted{functions, {}, {}}, x); };
}

/// An array of the given shape whose entry i is value(i).
template <class Value>
Array generate(const Shape& shape, Value value) {
  Array a(shape);
  for (std::int64_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<real>(value(i));
  return a;
}

inline Array normal(const Shape& shape, std::uint64_t seed = 1) {
  Random random({seed, Stream::check, 77, 0});
  return generate(shape, [&](auto) { return random.normal(); });
}

inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Checks that gradcheck fails with a report that contains the text.
#define EXPECT_WRONG(check, text)                                             \
  do {                                                                        \
    const GradcheckResult expect_wrong_result = (check);                      \
    BOOST_TEST(!expect_wrong_result.passed());                                \
    BOOST_TEST(says(expect_wrong_result.report(), text),                      \
               "expected a report that contains \""                           \
                   << (text) << "\", got: " << expect_wrong_result.report()); \
  } while (false)

HEED_END
