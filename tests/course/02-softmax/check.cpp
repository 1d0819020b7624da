// The check of chapter 2: softmax in both directions, and the error of central differences.
#include "check.h"
#include "exercise.h"

using namespace heed;
using namespace heed::course;

namespace {

Array softmax_of(const Array& x, double temperature = 1) {
  return chapter2::softmax(x, temperature).value();
}
Array reference(const Array& x, double temperature = 1) {
  return heed::softmax(scale(x, 1 / temperature)).value();
}

/// The results of known mistakes.
std::vector<Mistake> mistakes(const Array& x, double temperature) {
  Array sums = exp(scale(x, 1 / temperature)).value().clone();
  double all = 0;
  for (const double value : sums.values()) all += value;
  std::vector<Mistake> known{
      {"these are the exponentials, not divided by their sum", sums},
      {"the sum runs over the whole array instead of one row", scale(sums, 1 / all).value()},
      {"this is the softmax of each column instead of each row",
       transpose(heed::softmax(transpose(scale(x, 1 / temperature)))).value()}};
  if (temperature != 1) {
    known.push_back({"the temperature has no effect", reference(x)});
    known.push_back({"x is multiplied by the temperature instead of divided by it",
                     reference(x, 1 / temperature)});
  }
  return known;
}

void random_rows(Draw& draw) {
  const Array x = draw.normal({draw.extent(3, 2, 5), draw.extent(4, 3, 7)}, 2);
  require_same("softmax(x)", softmax_of(x), reference(x), mistakes(x, 1));
}

void temperatures(Draw& draw) {
  const Array x = draw.normal({draw.extent(2, 2, 5), draw.extent(5, 3, 7)});
  for (const double t : {0.5, 2.0, draw.number(0.3, 3)})
    require_same(fmt::format("softmax(x, {:.3g})", t), softmax_of(x, t), reference(x, t),
                 mistakes(x, t));
}

void large_scores(Draw& draw) {
  const double far = draw.number(800, 1200);
  const Array x({{far, 0, far}, {-far, -far, -far - 1}});
  for (const double t : {1.0, 0.5, 4.0}) {
    const Array y = softmax_of(x, t);
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::int64_t i = 0; i < 3; ++i)
        require(
            std::isfinite(y.at({r, i})),
            fmt::format("softmax of [{:.0f}] with T = {} contains {}: exp overflows or the sum is "
                        "0; {}",
                        fmt::join(x.row(r), x.row(r) + 3, ", "), t, y.at({r, i}),
                        r == 1 ? "these scores are all negative: the maximum must start at −∞ or "
                                 "at the first score, not at 0"
                        : t == 1 ? "subtract the row's maximum first"
                                 : "subtract the maximum of x / T, not of x"));
    }
    require_same(fmt::format("softmax of large scores with T = {}", t), y, reference(x, t));
  }
}

void gradient(Draw& draw) {
  const Array x = draw.normal({draw.extent(3, 2, 4), draw.extent(4, 3, 6)});
  require_gradients(
      {"x"}, [](const Tensor& t) { return chapter2::softmax(t); }, x);
}

void gradient_with_temperature(Draw& draw) {
  const Array x = draw.normal({draw.extent(2, 2, 4), draw.extent(3, 3, 6)});
  const double t = draw.number(1.5, 3);
  try {
    require_gradients(
        {"x"}, [&](const Tensor& z) { return chapter2::softmax(z, t); }, x);
  } catch (const Error& error) {
    fail("with T = {:.4g}, {}", t, error.what());
  }
}

void rows_sum_to_one(Draw& draw) {
  const Array x = draw.normal({draw.extent(4, 2, 6), draw.extent(6, 2, 9)}, 5);
  const Array y = softmax_of(x);
  for (std::int64_t r = 0; r < y.rows(); ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < y.cols(); ++i) {
      require(y.row(r)[i] >= 0, "softmax returns a negative number");
      sum += y.row(r)[i];
    }
    require_close(fmt::format("the sum of row {} of a softmax", r), sum, 1);
  }
}

