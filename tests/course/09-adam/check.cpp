// The check of chapter 9: Adam, its learning rate with warmup, and clipping.
#include "check.h"
#include "exercise.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/schedule.h"

using namespace heed;
using namespace heed::course;
using chapter9::Adam;
using chapter9::Arrays;
using chapter9::Corrected;

namespace {

constexpr const char* integers =
    "an exponent is a division of integers: in C++, -1 / 2 is 0 and -3 / 2 is -1";

/// heed's schedule with the peak (d w)^−½.
double reference_rate(std::int64_t d, std::int64_t warmup, std::int64_t step) {
  OptimOptions options;
  options.lr = 1 / std::sqrt(static_cast<double>(d * warmup));
  options.schedule = {.name = ScheduleKind::noam, .warmup = warmup};
  return heed::learning_rate(options, step, 0);
}

void rates(Draw& draw) {
  const std::int64_t d = draw.extent(512, 100, 1000), w = draw.extent(400, 50, 1000);
  const auto width = static_cast<double>(d), warm = static_cast<double>(w);
  for (const std::int64_t step : {w + 7, w / 2, std::int64_t{1}, w, 10 * w}) {
    const auto s = static_cast<double>(step);
    const double right = reference_rate(d, w, step), rate = chapter9::learning_rate(d, w, step);
    const double late = std::pow(s, -0.5), early = s * std::pow(warm, -1.5),
                 root = std::pow(width, -0.5);
    const std::vector<std::pair<double, const char*>> known{
        {root * late,
         "the warmup has no effect: the branch for the first steps is step · warmup^−3/2 (in C++, -3 / 2 is -1)"},
        {root * std::min(std::pow(s - 1, -0.5), (s - 1) * std::pow(warm, -1.5)),
         "this is the rate of the step before; steps are counted from 1, and step 1 is the first"},
        {root * std::max(late, early),
         "this is the larger of the two branches, or the decay s^−½ is missing (in C++, -1 / 2 is 0)"},
        {std::min(late, early),
         "the factor d^−½ is missing (or -1 / 2 is a division of integers, which is 0)"},
        {std::sqrt(width) * std::min(late, early), "the factor is √d instead of 1/√d"},
        {std::min(late, early) / width, "the factor is 1/d instead of 1/√d"},
        {root * std::min(late, s / warm),
         "the exponent of warmup is −3/2, not −1 (or -3 / 2 is a division of integers, which is -1)"},
        {std::min(1.0, s / warm), integers},
        {root * std::min(1.0, s / warm), "there is no decay after the warmup, s^−½"},
        {root * early,
         "there is no decay after the warmup, s^−½ (or -1 / 2 is a division of integers, which is 0)"},
        {std::min(late, early) * std::sqrt(warm), "this is a rate with peak 1, not (d w)^−½"},
        {root * std::min(1 / s, early), "the decay is 1/s instead of s^−½"}};
    std::string cause;
    for (const auto& [value, sentence] : known)
      if (cause.empty() && close(rate / value, 1, 1e-9)) cause = std::string(": ") + sentence;
    require(close(rate / right, 1, exact),
            fmt::format("learning_rate for d = {}, warmup = {}, step = {} is {:.12g}, expected "
                        "{:.12g}{}",
                        d, w, step, rate, right, cause));
  }
}

Arrays arrays(Draw& draw, double deviation = 1) {
  Arrays all;
  all.push_back(draw.normal({draw.extent(3, 2, 5), draw.extent(4, 2, 5)}, deviation));
  all.push_back(draw.normal({draw.extent(5, 2, 7)}, 2 * deviation));
  return all;
}

double squares(const Array& x) {
  double sum = 0;
  for (const double value : x.values()) sum += value * value;
  return sum;
}

void norms(Draw& draw) {
  const Arrays g = arrays(draw);
  const double a = std::sqrt(squares(g[0])), b = std::sqrt(squares(g[1])),
               right = std::sqrt(a * a + b * b), value = chapter9::global_norm(g);
  const auto n = static_cast<double>(g[0].size() + g[1].size());
  std::string cause;
  if (close(value, a + b, exact)) cause = ": this is the sum of the norms of the arrays";
  if (close(value, std::max(a, b), exact)) cause = ": this is the largest norm of an array";
  if (close(value, right * right, exact)) cause = ": the root is missing";
  if (close(value, right / std::sqrt(n), exact))
    cause = ": this is the root of the mean of the squares instead of their sum";
  if (close(value, a, exact) || close(value, b, exact)) cause = ": only one array is counted";
  require(close(value, right, exact),
          fmt::format("global_norm is {:.12g}, expected {:.12g}{}", value, right, cause));
}

void factors(Draw& draw) {
  for (const double norm : {draw.number(3, 5), draw.number(0.1, 0.5), 0.0}) {
    const double limit = 1.5, right = heed::clip_factor(norm, limit),
                 value = chapter9::clip_factor(norm, limit);
    std::string cause;
    if (close(value, std::max(1.0, limit / (norm + 1e-6)), exact))
      cause = ": this is at least 1 instead of at most 1";
    if (close(value, limit / norm, exact) && norm > limit)
      cause = ": 1e-6 is not added to the norm";
    if (norm < limit && close(value, limit / (norm + 1e-6), exact))
      cause = ": a gradient below the limit is enlarged; the factor is at most 1";
    if (close(value, norm / limit, exact)) cause = ": the quotient is inverted";
    require(close(value, right, exact),
            fmt::format("clip_factor for the norm {:.4g} and the limit {} is {:.12g}, expected "
                        "{:.12g}{}",
                        norm, limit, value, right, cause));
  }
}

void clipping(Draw& draw) {
  const Arrays g = arrays(draw, 2);
  const Arrays before{g[0].clone(), g[1].clone()};
  const double limit = 1, norm = std::sqrt(squares(g[0]) + squares(g[1]));
  const Arrays result = chapter9::clipped(g, limit);
  require(result.size() == g.size(),
          fmt::format("clipped returns {} arrays for {}", result.size(), g.size()));
  for (std::size_t p = 0; p < g.size(); ++p) {
    require_same("clipped has changed its argument, which", g[p], before[p]);
    Array limited(g[p].shape());
    for (std::int64_t i = 0; i < limited.size(); ++i)
      limited.data()[i] = std::clamp(g[p].data()[i], -limit, limit);
    require_same(
        fmt::format("clipped: array {}", p), result[p],
        scale(g[p], heed::clip_factor(norm, limit)).value(),
        {{"each array is limited alone, so that the direction changes; the norm is that of "
          "all arrays together",
          scale(g[p], heed::clip_factor(std::sqrt(squares(g[p])), limit)).value()},
         {"each entry is limited instead of the norm", limited},
         {"nothing is clipped", g[p]}});
  }
}

/// How one entry is updated: the right way, or by a known mistake.
struct Variant {
  std::string sentence;
  std::function<void(int t, double lr, double g, double& w, double& m, double& v)> update;
};

constexpr double beta1 = 0.8, beta2 = 0.95, eps = 1e-3;  // a large ε, so that its place shows

double part(double beta, int t) { return 1 - std::pow(beta, t); }

void moments(double g, double& m, double& v, double b1 = beta1, double b2 = beta2) {
  m = b1 * m + (1 - b1) * g;
  v = b2 * v + (1 - b2) * g * g;
}

/// Variants in which only the last line differs.
Variant last_line(const std::string& sentence, double (*step)(int t, double m, double v)) {
  return {sentence, [step](int t, double lr, double g, double& w, double& m, double& v) {
            moments(g, m, v);
            w -= lr * step(t, m, v);
          }};
}

/// Variants in which the β of the moments, or those of their corrections, are others.
Variant with_betas(const std::string& sentence, double of_m, double of_v, double correction_of_m,
                   double correction_of_v) {
  return {sentence, [=](int t, double lr, double g, double& w, double& m, double& v) {
            moments(g, m, v, of_m, of_v);
            w -=
                lr * m / part(correction_of_m, t) / (std::sqrt(v / part(correction_of_v, t)) + eps);
          }};
}

double corrected_step(int t, double m, double v) {
  return m / part(beta1, t) / (std::sqrt(v / part(beta2, t)) + eps);
}

std::vector<Variant> variants() {
  return {
      last_line("the moments are not divided by 1 − βᵗ (bias correction)",
                [](int, double m, double v) { return m / (std::sqrt(v) + eps); }),
      last_line(
          "only m is corrected, not v",
          [](int t, double m, double v) { return m / part(beta1, t) / (std::sqrt(v) + eps); }),
      last_line(
          "only v is corrected, not m",
          [](int t, double m, double v) { return m / (std::sqrt(v / part(beta2, t)) + eps); }),
      last_line("ε is under the root",
                [](int t, double m, double v) {
                  return m / part(beta1, t) / std::sqrt(v / part(beta2, t) + eps);
                }),
      last_line("ε is added to v̂ under the root, as ε²",
                [](int t, double m, double v) {
                  return m / part(beta1, t) / std::sqrt(v / part(beta2, t) + eps * eps);
                }),
      last_line("ε is missing",
                [](int t, double m, double v) {
                  return m / part(beta1, t) / std::sqrt(v / part(beta2, t));
                }),
      last_line("the root of v̂ is missing",
                [](int t, double m, double v) {
                  return m / part(beta1, t) / (v / part(beta2, t) + eps);
                }),
      last_line("the moments are corrected with β instead of βᵗ",
                [](int, double m, double v) { return corrected_step(1, m, v); }),
      last_line("m is corrected with β instead of βᵗ",
                [](int t, double m, double v) {
                  return m / part(beta1, 1) / (std::sqrt(v / part(beta2, t)) + eps);
                }),
      last_line("βᵗ has the t of the next step",
                [](int t, double m, double v) { return corrected_step(t + 1, m, v); }),
      last_line("the weight moves along the gradient instead of against it",
                [](int t, double m, double v) { return -corrected_step(t, m, v); }),
      {"m is not used: the numerator is the gradient of this step alone",
       [](int t, double lr, double g, double& w, double& m, double& v) {
         moments(g, m, v);
         w -= lr * g / (std::sqrt(v / part(beta2, t)) + eps);
       }},
      with_betas("the two β are exchanged", beta2, beta1, beta2, beta1),
      with_betas("m is computed with β₂ instead of β₁", beta2, beta2, beta1, beta2),
      with_betas("m is computed and corrected with β₂ instead of β₁", beta2, beta2, beta2, beta2),
      with_betas("m is corrected with β₂ instead of β₁", beta1, beta2, beta2, beta2),
      with_betas("v is computed with β₁ instead of β₂", beta1, beta1, beta1, beta2),
      with_betas("v is computed and corrected with β₁ instead of β₂", beta1, beta1, beta1, beta1),
      with_betas("v is corrected with β₁ instead of β₂", beta1, beta2, beta1, beta1),
      {"v is a mean of |g| instead of g²",
       [](int t, double lr, double g, double& w, double& m, double& v) {
         m = beta1 * m + (1 - beta1) * g;
         v = beta2 * v + (1 - beta2) * std::abs(g);
         w -= lr * corrected_step(t, m, v);
       }},
      {"the gradient is added with the factor 1 instead of 1 − β",
       [](int t, double lr, double g, double& w, double& m, double& v) {
         m = beta1 * m + g;
         v = beta2 * v + g * g;
         w -= lr * corrected_step(t, m, v);
       }},
      {"the corrected m is stored as the moment, so that it is corrected again in the next step",
       [](int t, double lr, double g, double& w, double& m, double& v) {
         moments(g, m, v);
         m /= part(beta1, t);
         w -= lr * m / (std::sqrt(v / part(beta2, t)) + eps);
       }},
      {"the corrected moments are stored, so that they are corrected again in the next step",
       [](int t, double lr, double g, double& w, double& m, double& v) {
         moments(g, m, v);
         m /= part(beta1, t);
         v /= part(beta2, t);
         w -= lr * m / (std::sqrt(v) + eps);
       }},
      {"this is gradient descent: the moments are not used",
       [](int, double lr, double g, double& w, double&, double&) { w -= lr * g; }},
  };
}

/// The weights after steps with these gradients and the rates 0.1 / t.
Array after(const Variant& variant, const Array& start, const std::vector<Array>& gradients) {
  Array w = start.clone(), m = Array::zeros(w.shape()), v = Array::zeros(w.shape());
  for (std::size_t s = 0; s < gradients.size(); ++s)
    for (std::int64_t i = 0; i < w.size(); ++i)
      variant.update(static_cast<int>(s) + 1, 0.1 / static_cast<double>(s + 1),
                     gradients[s].data()[i], w.data()[i], m.data()[i], v.data()[i]);
  return w;
}

/// The weights if t also counts the entries.
Array after_counting_entries(const Array& start, const std::vector<Array>& gradients) {
  Array w = start.clone(), m = Array::zeros(w.shape()), v = Array::zeros(w.shape());
  int t = 0;
  for (std::size_t s = 0; s < gradients.size(); ++s)
    for (std::int64_t i = 0; i < w.size(); ++i) {
      moments(gradients[s].data()[i], m.data()[i], v.data()[i]);
      w.data()[i] -=
          0.1 / static_cast<double>(s + 1) * corrected_step(++t, m.data()[i], v.data()[i]);
    }
  return w;
}

Array after_reference(const Array& start, const std::vector<Array>& gradients) {
  const Tensor w = Tensor::variable(start.clone());
  reference::Adam adam({{"w", w}});
  adam.beta1 = beta1, adam.beta2 = beta2, adam.eps = eps;
  for (std::size_t s = 0; s < gradients.size(); ++s)
    adam.step(backward(scale(w, 1), gradients[s].clone()), 0.1 / static_cast<double>(s + 1));
  return w.value();
}

Array after_exercise(const Array& start, const std::vector<Array>& gradients,
                     Corrected corrected = Corrected::yes) {
  Adam adam{.beta1 = beta1, .beta2 = beta2, .eps = eps, .corrected = corrected};
  Arrays w{start.clone()};
  for (std::size_t s = 0; s < gradients.size(); ++s)
    adam.step(w, {gradients[s].clone()}, 0.1 / static_cast<double>(s + 1));
  return w[0];
}

/// What makes weights NaN: a root of a negative v, or t = 0. The first gradients have both signs.
std::string cause_of_nan(const Array& result, const Array& start,
                         const std::vector<Array>& gradients) {
  const Variant without_square{"", [](int t, double lr, double g, double& w, double& m, double& v) {
                                 m = beta1 * m + (1 - beta1) * g;
                                 v = beta2 * v + (1 - beta2) * g;
                                 w -= lr * corrected_step(t, m, v);
                               }};
  const Array expected = after(without_square, start, gradients);
  bool same = true, all = true;
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const double w = result.data()[i], e = expected.data()[i];
    same = same && (std::isnan(e) ? std::isnan(w) : close(w, e, 1e-9));
    all = all && !std::isfinite(w);
  }
  if (same) return "v is a mean of g instead of g², so a negative number is under the root";
  if (all) return "is t still 0 in the first update? Then 1 − βᵗ is 0; the first step has t = 1";
  return "is a negative number under the root?";
}

