// The check of chapter 7: layer norm in both directions, the layer with pre and post norm, and the
// gradients of a deep stack.
#include "check.h"
#include "exercise.h"
#include "nn/reference/transformer.h"

using namespace heed;
using namespace heed::course;
using chapter7::Layer;
using chapter7::Place;

namespace {

constexpr double eps = 1e-5;

struct Inputs {
  Array x, gain, bias;
};

/// Rows with a mean other than 0, and a gain other than 1.
Inputs inputs(Draw& draw) {
  const std::int64_t rows = draw.extent(3, 2, 4), n = draw.extent(5, 5, 8);
  const Array x = add(draw.normal({rows, n}, 2), Array::scalar(draw.number(1, 2))).value();
  return {x, add(draw.normal({n}, 0.3), Array::scalar(1.5)).value(), draw.normal({n})};
}

Array normalised(const Inputs& in, double e = eps) {
  return chapter7::normalised(in.x, in.gain, in.bias, e).value();
}
Array reference_norm(const Inputs& in, double e = eps) {
  return heed::layer_norm(in.x, in.gain, in.bias, e).value();
}

// ---- layer norm: values -------------------------------------------------------------------------

/// x̂ ⊙ gain + bias with x̂_i = f(x_i, μ, σ², n) of each row.
template <class F>
Array of_rows(const Inputs& in, const F& f) {
  Array y(in.x.shape());
  const std::int64_t n = in.x.cols();
  for (std::int64_t r = 0; r < in.x.rows(); ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += in.x.row(r)[i] / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i)
      variance += std::pow(in.x.row(r)[i] - mean, 2) / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i)
      y.row(r)[i] = f(in.x.row(r)[i], mean, variance, static_cast<double>(n)) * in.gain.data()[i] +
                    in.bias.data()[i];
  }
  return y;
}

/// Each column normalised over the rows, as batch norm does.
Array of_columns(const Inputs& in, double e) {
  const Tensor x = transpose(heed::layer_norm(transpose(in.x), {}, {}, e));
  return add(mul(x, in.gain), in.bias).value();
}

std::vector<Mistake> wrong_norms(const Inputs& in, double e) {
  using std::sqrt;
  return {
      {"the mean is not subtracted",
       of_rows(in, [e](double x, double, double v, double) { return x / sqrt(v + e); })},
      {"the mean is not subtracted, so this is RMS norm",
       of_rows(in, [e](double x, double m, double v, double) { return x / sqrt(v + m * m + e); })},
      {"the variance is divided by n − 1; layer norm divides by n",
       of_rows(in, [e](double x, double m, double v,
                       double n) { return (x - m) / sqrt(v * n / (n - 1) + e); })},
      {"the variance is the sum of the squares; divide it by n",
       of_rows(in,
               [e](double x, double m, double v, double n) { return (x - m) / sqrt(v * n + e); })},
      {"the variance is the mean of x² instead of (x − μ)²",
       of_rows(in, [e](double x, double m, double v,
                       double) { return (x - m) / sqrt(v + m * m + e); })},
      {"ε is added to σ; it belongs under the root, to σ²",
       of_rows(in, [e](double x, double m, double v, double) { return (x - m) / (sqrt(v) + e); })},
      {"ε is missing",
       of_rows(in, [](double x, double m, double v, double) { return (x - m) / sqrt(v); })},
      {"the root is missing: the row is divided by its variance",
       of_rows(in, [e](double x, double m, double v, double) { return (x - m) / (v + e); })},
      {"the row is divided by the square root of its standard deviation",
       of_rows(in,
               [e](double x, double m, double v, double) { return (x - m) / sqrt(sqrt(v + e)); })},
      {"the columns are normalised over the rows, as batch norm does; layer norm uses each row alone",
       of_columns(in, e)}};
}

void norm(Draw& draw) {
  const Inputs in = inputs(draw);
  require_same("normalised(x, gain, bias)", normalised(in), reference_norm(in),
               wrong_norms(in, eps));
  const double e = draw.number(0.1, 0.5);
  require_same(fmt::format("normalised with eps = {:.3g}", e), normalised(in, e),
               reference_norm(in, e), wrong_norms(in, e));
}

