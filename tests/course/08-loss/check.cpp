// The check of chapter 8: the smoothed loss in both directions, perplexity, and calibration.
#include "check.h"
#include "exercise.h"

using namespace heed;
using namespace heed::course;
using chapter8::Targets;

namespace {

Array row(const std::vector<double>& values) {
  return Array({static_cast<std::int64_t>(values.size())}, values);
}

/// keep · [j = target] + rest
Array target_row(std::int64_t n, std::int32_t target, double keep, double rest) {
  Array q = Array::full({n}, rest);
  q.data()[target] += keep;
  return q;
}

/// (1 − ε) [j = t] + ε / n
Array right_target(std::int64_t n, std::int32_t target, double e) {
  return target_row(n, target, 1 - e, e / static_cast<double>(n));
}

Array smoothed_target(std::int64_t n, std::int32_t target, double e) {
  Array q({n});
  chapter8::smoothed_target(target, e, n, q.data());
  return q;
}

std::int32_t draw_class(Draw& draw, std::int64_t n) {
  return static_cast<std::int32_t>(draw.random().below(static_cast<std::uint32_t>(n)));
}

void targets(Draw& draw) {
  const std::int64_t n = draw.extent(5, 3, 8);
  const auto d = static_cast<double>(n);
  for (const double e : {0.1, 0.0, 1.0}) {
    const std::int32_t t = draw_class(draw, n);
    std::vector<Mistake> known;
    if (e == 0.1) {
      known = {{"ε is spread over the n − 1 other classes; here every class, the target too, "
                "receives ε / n",
                target_row(n, t, 1 - e - e / (d - 1), e / (d - 1))},
               {"the target keeps 1 instead of 1 − ε, so that q sums to more than 1",
                target_row(n, t, 1, e / d)},
               {"the target does not receive its own ε / n, so that q sums to less than 1",
                target_row(n, t, 1 - e - e / d, e / d)},
               {"ε and 1 − ε are exchanged", target_row(n, t, e, (1 - e) / d)},
               {"every class receives ε instead of ε / n", target_row(n, t, 1 - e, e)},
               {"the smoothing has no effect", target_row(n, t, 1, 0)}};
    }
    require_same(fmt::format("smoothed_target with target {}, ε = {} and n = {}", t, e, n),
                 smoothed_target(n, t, e), right_target(n, t, e), known);
  }
}

/// Σ_j a_j log b_j
double sum_of_logs(const Array& a, const Array& b) {
  double sum = 0;
  for (std::int64_t j = 0; j < a.size(); ++j) sum += a.data()[j] * std::log(b.data()[j]);
  return sum;
}

void loss_of_one_row(Draw& draw) {
  const std::int64_t n = draw.extent(5, 3, 8);
  const Array z = draw.normal({n}), p = heed::softmax(z).value(),
              q = heed::softmax(draw.normal({n})).value();
  const double loss = chapter8::loss_of_row(z.data(), q.data(), n), right = -sum_of_logs(q, p);
  std::string cause;
  if (close(loss, -right, exact)) cause = ": the sign is wrong";
  if (close(loss, right / std::log(2.0), exact)) cause = ": this is in bits, expected nats";
  if (close(loss, -sum_of_logs(p, q), exact)) cause = ": p and q are exchanged";
  if (close(loss, right + sum_of_logs(q, q), exact))
    cause = ": this is the divergence of p from q, without the entropy of q";
  if (close(loss, right / static_cast<double>(n), exact))
    cause = ": this is the mean over the classes instead of the sum";
  require(close(loss, right, exact),
          fmt::format("loss_of_row is {:.12g}, expected {:.12g}{}", loss, right, cause));
}

void large_logits(Draw& draw) {
  const double far = draw.number(800, 1200);
  for (const Array& z : {row({far, 0, -far}), row({-far, -far - 1, -far})}) {
    for (const double e : {0.1, 0.0}) {
      const Array q = right_target(3, 1, e), grid = z.reshaped({1, 3});
      const double loss = chapter8::loss_of_row(z.data(), q.data(), 3);
      require(std::isfinite(loss),
              fmt::format("loss_of_row of [{:.0f}, {:.0f}, {:.0f}] is {}: an exponential overflows "
                          "or p becomes 0; log p is z − m − log Σ exp(z − m), without p",
                          z.data()[0], z.data()[1], z.data()[2], loss));
      require_close("loss_of_row of large logits", loss,
                    heed::cross_entropy(grid, std::vector<std::int32_t>{1}, e).item());
    }
  }
}

void a_masked_class(Draw& draw) {
  const Array z = row({draw.number(0, 1), -std::numeric_limits<double>::infinity(), 0});
  const Array q = target_row(3, 2, 1, 0);
  const double loss = chapter8::loss_of_row(z.data(), q.data(), 3);
  require(
      std::isfinite(loss),
      fmt::format("loss_of_row is {} if a class with q = 0 has the logit −∞ (p = 0): 0 log 0 is "
                  "0, so a class with q = 0 adds nothing",
                  loss));
  require_close("loss_of_row with a class of logit −∞", loss, std::log1p(std::exp(z.data()[0])));
}

/// Logits, and targets of which two are padding.
struct Batch {
  Array z;
  Targets targets;
  std::vector<std::int64_t> kept = {};  ///< the rows that have a target
};

Batch batch(Draw& draw) {
  const std::int64_t rows = draw.extent(6, 5, 9), n = draw.extent(4, 3, 7);
  Batch b{draw.normal({rows, n}), Targets(static_cast<std::size_t>(rows))};
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool padding = r == 1 || r == rows - 1;
    if (!padding) b.kept.push_back(r);
    b.targets[static_cast<std::size_t>(r)] = padding ? ignored_target : draw_class(draw, n);
  }
  return b;
}