void steps(Draw& draw, int count) {
  const std::int64_t n = draw.extent(4, 3, 6);
  const Array start = draw.normal({n});
  std::vector<Array> gradients;
  for (int s = 0; s < count; ++s) gradients.push_back(draw.normal({n}));
  double* const first = gradients[0].data();
  first[0] = std::abs(first[0]), first[1] = -std::abs(first[1]);
  const Array result = after_exercise(start, gradients);
  for (const double w : result.values())
    require(std::isfinite(w), fmt::format("the weight after {} of Adam is {}: {}",
                                          count == 1 ? "one step" : "five steps", w,
                                          cause_of_nan(result, start, gradients)));
  std::vector<Mistake> known{
      {"the weights have not changed", start},
      {"t counts the entries of the parameters instead of the steps: ++t belongs before the loops",
       after_counting_entries(start, gradients)}};
  for (const Variant& variant : variants())
    known.push_back({variant.sentence, after(variant, start, gradients)});
  require_same(count == 1 ? "the weight after one step of Adam"
                          : fmt::format("the weight after {} steps of Adam", count),
               result, after_reference(start, gradients), known);
}

void first_step(Draw& draw) { steps(draw, 1); }
void five_steps(Draw& draw) { steps(draw, 5); }

void without_correction(Draw& draw) {
  const Array start = draw.normal({4});
  const std::vector<Array> gradients{draw.normal({4}), draw.normal({4}), draw.normal({4})};
  require_same(
      "the weight after 3 steps with Corrected::no",
      after_exercise(start, gradients, Corrected::no), after(variants()[0], start, gradients),
      {{"the moments are corrected, although corrected is no", after_reference(start, gradients)}});
}