void large_mean(Draw& draw) {
  Inputs in = inputs(draw);
  const double far = draw.number(1e7, 1e8);
  in.x = add(in.x, Array::scalar(far)).value();
  const Array y = normalised(in), right = reference_norm(in);
  for (const double value : y.values())
    require(std::isfinite(value) && close(y, right, 1e-6),
            fmt::format("for a row with mean {:.1e} the result is off by rounding: the mean of x² "
                        "minus μ² loses all digits; average (x − μ)²",
                        far));
}

// ---- layer norm: gradients ----------------------------------------------------------------------

struct RowGradients {
  Array dx, dgain, dbias;
};

template <class F>
RowGradients gradients_of(const Inputs& in, const Array& dy, const F& f) {
  const Tensor x = Tensor::variable(in.x.clone()), gain = Tensor::variable(in.gain.clone()),
               bias = Tensor::variable(in.bias.clone());
  const Gradients all = backward(f(x, gain, bias, eps), dy);
  return {all[x], all[gain], all[bias]};
}

void cotangents(Draw& draw) {
  const Inputs in = inputs(draw);
  const Array dy = draw.normal(in.x.shape());
  const auto exercise = [](const auto&... a) { return chapter7::normalised(a...); };
  const auto reference = [](const auto&... a) { return heed::layer_norm(a...); };
  const RowGradients found = gradients_of(in, dy, exercise),
                     right = gradients_of(in, dy, reference);
  const Inputs plain{in.x, Array::full(in.gain.shape(), 1), Array::zeros(in.bias.shape())};
  const Array normal = reference_norm(plain);
  const std::int64_t rows = in.x.rows(), n = in.x.cols();
  const double count = static_cast<double>(n);
  // dx = (g − a mean(g) − b x̂ mean(g ⊙ x̂)) / √(σ² + ε), g = dy ⊙ gain or dy
  const auto dx = [&](double a, double b, bool with_gain, bool with_root) {
    Array y(in.x.shape());
    for (std::int64_t r = 0; r < rows; ++r) {
      double mean = 0, along = 0, m = 0, v = 0;
      const auto g = [&](std::int64_t i) {
        return dy.row(r)[i] * (with_gain ? in.gain.data()[i] : 1);
      };
      for (std::int64_t i = 0; i < n; ++i) m += in.x.row(r)[i] / count;
      for (std::int64_t i = 0; i < n; ++i) v += std::pow(in.x.row(r)[i] - m, 2) / count;
      for (std::int64_t i = 0; i < n; ++i)
        mean += g(i) / count, along += g(i) * normal.row(r)[i] / count;
      for (std::int64_t i = 0; i < n; ++i)
        y.row(r)[i] = (g(i) - a * mean - b * normal.row(r)[i] * along) *
                      (with_root ? 1 / std::sqrt(v + eps) : 1);
    }
    return y;
  };
  require_same(
      "the gradient of x", found.dx, right.dx,
      {{"mean(g) is not subtracted, as if μ did not depend on x", dx(0, 1, true, true)},
       {"x̂ mean(g ⊙ x̂) is not subtracted, as if σ did not depend on x", dx(1, 0, true, true)},
       {"μ and σ are treated as constants: both means are missing", dx(0, 0, true, true)},
       {"g is dy ⊙ gain; the gain is missing", dx(1, 1, false, true)},
       {"the factor 1 / √(σ² + ε) is missing", dx(1, 1, true, false)},
       {"mean(g) is a sum: divide it by n", dx(count, 1, true, true)},
       {"mean(g ⊙ x̂) is a sum: divide it by n", dx(1, count, true, true)},
       {"both means are sums: divide them by n", dx(count, count, true, true)},
       {"the sign of x̂ mean(g ⊙ x̂) is wrong", dx(1, -1, true, true)},
       {"the sign of mean(g) is wrong", dx(-1, 1, true, true)},
       {"this is dy itself", dy}},
      1e-11);
  const auto last_row = [&](const Array& a) {
    Array y(in.gain.shape());
    for (std::int64_t i = 0; i < n; ++i) y.data()[i] = a.row(rows - 1)[i];
    return y;
  };
  const auto summed = [&](const Array& a) {
    Array y = Array::zeros(in.gain.shape());
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < n; ++i) y.data()[i] += a.row(r)[i];
    return y;
  };
  require_same(
      "the gradient of gain", found.dgain, right.dgain,
      {{"this is the sum of dy; the gain multiplies x̂, so it is that of dy ⊙ x̂", right.dbias},
       {"x is used instead of x̂", summed(mul(dy, in.x).value())},
       {"g is used instead of dy", summed(mul(mul(dy, in.gain), normal).value())},
       {"it contains the last row alone: add up all rows", last_row(mul(dy, normal).value())}},
      1e-11);
  require_same("the gradient of bias", found.dbias, right.dbias,
               {{"it contains the last row alone: add up all rows", last_row(dy)},
                {"g is used instead of dy", summed(mul(dy, in.gain).value())}},
               1e-11);
}