Targets without_padding(const Targets& targets) {
  Targets all = targets;
  for (std::int32_t& t : all) t = std::max(t, 0);
  return all;
}

void mean_loss(Draw& draw) {
  const Batch b = batch(draw);
  const auto rows = static_cast<double>(b.z.rows()), kept = static_cast<double>(b.kept.size());
  const double right = heed::cross_entropy(b.z, b.targets, 0.1).item(),
               plain = heed::cross_entropy(b.z, b.targets, 0).item(),
               padded = heed::cross_entropy(b.z, without_padding(b.targets), 0.1).item();
  const auto scalar = [](double value) { return Array::scalar(value); };
  require_same(
      "smoothed_loss of rows, two of which are padding,",
      chapter8::smoothed_loss(b.z, b.targets, 0.1).value(), scalar(right),
      {{"this is the sum over the rows instead of their mean", scalar(right * kept)},
       {"the sum is divided by the number of all rows; padding does not count",
        scalar(right * kept / rows)},
       {"the rows of padding are counted, as if their target were class 0", scalar(padded)},
       {"the smoothing has no effect", scalar(plain)}});
}

void perplexities(Draw& draw) {
  const Batch b = batch(draw);
  std::vector<double> each;
  LossCounts counts;
  counts.each = &each;
  heed::cross_entropy(b.z, b.targets, 0, &counts);
  const double mean = counts.nll / static_cast<double>(counts.tokens), right = std::exp(mean),
               value = chapter8::perplexity(b.z, b.targets);
  double exponentials = 0;
  for (const double nll : each) exponentials += std::exp(nll) / static_cast<double>(each.size());
  std::string cause;
  if (close(value, mean, exact)) cause = ": this is the loss; its exponential is missing";
  if (close(value, std::exp2(mean), exact))
    cause = ": the loss is in nats, so the base is e, not 2";
  if (close(value, std::exp(heed::cross_entropy(b.z, b.targets, 0.1).item()), exact))
    cause = ": this is computed from the smoothed loss, which depends on ε";
  if (close(value, exponentials, exact))
    cause = ": this is the mean of the exponentials instead of the exponential of the mean";
  if (close(value, std::exp(counts.nll), exact))
    cause = ": this is computed from the sum of the losses instead of their mean";
  require(close(value, right, exact),
          fmt::format("the perplexity is {:.12g}, expected {:.12g}{}", value, right, cause));
  const std::int64_t n = draw.extent(7, 3, 12);
  require_close("the perplexity of equal logits, which is the number of classes,",
                chapter8::perplexity(Array::full({3, n}, 2), {0, 1, 2}), static_cast<double>(n));
}

/// Σ_b w_b f(Σ of (right − confidence) in b), with the confidence of the largest p or of the target.
double calibration(const Array& p, const Targets& targets, int bins, bool of_target, bool weighted,
                   bool absolute) {
  std::vector<double> difference(static_cast<std::size_t>(bins), 0.0), count = difference;
  for (std::int64_t r = 0; r < p.rows(); ++r) {
    const double *const x = p.row(r), *const best = std::max_element(x, x + p.cols());
    const std::int32_t t = targets[static_cast<std::size_t>(r)];
    const double confidence = of_target ? x[t] : *best;
    const auto bin =
        static_cast<std::size_t>(std::min(static_cast<int>(confidence * bins), bins - 1));
    difference[bin] += (best - x == t ? 1 : 0) - confidence;
    ++count[bin];
  }
  double error = 0, used = 0;
  for (std::size_t b = 0; b < difference.size(); ++b) {
    if (count[b] == 0) continue;
    ++used;
    const double gap = absolute ? std::abs(difference[b]) : difference[b];
    error += weighted ? gap / static_cast<double>(p.rows()) : gap / count[b];
  }
  return weighted ? error : error / used;
}