void shifts(Draw& draw) {
  const Array x = draw.normal({2, draw.extent(5, 2, 9)});
  require_same("softmax(x + 3)", softmax_of(add(x, Array::scalar(3)).value()), softmax_of(x));
}

void extents(Draw&) {
  require_same("softmax of rows of extent 1", softmax_of(Array({{-3}, {5}})),
               Array::full({2, 1}, 1));
  require_same("softmax of an array of shape [0, 3]", softmax_of(Array({0, 3})), Array({0, 3}));
  require_same("softmax of an array of shape [3, 0]", softmax_of(Array({3, 0})), Array({3, 0}));
}

void difference_of_a_parabola(Draw& draw) {
  const double x = draw.number(1, 2);
  const auto square = [](double t) { return t * t; };
  const double slope = chapter2::central_difference(square, x, 0.25);  // exact for a parabola
  std::string cause;
  if (close(slope, 4 * x, exact)) cause = ": divide by 2h, the distance between the two points";
  if (close(slope, 2 * x + 0.25, exact)) cause = ": this is a forward difference, f(x + h) − f(x)";
  if (close(slope, x, exact)) cause = ": it is divided by 4h";
  if (close(slope, -2 * x, exact)) cause = ": the two points are exchanged";
  require(close(slope, 2 * x, exact),
          fmt::format("the central difference of x² at {:.3g} with h = 0.25 is {:.6g}, expected "
                      "{:.6g}{}",
                      x, slope, 2 * x, cause));
}

std::vector<double> powers_of_ten(int first, int last) {
  std::vector<double> steps;
  for (int e = first; e >= last; --e) steps.push_back(std::pow(10.0, e));
  return steps;
}

void errors_of_large_steps(Draw& draw) {
  const double x = draw.number(0.5, 1);
  const std::vector<double> steps{0.2, 0.1, 0.05};
  const auto f = [](double t) { return std::exp(t); };
  const std::vector<double> errors = chapter2::difference_errors(f, std::exp(x), x, steps);
  require(errors.size() == steps.size(),
          fmt::format("difference_errors returns {} numbers for {} steps", errors.size(),
                      steps.size()));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    // (e^h − e^−h) / 2h = sinh(h) / h
    const double expected = std::exp(x) * (std::sinh(steps[i]) / steps[i] - 1);
    require_close(fmt::format("the error for exp at {:.3g} with h = {}", x, steps[i]), errors[i],
                  expected, 1e-11);
  }
}

void v_curve(Draw& draw) {
  const double x = draw.number(0.5, 1);
  const std::vector<double> steps = powers_of_ten(-1, -12);
  const auto f = [](double t) { return std::exp(t); };
  const std::vector<double> errors = chapter2::difference_errors(f, std::exp(x), x, steps);
  for (const double error : errors)
    require(error >= 0,
            "difference_errors returns a negative number: an error is an absolute value");
  const auto best = static_cast<std::size_t>(std::ranges::min_element(errors) - errors.begin());
  require(steps[best] < 1e-4 && steps[best] > 1e-7,
          fmt::format("the smallest error is at h = {:.0e}, expected it between 1e-4 and 1e-7: for "
                      "larger steps truncation, for smaller ones rounding decides",
                      steps[best]));
  require(errors.back() > 1e3 * errors[best],
          "the error does not grow for small steps, although the effect of rounding does");
}

void in_time(Draw& draw) {
  const Array x = draw.normal({200, 200});
  require_within("softmax of an array of shape [200, 200]", 0.3, [&] { softmax_of(x); });
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "softmax of random rows", random_rows},
    {"values", "temperatures", temperatures},
    {"values", "large scores", large_scores},
    {"values", "the central difference of a parabola", difference_of_a_parabola},
    {"values", "errors of large steps", errors_of_large_steps},
    {"gradients", "softmax", gradient},
    {"gradients", "softmax with a temperature", gradient_with_temperature},
    {"properties", "rows sum to 1", rows_sum_to_one},
    {"properties", "adding a number to a row changes nothing", shifts},
    {"properties", "extents 0 and 1", extents},
    {"properties", "the V-curve", v_curve},
    {"budgets", "softmax of a large array", in_time},
})
