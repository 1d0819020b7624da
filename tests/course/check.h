#pragma once
/// What the checks of all chapters share. A chapter's check.cpp includes this header and exercise.h,
/// and ends with the list of its cases:
///
///   HEED_COURSE_CASES({
///       {"values", "softmax of random rows", softmax_of_rows},   // void softmax_of_rows(Draw&)
///   })
///
/// A case passes if it returns; it fails if it throws. The message of the exception is the one
/// sentence that the student reads: it says what the exercise did, where, and, if the values show
/// it, the mistake.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/base/random.h"
#include "autograd/gradcheck.h"
#include "autograd/memory/arena.h"
#include "autograd/ops/basic.h"
#include "train/course/cases.h"

namespace heed::course {

/// The shapes and values of one case. Without a key, extents are the usual ones; with a key
/// (`heed course check --hidden KEY`), all are drawn from it.
class Draw {
 public:
  Draw(std::uint64_t key, std::uint64_t number)
      : key_(key), random_({key, Stream::check, number, 0}) {}

  /// `usual`, or a number in [least, most] that depends on the key.
  std::int64_t extent(std::int64_t usual, std::int64_t least, std::int64_t most) {
    return key_ == 0 ? usual : least + random_.below(static_cast<std::uint32_t>(most - least + 1));
  }
  /// Values of the normal distribution with this standard deviation.
  Array normal(const Shape& shape, double deviation = 1) {
    Array x(shape);
    for (real& value : x.values()) value = deviation * random_.normal();
    return x;
  }
  /// A number of the uniform distribution in [least, most).
  double number(double least, double most) { return least + (most - least) * random_.uniform(); }
  Random& random() { return random_; }

 private:
  std::uint64_t key_;
  Random random_;
};

/// A wrong result that a known mistake gives, and a sentence that names the mistake.
struct Mistake {
  std::string sentence;
  Array values;
};

inline void require(bool holds, const std::string& sentence) {
  if (!holds) fail("{}", sentence);
}

/// |a − b| ≤ tolerance · max(1, |b|); a NaN is close to nothing, an infinity to itself.
inline bool close(double a, double b, double tolerance) {
  return a == b || (std::isfinite(b) && std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)));
}

inline bool close(const Array& a, const Array& b, double tolerance) {
  if (!a.defined() || a.shape() != b.shape()) return false;
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (!close(a.data()[i], b.data()[i], tolerance)) return false;
  return true;
}

inline constexpr double exact = 1e-12;

inline void require_close(const std::string& what, double value, double expected,
                          double tolerance = exact) {
  if (!close(value, expected, tolerance))
    fail("{} is {:.12g}, expected {:.12g}", what, value, expected);
}

/// "[1, 2]" for entry i of an array.
inline std::string index_text(const Shape& shape, std::int64_t i) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = i % shape[axis];
    i /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

/// ": every value is 2 times the expected one", if one factor explains all differences.
inline std::string common_factor(const Array& values, const Array& expected) {
  if (std::ranges::all_of(values.values(), [](double v) { return v == 0; }))
    return ": all values are 0";
  double factor = 0;
  for (std::int64_t i = 0; i < values.size(); ++i) {
    if (std::abs(expected.data()[i]) < 1e-6) continue;
    const double ratio = values.data()[i] / expected.data()[i];
    if (factor == 0) factor = ratio;
    if (!close(ratio, factor, 1e-9)) return "";
  }
  return factor == 0 || values.size() < 2
             ? ""
             : fmt::format(": every value is {:.6g} times the expected one", factor);
}

/// The cause of the NaN of new blocks, with which every case but those of time runs.
inline constexpr const char* not_written =
    "it is, or is computed from, an entry that was never written (Array(shape) is not "
    "initialised, Array::zeros(shape) is)";