void calibration_errors(Draw& draw) {
  const std::int64_t rows = draw.extent(40, 30, 60), n = draw.extent(4, 3, 5);
  const Array p = heed::softmax(draw.normal({rows, n}, 2)).value();
  Targets t;
  for (std::int64_t r = 0; r < rows; ++r) t.push_back(draw_class(draw, n));
  const int bins = 5;
  const double right = calibration(p, t, bins, false, true, true),
               value = chapter8::calibration_error(p, t, bins);
  std::string cause;
  if (close(std::abs(value), std::abs(calibration(p, t, bins, false, true, false)), exact))
    cause = ": the differences of the bins cancel; take the absolute value of each bin's";
  if (close(value, calibration(p, t, bins, false, false, true), exact))
    cause = ": every bin has the same weight; weight it by its number of rows";
  if (close(value, calibration(p, t, bins, true, true, true), exact))
    cause = ": the confidence is the p of the target instead of the largest p";
  if (close(value, calibration(p, t, 1, false, true, true), exact))
    cause = ": all rows are in one bin, where too large and too small confidences cancel";
  if (close(value, right * static_cast<double>(rows), exact))
    cause = ": it is not divided by the number of rows";
  require(close(value, right, exact),
          fmt::format("the calibration error in {} bins is {:.12g}, expected {:.12g}{}", bins,
                      value, right, cause));
  const Array certain({{1, 0}, {1, 0}, {0, 1}, {0, 1}});
  require_close("the calibration error of four rows with p = 1 (the last bin), one of them wrong,",
                chapter8::calibration_error(certain, {0, 0, 1, 0}, 10), 0.25);
  const Array padded({{1, 0}, {1, 0}, {0, 1}, {0, 1}, {0.3, 0.7}});
  const double with_padding =
      chapter8::calibration_error(padded, {0, 0, 1, 0, heed::ignored_target}, 10);
  require(close(with_padding, 0.25, exact),
          fmt::format("the calibration error of these four rows and one of padding is {:.12g}, "
                      "expected 0.25: padding is neither right nor wrong; leave it out, also of N",
                      with_padding));
}

void gradient_of_one_row(Draw& draw) {
  const std::int64_t n = draw.extent(5, 3, 8);
  const Array z = draw.normal({n}), q = right_target(n, draw_class(draw, n), 0.1),
              p = heed::softmax(z).value();
  Array dz({n});
  chapter8::gradient_of_row(z.data(), q.data(), n, dz.data());
  const auto d = static_cast<double>(n);
  require_same(
      "gradient_of_row", dz, sub(p, q).value(),
      {{"this is q − p: the sign is wrong", sub(q, p).value()},
       {"this is p: −q is missing", p},
       {"this is −q / p, the gradient with respect to p instead of z", neg(div(q, p)).value()},
       {"the gradient is divided by the number of classes", scale(sub(p, q), 1 / d).value()}});
}

void gradient_of_mean(Draw& draw) {
  const Batch b = batch(draw);
  const auto gradient = [&](const auto& loss) {
    const Tensor z = Tensor::variable(b.z.clone());
    return backward(loss(z))[z];
  };
  const auto reference = [&](const Targets& targets, double e) {
    return gradient([&](const Tensor& z) { return heed::cross_entropy(z, targets, e); });
  };
  const Array right = reference(b.targets, 0.1);
  const auto rows = static_cast<double>(b.z.rows()), kept = static_cast<double>(b.kept.size());
  require_same(
      "the gradient of smoothed_loss",
      gradient([&](const Tensor& z) { return chapter8::smoothed_loss(z, b.targets, 0.1); }), right,
      {{"backward ignores the smoothing: it is that of ε = 0", reference(b.targets, 0)},
       {"it is not divided by the number N of rows that have a target", scale(right, kept).value()},
       {"it is divided by the number of all rows instead of those that have a target",
        scale(right, kept / rows).value()},
       {"the rows of padding have a gradient, as if their target were class 0",
        reference(without_padding(b.targets), 0.1)}});
}

