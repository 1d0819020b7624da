// The check of chapter 3: attention in both directions, and the entropy of its weights over d.
#include "check.h"
#include "exercise.h"

using namespace heed;
using namespace heed::course;
using chapter3::Scaled;

namespace {

struct Inputs {
  Array q, k, v;
};

/// All extents differ, so that a confusion of two of them shows.
Inputs inputs(Draw& draw) {
  const std::int64_t m = draw.extent(3, 2, 4), n = draw.extent(5, 5, 7), d = draw.extent(8, 8, 12),
                     e = draw.extent(9, 13, 15);
  return {draw.normal({m, d}), draw.normal({n, d}), draw.normal({n, e})};
}

Array scores(const Array& q, const Array& k, double factor) {
  return scale(matmul(q, k, false, true), factor).value();
}
Array columns(const Array& s) { return transpose(softmax(transpose(s))).value(); }
double root(std::int64_t n) { return std::sqrt(static_cast<double>(n)); }

/// The weights of known mistakes.
std::vector<Mistake> wrong_weights(const Inputs& x) {
  const auto d = x.q.cols();
  return {{"the scores are not divided by √d", softmax(scores(x.q, x.k, 1)).value()},
          {"the scores are divided by d instead of √d",
           softmax(scores(x.q, x.k, 1 / static_cast<double>(d))).value()},
          {"the scores are multiplied by √d", softmax(scores(x.q, x.k, root(d))).value()},
          {"√d is computed from the number of keys instead of the width of q",
           softmax(scores(x.q, x.k, 1 / root(x.k.rows()))).value()},
          {"√d is computed from the number of queries instead of the width of q",
           softmax(scores(x.q, x.k, 1 / root(x.q.rows()))).value()},
          {"the softmax runs over the queries (columns) instead of the keys of each query (rows)",
           columns(scores(x.q, x.k, 1 / root(d)))},
          {"all weights are 1/n, so the scores are multiplied by 0: in C++, 1 / d is a division of "
           "integers",
           softmax(scores(x.q, x.k, 0)).value()},
          {"the factor 1/√d is applied after the softmax instead of before it",
           scale(softmax(scores(x.q, x.k, 1)), 1 / root(d)).value()},
          {"these are the scores: the softmax is missing", scores(x.q, x.k, 1 / root(d))}};
}

void weights(Draw& draw) {
  const Inputs x = inputs(draw);
  require_same("weights_of(q, k)", chapter3::weights_of(x.q, x.k),
               attention(x.q, x.k, x.v).weights.value(), wrong_weights(x));
}

void unscaled_weights(Draw& draw) {
  const Inputs x = inputs(draw);
  require_same("weights_of(q, k, Scaled::no)", chapter3::weights_of(x.q, x.k, Scaled::no),
               softmax(scores(x.q, x.k, 1)).value(),
               {{"the scores are divided by √d, although scaled is no",
                 softmax(scores(x.q, x.k, 1 / root(x.q.cols()))).value()}});
}

void output(Draw& draw) {
  const Inputs x = inputs(draw);
  std::vector<Mistake> mistakes;
  for (const Mistake& wrong : wrong_weights(x))
    mistakes.push_back({wrong.sentence, matmul(wrong.values, x.v).value()});
  mistakes.push_back({"√d is computed from the width of v instead of q",
                      matmul(softmax(scores(x.q, x.k, 1 / root(x.v.cols()))), x.v).value()});
  require_same("attend(q, k, v)", chapter3::attend(x.q, x.k, x.v).value(),
               attention(x.q, x.k, x.v).output.value(), mistakes);
}

/// dS by known mistakes, from the weights P and dP.
std::vector<Mistake> wrong_score_gradients(const Array& p, const Array& dp) {
  const Array terms = mul(p, dp).value(), over_queries = Array::full({p.rows(), 1}, 1),
              over_keys = Array::full({p.cols(), 1}, 1);
  const auto of_rows = [&](const Array& x) {  // each row filled with its sum
    return matmul(matmul(x, over_keys), over_keys, false, true).value();
  };
  const Array of_columns = matmul(over_queries, matmul(over_queries, terms, true, false)).value();
  return {
      {"the row sum Σ_l dP_il P_il is missing", terms},
      {"the sum Σ dP P runs over the queries (columns) instead of the keys of each query (rows)",
       mul(p, sub(dp, of_columns)).value()},
      {"the row sum is Σ_l dP_il, without the weights P_il", mul(p, sub(dp, of_rows(dp))).value()},
      {"the row sum Σ_l dP_il P_il is not multiplied by P_ij", sub(terms, of_rows(terms)).value()},
      {"dS is dP: the backward of the softmax is missing", dp}};
}

/// Names a known mistake in dS. dV does not depend on it, so dQ and dK show it.
void require_score_gradients(const Inputs& x, const Array& d_o) {
  const Tensor q = Tensor::variable(x.q), k = Tensor::variable(x.k), v = Tensor::variable(x.v);
  const Gradients g = backward(chapter3::attend(q, k, v), d_o);
  const Array p = softmax(scores(x.q, x.k, 1 / root(x.q.cols()))).value();
  const Array dq = g[q], dk = g[k];
  if (!close(g[v], matmul(p, d_o, true, false).value(), 1e-9)) return;
  for (const Mistake& wrong : wrong_score_gradients(p, matmul(d_o, x.v, false, true).value())) {
    const double factor = 1 / root(x.q.cols());
    const bool of_q = close(dq, scale(matmul(wrong.values, x.k), factor).value(), 1e-9),
               of_k =
                   close(dk, scale(matmul(wrong.values, x.q, true, false), factor).value(), 1e-9);
    require(!of_q && !of_k,
            fmt::format("the gradient of {} is wrong and that of v is right, so the mistake is in "
                        "dS: {}",
                        of_q ? "q" : "k", wrong.sentence));
  }
}

void gradients(Draw& draw) {
  const Inputs x = inputs(draw);
  require_score_gradients(x, draw.normal({x.q.rows(), x.v.cols()}));
  require_gradients({"q", "k", "v"}, chapter3::attend, x.q, x.k, x.v);
}

void gradients_of_square(Draw& draw) {
  const std::int64_t n = draw.extent(4, 3, 5);
  require_gradients({"q", "k", "v"}, chapter3::attend, draw.normal({n, n}), draw.normal({n, n}),
                    draw.normal({n, n}));
}

/// Compares mean_entropy(weights) with its definition and names known mistakes.
void require_entropy(const std::string& what, const Array& weights) {
  double sum = 0;
  for (const double w : weights.values()) sum -= w > 0 ? w * std::log(w) : 0;
  const double right = sum / static_cast<double>(weights.rows()),
               value = chapter3::mean_entropy(weights);
  std::string cause;
  if (!std::isfinite(value)) cause = ": 0 ln 0 is 0";
  if (close(value, sum, exact)) cause = ": this is the sum over the rows instead of their mean";
  if (close(value, -right, exact)) cause = ": the sign is wrong";
  if (close(value, right / std::log(2.0), exact)) cause = ": this is in bits, expected nats";
  if (close(value, sum / static_cast<double>(weights.size()), exact))
    cause = ": this is the mean over all weights instead of the rows";
  require(close(value, right, exact),
          fmt::format("the mean entropy of {} is {:.12g}, expected {:.12g}{}", what, value, right,
                      cause));
}

void entropies(Draw& draw) {
  const std::int64_t n = draw.extent(6, 4, 8);
  require_entropy("random weights", softmax(draw.normal({draw.extent(4, 2, 6), n})).value());
  require_entropy("equal weights", Array::full({3, n}, 1 / static_cast<double>(n)));
  require_entropy("weights 0 and 1", Array({{1, 0, 0}, {0, 0, 1}}));
}

void entropy_over_width(Draw& draw) {
  double scaled_small = 0, scaled_large = 0, plain_small = 0, plain_large = 0;
  for (const std::int64_t d : {4, 256}) {
    const Array q = draw.normal({40, d}), k = draw.normal({20, d});
    const double scaled = chapter3::mean_entropy(chapter3::weights_of(q, k)),
                 plain = chapter3::mean_entropy(chapter3::weights_of(q, k, Scaled::no));
    (d == 4 ? scaled_small : scaled_large) = scaled;
    (d == 4 ? plain_small : plain_large) = plain;
  }
  require(
      std::abs(scaled_small - scaled_large) < 0.5,
      fmt::format("with 1/√d the mean entropy goes from {:.3g} for d = 4 to {:.3g} for d = 256: "
                  "it should hardly change, because Var(q·k/√d) = 1",
                  scaled_small, scaled_large));
  require(plain_large < 0.5 * plain_small,
          fmt::format("without 1/√d the mean entropy goes from {:.3g} for d = 4 to {:.3g} for "
                      "d = 256: it should fall, because Var(q·k) = d",
                      plain_small, plain_large));
}

void rows_sum_to_one(Draw& draw) {
  const Inputs x = inputs(draw);
  const Array ones = Array::full({x.k.rows(), 1}, 1);
  require_same("attend(q, k, ones): with values of 1, each result",
               chapter3::attend(x.q, x.k, ones).value(), Array::full({x.q.rows(), 1}, 1));
}

Array reversed(const Array& x) {
  Array y(x.shape());
  for (std::int64_t r = 0; r < x.rows(); ++r)
    std::copy_n(x.row(r), x.cols(), y.row(x.rows() - 1 - r));
  return y;
}

void permutation(Draw& draw) {
  const Inputs x = inputs(draw);
  const Array y = chapter3::attend(x.q, x.k, x.v).value();
  require_same("attention with keys and values in reverse order",
               chapter3::attend(x.q, reversed(x.k), reversed(x.v)).value(), y);
  require_same("attention with queries in reverse order",
               chapter3::attend(reversed(x.q), x.k, x.v).value(), reversed(y));
}

void extents(Draw& draw) {
  const Array v = draw.normal({1, 4});
  require_same("attention to one key",
               chapter3::attend(draw.normal({1, 3}), draw.normal({1, 3}), v).value(), v);
  require_same("attention of no queries",
               chapter3::attend(Array({0, 3}), draw.normal({2, 3}), draw.normal({2, 4})).value(),
               Array({0, 4}));
}

void in_time(Draw& draw) {
  const Array q = draw.normal({256, 64}), k = draw.normal({256, 64}), v = draw.normal({256, 64});
  require_within("attention of 256 queries to 256 keys of width 64", 0.3,
                 [&] { chapter3::attend(q, k, v); });
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "weights", weights},
    {"values", "weights without 1/√d", unscaled_weights},
    {"values", "attention", output},
    {"values", "entropy", entropies},
    {"gradients", "attention", gradients},
    {"gradients", "attention of square matrices", gradients_of_square},
    {"properties", "rows sum to 1", rows_sum_to_one},
    {"properties", "permutation", permutation},
    {"properties", "extents 0 and 1", extents},
    {"properties", "entropy over d, with 1/√d and without", entropy_over_width},
    {"budgets", "attention of a large array", in_time},
})