Array list(const std::vector<double>& values) {
  return Array({static_cast<std::int64_t>(values.size())}, values);
}

/// With a constant gradient the corrected update is lr; without correction it is
/// lr (1 − β₁ᵗ) / √(1 − β₂ᵗ).
void hundred_updates(Draw& draw) {
  const double g = draw.number(1, 3), lr = 0.01;
  const std::vector<double> same(100, g), rates(100, lr);
  std::vector<double> plain, signs;
  for (int t = 1; t <= 100; ++t) plain.push_back(lr * part(0.9, t) / std::sqrt(part(0.98, t)));
  for (const double sign : {1.0, -1.0}) {
    const std::vector<double> gradients(100, sign * g);
    const Array yes = list(chapter9::first_updates(gradients, rates, Corrected::yes)),
                no = list(chapter9::first_updates(gradients, rates, Corrected::no));
    const Array right = Array::full({100}, lr), wrong = list(plain);
    require_same("first_updates for a constant gradient", yes, right,
                 {{"these are differences; a size is an absolute value", neg(right).value()},
                  {"the moments are not corrected", wrong}},
                 1e-9);
    require_same("first_updates for a constant gradient with Corrected::no", no, wrong,
                 {{"the moments are corrected", right},
                  {"each step begins with a new Adam",
                   Array::full({100}, lr * part(0.9, 1) / std::sqrt(part(0.98, 1)))}},
                 1e-9);
  }
}