void gradients(Draw& draw) {
  const Inputs in = inputs(draw);
  require_gradients(
      {"x", "gain", "bias"},
      [](const Tensor& x, const Tensor& gain, const Tensor& bias) {
        return chapter7::normalised(x, gain, bias, 0.1);
      },
      in.x, in.gain, in.bias);
}

// ---- the layer ----------------------------------------------------------------------------------

/// A layer with random weights, gains and biases; no two extents are equal.
Layer random_layer(Draw& draw, std::int64_t d, std::int64_t d_ff) {
  const auto matrix = [&](std::int64_t out, std::int64_t in) {
    return Tensor::variable(draw.normal({out, in}, 0.6));
  };
  const auto vector = [&](std::int64_t n, double mean) {
    return Tensor::variable(add(draw.normal({n}, 0.4), Array::scalar(mean)).value().clone());
  };
  Layer layer;
  layer.q = matrix(d, d), layer.k = matrix(d, d), layer.v = matrix(d, d), layer.out = matrix(d, d);
  layer.in = matrix(d_ff, d), layer.back = matrix(d, d_ff);
  layer.b1 = vector(d_ff, 0), layer.b2 = vector(d, 0);
  layer.gain1 = vector(d, 1), layer.gain2 = vector(d, 1);
  layer.bias1 = vector(d, 0), layer.bias2 = vector(d, 0);
  return layer;
}

Tensor norm1(const Tensor& x, const Layer& w) { return heed::layer_norm(x, w.gain1, w.bias1); }
Tensor norm2(const Tensor& x, const Layer& w) { return heed::layer_norm(x, w.gain2, w.bias2); }
Tensor attended(const Tensor& x, const Layer& w) {
  return affine(attention(affine(x, w.q), affine(x, w.k), affine(x, w.v)).output, w.out);
}
Tensor fed(const Tensor& x, const Layer& w) {
  return affine(relu(affine(x, w.in, w.b1)), w.back, w.b2);
}

/// The layer of heed's reference, with one head and the weights of `w`.
Array reference_post(const Tensor& x, const Layer& w) {
  const std::int64_t d = w.q.shape()[0];
  Init init(1);
  reference::EncoderLayer layer({.d_model = d, .heads = 1, .d_ff = w.in.shape()[0]}, init);
  Array all({3 * d, d});
  double* to = all.data();
  for (const Tensor* part : {&w.q, &w.k, &w.v})
    to = std::copy_n(part->value().data(), part->size(), to);
  layer.self_attention.in_proj_weight = all;
  layer.self_attention.out_proj.weight = w.out;
  layer.feed_forward.linear1.weight = w.in, layer.feed_forward.linear1.bias = w.b1;
  layer.feed_forward.linear2.weight = w.back, layer.feed_forward.linear2.bias = w.b2;
  layer.norm1.weight = w.gain1, layer.norm1.bias = w.bias1;
  layer.norm2.weight = w.gain2, layer.norm2.bias = w.bias2;
  return layer(x).value();
}
Tensor pre(const Tensor& x, const Layer& w) {
  const Tensor y = x + attended(norm1(x, w), w);
  return y + fed(norm2(y, w), w);
}