/// Compares values with those of the reference. If they differ and are those of one of the
/// `mistakes`, the sentence names it.
inline void require_same(const std::string& what, const Array& values, const Array& expected,
                         const std::vector<Mistake>& mistakes = {}, double tolerance = exact) {
  if (!values.defined()) fail("{} has no values", what);
  if (values.shape() != expected.shape())
    fail("{} has shape {}, expected {}", what, values.shape(), expected.shape());
  for (std::int64_t i = 0; i < values.size(); ++i) {
    const double value = values.data()[i], right = expected.data()[i];
    if (close(value, right, tolerance)) continue;
    std::string cause = PoisonNewBlocks::is_poison(value) ? fmt::format(": {}", not_written)
                                                          : common_factor(values, expected);
    for (const Mistake& mistake : mistakes)
      if (close(values, mistake.values, 1e-9)) cause = ": " + mistake.sentence;
    fail("{} at {} is {:.12g}, expected {:.12g}{}", what, index_text(values.shape(), i), value,
         right, cause);
  }
}

/// The likely causes that gradcheck found, in one sentence.
inline std::string gradient_sentence(const GradcheckResult& result) {
  if (!result.problem.empty()) return result.problem;
  for (const ParameterCheck& p : result.parameters) {
    if (passes(p.status)) continue;
    std::string sentence = fmt::format("the gradient of {} is wrong", p.name);
    if (!p.worst.empty())
      sentence += fmt::format(" at {}: {:.8g}, but the slope of forward is {:.8g}",
                              index_text(p.shape, p.worst.front().index), p.worst.front().analytic,
                              p.worst.front().numeric);
    return p.cause.empty() ? sentence : sentence + "; " + p.cause;
  }
  return result.report();
}

/// Requires that the gradients of f agree with finite differences to 1e-6 (autograd/gradcheck.h).
template <class F, class... Tensors>
void require_gradients(const std::vector<std::string>& names, const F& f, const Tensors&... x) {
  const GradcheckResult result = gradcheck({.rel = 1e-6, .names = names}, f, x...);
  if (!result.passed()) fail("{}", gradient_sentence(result));
}

/// Requires that f() takes at most so many seconds of processor time, times `slow_machine`,
/// because a throttled or shared processor takes longer.
template <class F>
void require_within(const std::string& what, double seconds, const F& f) {
  constexpr double slow_machine = 2.5;
  seconds *= slow_machine;
  const std::clock_t start = std::clock();
  f();
  const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (taken > seconds)
    fail("{} takes {:.2g} s of processor time, allowed are {:.2g} s", what, taken, seconds);
}

struct NamedCase {
  const char* stage;
  const char* name;
  void (*run)(Draw&);
};

/// The sentence for a case: "" if it passes.
inline std::string outcome(const NamedCase& c, std::uint64_t key, std::uint64_t number) {
  try {
    std::optional<PoisonNewBlocks> poison;  // a budget is the time without it
    if (std::string_view(c.stage) != "budgets") poison.emplace();
    Draw draw(key, number);
    c.run(draw);
    return "";
  } catch (const std::bad_alloc&) {
    return "the exercise needs more memory than a check may use (2 GB)";
  } catch (const std::exception& error) {
    return *error.what() == '\0' ? "the exercise throws an exception without a message"
                                 : error.what();
  } catch (...) {
    return "the exercise throws an object that is not a std::exception";
  }
}

inline void append(std::vector<Case>& cases, const std::vector<NamedCase>& named) {
  for (std::size_t i = 0; i < named.size(); ++i) {
    const NamedCase c = named[i];
    cases.push_back({c.stage, c.name, [c, i](std::uint64_t key) { return outcome(c, key, i); }});
  }
}

}  // namespace heed::course

#define HEED_COURSE_CASES(...)                                                     \
  extern "C" void heed_course_cases(std::vector<heed::course::Case>& cases) {      \
    heed::course::append(cases, std::vector<heed::course::NamedCase> __VA_ARGS__); \
  }