void updates_with_warmup(Draw& draw) {
  std::vector<double> gradients, warm, flat(100, 1.0);
  for (int s = 1; s <= 100; ++s) {
    gradients.push_back(draw.random().normal());
    warm.push_back(reference_rate(64, 50, s));
  }
  const auto with = chapter9::first_updates(gradients, warm, Corrected::yes),
             without = chapter9::first_updates(gradients, flat, Corrected::yes);
  require(with.size() == 100 && without.size() == 100,
          "first_updates returns as many sizes as there are gradients");
  for (std::size_t s = 0; s < 100; ++s)
    require_close(fmt::format("the size of update {} over its rate", s + 1), with[s] / warm[s],
                  without[s], 1e-9);
}

void size_of_first_step(Draw& draw) {
  for (const double size : {1.0, 1e3, 1e6}) {
    Arrays w{Array::zeros({2})};
    const double g = draw.number(1, 2) * size;
    Adam().step(w, {list({g, -g})}, 0.01);
    require_same(fmt::format("the first step for the gradients {0:.3g} and -{0:.3g}", g), w[0],
                 list({-0.01, 0.01}), {}, 1e-9);
  }
}

void size_of_gradients(Draw& draw) {
  const Array start = draw.normal({4});
  Arrays a{start.clone()}, b{start.clone()};
  Adam small, large;
  for (int s = 0; s < 4; ++s) {
    const Array g = draw.normal({4});
    small.step(a, {g}, 0.1);
    large.step(b, {scale(g, 1000).value()}, 0.1);
  }
  require_same("the weight after 4 steps with gradients that are 1000 times as large", b[0], a[0],
               {}, 1e-6);
}