void feed(Draw& draw) {
  const std::int64_t d = draw.extent(5, 4, 7), d_ff = draw.extent(9, 8, 12);
  const Layer w = random_layer(draw, d, d_ff);
  const Array x = draw.normal({draw.extent(3, 2, 4), d});
  const Tensor inner = affine(x, w.in, w.b1);
  require_same(
      "feed_forward(x)", chapter7::feed_forward(x, w).value(), fed(x, w).value(),
      {{"the ReLU is missing, so the two maps are one linear map",
        affine(inner, w.back, w.b2).value()},
       {"the ReLU stands after the second map; it belongs between the two",
        relu(affine(inner, w.back, w.b2)).value()},
       {"a ReLU stands after the second map, too", relu(affine(relu(inner), w.back, w.b2)).value()},
       {"the bias b1 is missing", affine(relu(affine(x, w.in)), w.back, w.b2).value()},
       {"the bias b2 is missing", affine(relu(inner), w.back).value()},
       {"both biases are missing", affine(relu(affine(x, w.in)), w.back).value()},
       {"x is added; the residual connection is that of `connected`", (x + fed(x, w)).value()},
       {"this uses GELU instead of ReLU", affine(gelu(inner), w.back, w.b2).value()}});
}

/// Results of a layer with known mistakes.
std::vector<Mistake> wrong_layers(const Tensor& x, const Layer& w) {
  const Tensor a = x + attended(x, w), n1 = norm1(x, w), b = x + attended(n1, w);
  const Tensor post1 = norm1(a, w);
  return {
      {"this is post norm", reference_post(x, w)},
      {"this is pre norm", pre(x, w).value()},
      {"the norms are missing", (a + fed(a, w)).value()},
      {"the residual connections are missing: nothing is added",
       norm2(fed(norm1(attended(x, w), w), w), w).value()},
      {"the residual connections are missing: nothing is added",
       fed(norm2(attended(n1, w), w), w).value()},
      {"the sublayer's result alone is normalised, x + LN(Sub(x))",
       (x + norm1(attended(x, w), w) + norm2(fed(x + norm1(attended(x, w), w), w), w)).value()},
      {"the normalised rows are added instead of x, so the norm stands on the path",
       [&] {
         const Tensor y = n1 + attended(n1, w), n2 = norm2(y, w);
         return (n2 + fed(n2, w)).value();
       }()},
      {"the normalised rows are added to Sub(x); pre norm is x + Sub(LN(x))",
       [&] {
         const Tensor y = n1 + attended(x, w);
         return (norm2(y, w) + fed(y, w)).value();
       }()},
      {"the feed-forward layer reads x instead of the result of attention",
       norm2(x + fed(x, w), w).value()},
      {"the feed-forward layer reads x instead of the result of attention",
       (x + fed(norm2(x, w), w)).value()},
      {"attention and feed-forward both read x (a parallel block)",
       (x + attended(n1, w) + fed(norm2(x, w), w)).value()},
      {"feed-forward comes before attention",
       norm2(norm1(x + fed(x, w), w) + attended(norm1(x + fed(x, w), w), w), w).value()},
      {"the second norm uses the gain and bias of the first",
       heed::layer_norm(post1 + fed(post1, w), w.gain1, w.bias1).value()},
      {"the second norm uses the gain and bias of the first", (b + fed(norm1(b, w), w)).value()},
      {"the feed-forward layer is missing", post1.value()},
      {"the feed-forward layer is missing", b.value()}};
}

void layer(Draw& draw, Place place) {
  const std::int64_t d = draw.extent(5, 4, 7);
  const Layer w = random_layer(draw, d, draw.extent(9, 8, 12));
  const Array x = draw.normal({draw.extent(3, 2, 4), d}, 2);
  const bool is_pre = place == Place::pre;
  require_same(fmt::format("block(x, layer, Place::{})", is_pre ? "pre" : "post"),
               chapter7::block(x, w, place).value(),
               is_pre ? pre(x, w).value() : reference_post(x, w), wrong_layers(x, w), 1e-11);
}

void post_layer(Draw& draw) { layer(draw, Place::post); }
void pre_layer(Draw& draw) { layer(draw, Place::pre); }