void gradients(Draw& draw) {
  const Batch b = batch(draw);
  require_gradients(
      {"the logits"},
      [&](const Tensor& z) { return scale(chapter8::smoothed_loss(z, b.targets, 0.2), 3); }, b.z);
}

void floor_of_loss(Draw& draw) {
  const std::int64_t n = draw.extent(6, 3, 9);
  const Array q = right_target(n, 1, 0.1), z = log(q).value();
  require_close("loss_of_row for p = q, which is the entropy of q,",
                chapter8::loss_of_row(z.data(), q.data(), n), -sum_of_logs(q, q));
  Array dz({n});
  chapter8::gradient_of_row(z.data(), q.data(), n, dz.data());
  require_same("gradient_of_row for p = q", dz, Array::zeros({n}));
}

void shifts(Draw& draw) {
  const Batch b = batch(draw);
  require_close("smoothed_loss of z + 3",
                chapter8::smoothed_loss(add(b.z, Array::scalar(3)), b.targets, 0.1).item(),
                chapter8::smoothed_loss(b.z, b.targets, 0.1).item());
}

void padding(Draw& draw) {
  const Batch b = batch(draw);
  Array other = b.z.clone();
  std::fill_n(other.row(1), other.cols(), 50.0);
  require_close("smoothed_loss after a change of the logits of padding",
                chapter8::smoothed_loss(other, b.targets, 0.1).item(),
                chapter8::smoothed_loss(b.z, b.targets, 0.1).item());
}

void extents(Draw& draw) {
  const Array one({{draw.number(-2, 2)}});
  require_close("smoothed_loss with one class", chapter8::smoothed_loss(one, {0}, 0.1).item(), 0);
  require_same("smoothed_target with one class", smoothed_target(1, 0, 0.1), row({1}));
  const Array z = draw.normal({1, 4});
  require_close("smoothed_loss of one row", chapter8::smoothed_loss(z, {2}, 0).item(),
                heed::cross_entropy(z, std::vector<std::int32_t>{2}, 0).item());
}

/// More parameters than training rows: without smoothing, the classifier becomes certain of them.
void scarce_data(Draw& draw) {
  constexpr std::int64_t width = 20, classes = 4;
  const Array truth = draw.normal({width, classes}, 0.35);
  const auto sample = [&](const Array& x) {
    const Array p = heed::softmax(heed::matmul(x, truth)).value();
    Targets t;
    for (std::int64_t r = 0; r < p.rows(); ++r) {
      double at = draw.number(0, 1);
      std::int32_t c = 0;
      while (c < classes - 1 && at >= p.row(r)[c]) at -= p.row(r)[c++];
      t.push_back(c);
    }
    return t;
  };
  const Array x = draw.normal({30, width}), fresh = draw.normal({500, width});
  const Targets t = sample(x), fresh_t = sample(fresh);
  const auto error = [&](double e) {
    const Array w = chapter8::trained(x, t, classes, e, 150, 1);
    return chapter8::calibration_error(heed::softmax(heed::matmul(fresh, w)).value(), fresh_t, 10);
  };
  const double plain = error(0), smoothed = error(0.3);
  require(
      smoothed < plain,
      fmt::format("after training on 30 rows, the calibration error on fresh rows is {:.3g} with "
                  "ε = 0.3 and {:.3g} without smoothing: it should be lower with smoothing",
                  smoothed, plain));
}

void in_time(Draw& draw) {
  const Tensor z = Tensor::variable(draw.normal({200, 500}));
  const Targets t(200, 7);
  require_within("the loss of 200 rows with 500 classes, and its gradient,", 0.3,
                 [&] { backward(chapter8::smoothed_loss(z, t, 0.1)); });
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "the smoothed target", targets},
    {"values", "the loss of one row", loss_of_one_row},
    {"values", "large logits", large_logits},
    {"values", "a class of probability 0", a_masked_class},
    {"values", "the mean over rows with padding", mean_loss},
    {"values", "perplexity", perplexities},
    {"values", "calibration error", calibration_errors},
    {"gradients", "one row", gradient_of_one_row},
    {"gradients", "the mean, compared with heed's", gradient_of_mean},
    {"gradients", "the mean, compared with differences", gradients},
    {"properties", "the least loss is the entropy of the target", floor_of_loss},
    {"properties", "adding a number to all logits changes nothing", shifts},
    {"properties", "padding has no effect", padding},
    {"properties", "extents of 1", extents},
    {"properties", "calibration with scarce data", scarce_data},
    {"budgets", "a large batch", in_time},
})