void zero_gradient(Draw& draw) {
  const Array start = draw.normal({3});
  Arrays w{start.clone()};
  Adam adam;
  adam.step(w, {Array::zeros({3})}, 0.1);
  for (const double value : w[0].values())
    require(std::isfinite(value), "a gradient of 0 makes the weight NaN: 0 / (√0 + ε) is 0");
  require_same("the weight after a step with gradient 0", w[0], start);
}

void own_moments(Draw& draw) {
  const Array x = draw.normal({3}), y = draw.normal({2, 2});
  Arrays both{x.clone(), y.clone()}, one{x.clone()}, two{y.clone()};
  Adam of_both, of_one, of_two;
  for (int s = 0; s < 3; ++s) {
    const Array g = draw.normal({3}), h = draw.normal({2, 2});
    const Array g_before = g.clone();
    of_both.step(both, {g, h}, 0.1);
    require_same("Adam::step has changed a gradient, which", g, g_before);
    of_one.step(one, {g}, 0.1);
    of_two.step(two, {h}, 0.1);
  }
  const std::string together =
      "of two parameters, compared with an Adam of its own (t counts the "
      "steps, not the parameters),";
  require_same("the first " + together, both[0], one[0]);
  require_same("the second " + together, both[1], two[0]);
}

void shape_of_schedule(Draw& draw) {
  const std::int64_t d = draw.extent(64, 32, 200), w = draw.extent(100, 20, 200);
  const double peak = chapter9::learning_rate(d, w, w);
  for (std::int64_t s = 1; s < 6 * w; ++s)
    require(chapter9::learning_rate(d, w, s) <= peak,
            fmt::format("learning_rate at step {} is above that of step {}, the end of the warmup",
                        s, w));
  require_close("the rate of step 4 · warmup over that of step warmup",
                chapter9::learning_rate(d, w, 4 * w) / peak, 0.5);
}