void stacks(Draw& draw) {
  const std::int64_t d = draw.extent(4, 3, 6), d_ff = draw.extent(7, 5, 9);
  const std::vector<Layer> layers{random_layer(draw, d, d_ff), random_layer(draw, d, d_ff)};
  const Array x = draw.normal({3, d}), gain = draw.normal({d}), bias = draw.normal({d});
  const auto run = [&](Place place) {
    return chapter7::stack(x, layers, gain, bias, place).value();
  };
  const Tensor through = pre(pre(x, layers[0]), layers[1]);
  const Array post = reference_post(reference_post(x, layers[0]), layers[1]);
  require_same("a stack with pre norm", run(Place::pre),
               heed::layer_norm(through, gain, bias).value(),
               {{"the norm after the last layer is missing: the rows of the path are sums of all "
                 "sublayers, which nothing has normalised",
                 through.value()},
                {"the layers run in reverse order",
                 heed::layer_norm(pre(pre(x, layers[1]), layers[0]), gain, bias).value()},
                {"every layer is the first one",
                 heed::layer_norm(pre(pre(x, layers[0]), layers[0]), gain, bias).value()},
                {"a norm follows every layer",
                 heed::layer_norm(pre(heed::layer_norm(pre(x, layers[0]), gain, bias), layers[1]),
                                  gain, bias)
                     .value()}},
               1e-11);
  require_same("a stack with post norm", run(Place::post), post,
               {{"a further norm follows the last layer; with post norm, the layer ends with one",
                 heed::layer_norm(post, gain, bias).value()}},
               1e-11);
}

void norms(Draw& draw) {
  const std::int64_t d = draw.extent(4, 3, 6);
  const std::vector<Layer> layers{random_layer(draw, d, 7), random_layer(draw, d, 7),
                                  random_layer(draw, d, 7)};
  const Gradients all = backward(
      pre(pre(pre(draw.normal({3, d}), layers[0]), layers[1]), layers[2]), draw.normal({3, d}));
  const std::vector<double> found = chapter7::gradient_norms(layers, all);
  require(
      found.size() == layers.size(),
      fmt::format("gradient_norms returns {} numbers for {} layers", found.size(), layers.size()));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    double sum = 0, of_norms = 0, absolute = 0, count = 0;
    for (const Tensor& p : layers[i].parameters()) {
      const Array g = all[p];
      double squares = 0;
      for (const double value : g.values()) squares += value * value, absolute += std::abs(value);
      sum += squares, of_norms += std::sqrt(squares), count += static_cast<double>(g.size());
    }
    const double right = std::sqrt(sum);
    std::string cause;
    if (close(found[i], sum, exact)) cause = ": the root is missing";
    if (close(found[i], of_norms, exact))
      cause = ": the norms of the parameters are added; add their squares, then take the root";
    if (close(found[i], absolute, exact)) cause = ": this is the sum of the absolute values";
    if (close(found[i], std::sqrt(sum / count), exact)) cause = ": this is the root of the mean";
    require(close(found[i], right, exact),
            fmt::format("the gradient norm of layer {} is {:.12g}, expected {:.12g}{}", i, found[i],
                        right, cause));
  }
}

void layer_gradients(Draw& draw) {
  Layer w = random_layer(draw, 3, 5);
  for (Tensor* t : {&w.gain1, &w.bias1, &w.q, &w.k, &w.v, &w.out, &w.gain2, &w.bias2, &w.in, &w.b1,
                    &w.back, &w.b2})
    *t = Tensor(t->value());  // constants, apart from the inputs of f
  for (const Place place : {Place::pre, Place::post})
    require_gradients(
        {"x", "gain1", "bias2"},
        [&](const Tensor& x, const Tensor& gain, const Tensor& bias) {
          Layer changed = w;
          changed.gain1 = gain, changed.bias2 = bias;
          return chapter7::block(x, changed, place);
        },
        draw.normal({2, 3}), w.gain1.value(), w.bias2.value());
}

// ---- properties ---------------------------------------------------------------------------------

void invariance(Draw& draw) {
  const Inputs in = inputs(draw);
  const Array y = normalised(in, 0);
  Inputs other = in;
  other.x = add(scale(in.x, draw.number(2, 5)), Array::scalar(draw.number(-9, 9))).value();
  require_same("layer norm of a x + b, for eps = 0", normalised(other, 0), y, {}, 1e-10);
  other.x = in.x.sliced(0, 1);
  require_same("layer norm of the first row alone", normalised(other, 0), y.sliced(0, 1));
}

void path(Draw& draw) {
  const std::int64_t d = draw.extent(4, 3, 6);
  Layer w = random_layer(draw, d, 5);
  for (Tensor* t : {&w.out, &w.back, &w.b2}) *t = Tensor::variable(Array::zeros(t->shape()));
  const Array dy = draw.normal({3, d});
  const Tensor x = Tensor::variable(draw.normal({3, d}));
  const Tensor y = chapter7::block(x, w, Place::pre);
  require_same("a pre-norm layer whose sublayers return 0, which must be the identity,", y.value(),
               x.value());
  require_same("the gradient through that layer, which must pass unchanged,", backward(y, dy)[x],
               dy);
}

/// The geometric mean over the seeds of the gradient norm of the last layer.
double last_norm(Place place, std::int64_t depth, const std::vector<std::uint32_t>& seeds) {
  double sum = 0;
  for (const std::uint32_t seed : seeds) {
    const std::vector<double> all =
        chapter7::norms_by_layer(place, depth, Random({seed, Stream::check, 0, 0}));
    require(static_cast<std::int64_t>(all.size()) == depth, "norms_by_layer has lost a layer");
    sum += std::log(all.back());
  }
  return std::exp(sum / static_cast<double>(seeds.size()));
}

void depth(Draw& draw) {
  std::vector<std::uint32_t> seeds;
  for (int i = 0; i < 6; ++i) seeds.push_back(draw.random()());
  const double pre2 = last_norm(Place::pre, 2, seeds), pre12 = last_norm(Place::pre, 12, seeds),
               post2 = last_norm(Place::post, 2, seeds), post12 = last_norm(Place::post, 12, seeds);
  require(
      pre12 < 0.75 * pre2,
      fmt::format("with pre norm, the gradient norm of the last layer goes from {:.4g} at depth 2 "
                  "to {:.4g} at depth 12: it should fall, nearly as 1 / √depth",
                  pre2, pre12));
  require(
      post12 > 0.75 * post2,
      fmt::format("with post norm, the gradient norm of the last layer goes from {:.4g} at depth "
                  "2 to {:.4g} at depth 12: it should not fall",
                  post2, post12));
}

void extents(Draw&) {
  const Array one = Array::full({1}, 1), bias = Array::full({1}, 3);
  require_same("layer norm of rows of extent 1, which have variance 0,",
               chapter7::normalised(Array({{5}, {-7}}), one, bias).value(), Array({{3}, {3}}));
  const Array two = Array::full({2}, 1);
  require_same("layer norm of a row of equal values",
               chapter7::normalised(Array({{4, 4}}), two, two).value(), Array({{1, 1}}));
  require_same("layer norm of an array of shape [0, 2]",
               chapter7::normalised(Array({0, 2}), two, two).value(), Array({0, 2}));
  const Tensor x = Tensor::variable(Array({0, 2})), gain = Tensor::variable(Array::full({2}, 1));
  require_same("the gradient of gain for no rows",
               backward(chapter7::normalised(x, gain, two), Array({0, 2}))[gain],
               Array::zeros({2}));
}

void in_time(Draw& draw) {
  const Array x = draw.normal({300, 128}), ones = Array::full({128}, 1);
  require_within("layer norm of 300 rows of width 128, in both directions", 0.3, [&] {
    const Tensor v = Tensor::variable(x);
    backward(chapter7::normalised(v, ones, ones), x);
  });
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "layer norm", norm},
    {"values", "layer norm of rows with a large mean", large_mean},
    {"values", "feed-forward", feed},
    {"values", "layer with post norm", post_layer},
    {"values", "layer with pre norm", pre_layer},
    {"values", "stacks", stacks},
    {"values", "gradient norms", norms},
    {"gradients", "layer norm, against the reference", cotangents},
    {"gradients", "layer norm", gradients},
    {"gradients", "layers", layer_gradients},
    {"properties", "layer norm does not see shift, scale and other rows", invariance},
    {"properties", "the path of pre norm is free", path},
    {"properties", "gradient of the last layer over depth", depth},
    {"properties", "extents 0 and 1", extents},
    {"budgets", "layer norm of a large array", in_time},
})