void extents(Draw& draw) {
  Arrays w{Array({0, 3}), draw.normal({1})}, none;
  Adam adam, other;
  adam.step(w, {Array({0, 3}), Array::zeros({1})}, 0.1);
  require(w[0].shape() == Shape({0, 3}), "a parameter without entries has changed its shape");
  other.step(none, {}, 0.1);
  require_close("global_norm of no gradients", chapter9::global_norm({}), 0);
  require_close("global_norm of one number", chapter9::global_norm({Array::full({1}, -3)}), 3);
}

/// Least squares with noise-free targets: Adam with warmup and clipping finds the solution.
void learns(Draw& draw) {
  const Array x = draw.normal({20, 4}), truth = draw.normal({4, 1}), y = matmul(x, truth).value();
  Arrays w{Array::zeros({4, 1})};
  Adam adam;
  for (int s = 1; s <= 400; ++s) {
    const Array residual = sub(matmul(x, w[0]), y).value();
    const Array g = scale(matmul(x, residual, true, false), 0.1).value();
    adam.step(w, chapter9::clipped({g}, 1), chapter9::learning_rate(16, 40, s));
  }
  require_same("the weights after 400 steps of least squares", w[0], truth, {}, 1e-2);
}

void in_time(Draw& draw) {
  Arrays w{Array::zeros({300, 300})};
  const Arrays g{draw.normal({300, 300})};
  Adam adam;
  require_within("5 steps of Adam with 90000 weights, with clipping,", 0.3, [&] {
    for (int s = 0; s < 5; ++s) adam.step(w, chapter9::clipped(g, 1), 0.1);
  });
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "the learning rate", rates},
    {"values", "the global norm", norms},
    {"values", "the factor of clipping", factors},
    {"values", "clipped gradients", clipping},
    {"values", "one step of Adam", first_step},
    {"values", "five steps of Adam", five_steps},
    {"values", "steps without bias correction", without_correction},
    {"values", "a hundred updates, with bias correction and without", hundred_updates},
    {"values", "a hundred updates, with warmup and without", updates_with_warmup},
    {"properties", "the first step is as large as the learning rate", size_of_first_step},
    {"properties", "the size of the gradients has no effect", size_of_gradients},
    {"properties", "a gradient of 0", zero_gradient},
    {"properties", "each parameter has its own moments", own_moments},
    {"properties", "the shape of the schedule", shape_of_schedule},
    {"properties", "extents 0 and 1", extents},
    {"properties", "least squares", learns},
    {"budgets", "large parameters", in_time},
})
