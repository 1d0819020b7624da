// The check of chapter 5: masks, softmax with a mask, and what a query may not depend on.
#include <limits>

#include "check.h"
#include "exercise.h"

using namespace heed;
using namespace heed::course;
using chapter5::Lengths;

namespace {

constexpr double hidden = -std::numeric_limits<double>::infinity();
constexpr const char* finite =
    "a large negative number takes the place of −∞; the weight of a hidden key must be exactly 0";
constexpr const char* factors =
    "these are factors 1 and 0, but a mask is added to the scores: 0 for a key that is read, −∞ for a "
    "hidden one";
constexpr const char* inverted = "0 and −∞ are exchanged";

/// A mask from a function of its indices: 0 where it returns true.
template <class Reads>
Array mask_of(const Shape& shape, const Reads& reads) {
  Array mask(shape);
  const std::int64_t rows = shape[-2], keys = shape[-1];
  for (std::int64_t i = 0; i < mask.size(); ++i)
    mask.data()[i] = reads(i / (rows * keys), i / keys % rows, i % keys) ? 0 : hidden;
  return mask;
}
/// The mask with other numbers for 0 and −∞.
Array with_values(const Array& mask, double read, double not_read) {
  Array y(mask.shape());
  for (std::int64_t i = 0; i < mask.size(); ++i)
    y.data()[i] = mask.data()[i] == 0 ? read : not_read;
  return y;
}
void append_values(std::vector<Mistake>& mistakes, const Array& right) {
  mistakes.push_back({factors, with_values(right, 1, 0)});
  mistakes.push_back({inverted, with_values(right, hidden, 0)});
  for (const double number : {-1e4, -1e9, -1e30, std::numeric_limits<double>::lowest()})
    mistakes.push_back({finite, with_values(right, 0, number)});
}

void require_numbers(const std::string& what, const Array& x, const std::string& cause) {
  for (const double value : x.values())
    require(!std::isnan(value),
            fmt::format("{} contains NaN: {}", what,
                        PoisonNewBlocks::is_poison(value) ? not_written : cause));
}
void require_mask(const std::string& what, const Array& mask, const Array& right,
                  std::vector<Mistake> mistakes) {
  append_values(mistakes, right);
  require_numbers(what, mask, "0 · (−∞) is NaN; choose between 0 and −∞ instead of multiplying");
  require_same(what, mask, right, mistakes);
}

Lengths lengths(Draw& draw, std::int64_t n) {
  return {draw.extent(2, 1, n - 2), n, draw.extent(n - 1, 2, n - 1)};
}
std::int64_t at(const Lengths& lengths, std::int64_t b) {
  return lengths[static_cast<std::size_t>(b)];
}

Array right_padding(const Lengths& lengths, std::int64_t n) {
  return mask_of({std::ssize(lengths), 1, 1, n},
                 [&](std::int64_t b, std::int64_t, std::int64_t j) { return j < at(lengths, b); });
}
Array right_decoder(const Lengths& lengths, std::int64_t n) {
  return mask_of(
      {std::ssize(lengths), 1, n, n},
      [&](std::int64_t b, std::int64_t i, std::int64_t j) { return j <= i && j < at(lengths, b); });
}

// ---- masks ----

void causal(Draw& draw) {
  const std::int64_t n = draw.extent(4, 3, 7);
  const auto with = [&](auto reads) {
    return mask_of({n, n},
                   [&](std::int64_t, std::int64_t i, std::int64_t j) { return reads(i, j); });
  };
  const Array right = causal_mask(n);
  std::vector<Mistake> mistakes{
      {"a query does not read its own token, but it must: i reads the keys 0 … i, and query 0 would "
       "read nothing",
       with([](auto i, auto j) { return j < i; })},
      {"a query reads one token after its own", with([](auto i, auto j) { return j <= i + 1; })},
      {"a query reads the later tokens instead of the earlier ones: row i is the query, column j the "
       "key",
       with([](auto i, auto j) { return j >= i; })},
      {"a query reads only the later tokens", with([](auto i, auto j) { return j > i; })},
      {"a query reads only its own token", with([](auto i, auto j) { return j == i; })}};
  require_mask(fmt::format("causal({})", n), chapter5::causal(n), right, mistakes);
}

void padding(Draw& draw) {
  const std::int64_t n = draw.extent(5, 4, 7);
  const Lengths some = lengths(draw, n);
  const Array right = right_padding(some, n);
  Lengths longer = some, shorter = some;
  for (std::int64_t& length : longer) ++length;
  for (std::int64_t& length : shorter) --length;
  std::vector<Mistake> mistakes{
      {"the first key of the padding is read: the tokens of a sequence are 0 … length − 1",
       right_padding(longer, n)},
      {"the last token of a sequence is hidden: its tokens are 0 … length − 1",
       right_padding(shorter, n)},
      {"the padding is at the beginning of each sequence, expected it at the end",
       mask_of(right.shape(), [&](std::int64_t b, std::int64_t, std::int64_t j) {
         return j >= n - at(some, b);
       })}};
  require_mask(fmt::format("padding({{{}}}, {}), with the axes sequence, head, query and key,",
                           fmt::join(some, ", "), n),
               chapter5::padding(some, n), right, mistakes);
}

void decoder_mask(Draw& draw) {
  const std::int64_t n = draw.extent(5, 4, 7);
  const Lengths some = lengths(draw, n);
  const Array right = right_decoder(some, n);
  const auto with = [&](auto reads) { return mask_of(right.shape(), reads); };
  std::vector<Mistake> mistakes{
      {"only the causal mask has an effect",
       with([](std::int64_t, std::int64_t i, std::int64_t j) { return j <= i; })},
      {"only the mask of the padding has an effect",
       with([&](std::int64_t b, std::int64_t, std::int64_t j) { return j < at(some, b); })},
      {"a key is hidden only if both masks hide it; it must be hidden if one of them does",
       with([&](std::int64_t b, std::int64_t i, std::int64_t j) {
         return j <= i || j < at(some, b);
       })},
      {"the rows of the padding are hidden, but the keys of the padding are the columns",
       with([&](std::int64_t b, std::int64_t i, std::int64_t j) {
         return j <= i && i < at(some, b);
       })}};
  require_mask(fmt::format("decoder_mask({{{}}}, {}), with the axes sequence, head, query and key,",
                           fmt::join(some, ", "), n),
               chapter5::decoder_mask(some, n), right, mistakes);
}

void packed(Draw& draw) {
  const Lengths some{2, draw.extent(3, 1, 4), draw.extent(1, 1, 3)};
  std::vector<std::int64_t> sequence;
  for (std::int64_t b = 0; b < std::ssize(some); ++b)
    sequence.insert(sequence.end(), at(some, b), b);
  const std::int64_t n = std::ssize(sequence);
  const auto same = [&](std::int64_t i, std::int64_t j) {
    return sequence[static_cast<std::size_t>(i)] == sequence[static_cast<std::size_t>(j)];
  };
  const auto with = [&](auto reads) {
    return mask_of({n, n},
                   [&](std::int64_t, std::int64_t i, std::int64_t j) { return reads(i, j); });
  };
  const Array right = with([&](auto i, auto j) { return same(i, j) && j <= i; });
  std::vector<Mistake> mistakes{{"a sequence reads the sequences before it: each begins anew",
                                 with([&](auto i, auto j) { return j <= i; })},
                                {"a query reads later tokens of its own sequence", with(same)},
                                {"a query does not read its own token",
                                 with([&](auto i, auto j) { return same(i, j) && j < i; })},
                                {"a query reads the later tokens instead of the earlier ones",
                                 with([&](auto i, auto j) { return same(i, j) && j >= i; })}};
  require_mask(fmt::format("packed({{{}}})", fmt::join(some, ", ")), chapter5::packed(some), right,
               mistakes);
}

// ---- softmax and attention with a mask ----

Array weights(const Array& z) {
  Array y = Array::full(z.shape(), 7);
  for (std::int64_t r = 0; r < z.rows(); ++r)
    chapter5::weights_of_row(z.row(r), z.cols(), y.row(r));
  return y;
}

void partly_masked_row(Draw& draw) {
  const std::int64_t n = draw.extent(5, 4, 8);
  Array z = draw.normal({3, n}, 2);
  z.row(0)[1] = z.row(1)[0] = z.row(1)[n - 1] = hidden;
  for (std::int64_t i = 1; i < n; ++i) z.row(2)[i] = hidden;
  const Array y = weights(z), right = heed::softmax(z).value();
  require_numbers("weights_of_row with some scores −∞", y,
                  "subtract the largest score, which is finite, before exp");
  Array equal(z.shape());
  for (std::int64_t i = 0; i < z.size(); ++i)
    equal.data()[i] = z.data()[i] == hidden ? 0 : z.data()[i];
  require_same("weights_of_row with some scores −∞", y, right,
               {{"−∞ counts as a score of 0; its exponential is 0, so its weight is 0",
                 heed::softmax(equal).value()}});
}

void fully_masked_row(Draw& draw) {
  const std::int64_t n = draw.extent(4, 2, 8);
  const Array y = weights(Array::full({1, n}, hidden));
  require_numbers("weights_of_row of a row of −∞ only", y,
                  "its maximum is −∞, and −∞ − (−∞) is NaN; expected zeros");
  require_same("weights_of_row of a row of −∞ only", y, Array::zeros({1, n}),
               {{"a row that sees nothing reads all keys alike; expected zeros",
                 Array::full({1, n}, 1 / static_cast<double>(n))},
                {"y is not written", Array::full({1, n}, 7)},
                {"the exponentials of 0 are not divided; expected zeros", Array::full({1, n}, 1)}});
}

struct Inputs {
  Array q, k, v, mask;
};
/// As many sequences as heads: a mask without an axis for the heads would broadcast to these scores.
Inputs inputs(Draw& draw) {
  const std::int64_t n = draw.extent(4, 3, 5), w = draw.extent(3, 2, 4), e = draw.extent(2, 2, 3);
  const Lengths some{2, n};
  return {draw.normal({2, 2, n, w}), draw.normal({2, 2, n, w}), draw.normal({2, 2, n, e}),
          right_decoder(some, n)};
}

void attention_with_mask(Draw& draw) {
  const Inputs x = inputs(draw);
  const double root = std::sqrt(static_cast<double>(x.q.cols()));
  const Array scores = scale(matmul(x.q, x.k, false, true), 1 / root).value(),
              open = with_values(x.mask, 1, 0);
  const auto times_v = [&](const Tensor& w) { return matmul(w, x.v).value(); };
  const Tensor product = mul(heed::softmax(scores), open);
  Array by_heads = x.mask.reshaped({2, x.q.shape()[2], x.q.shape()[2]});
  require_same(
      "masked_attend(q, k, v, mask)", chapter5::masked_attend(x.q, x.k, x.v, x.mask).value(),
      attention(x.q, x.k, x.v, x.mask).output.value(),
      {{"the mask has no effect", times_v(heed::softmax(scores))},
       {"the mask is applied after softmax: a hidden key has been counted in the sum of its row, so "
        "the weights do not sum to 1",
        times_v(product)},
       {"the scores are not divided by √w", times_v(heed::softmax(scale(scores, root), x.mask))},
       {"the scores are multiplied by 0 where they are hidden; a score of 0 has the weight of exp(0)",
        times_v(heed::softmax(mul(scores, open)))},
       {"the mask is transposed: its rows are the queries",
        times_v(heed::softmax(scores, transpose(x.mask).value()))},
       {"example b masks head b: the mask has no axis for the heads",
        times_v(heed::softmax(scores, by_heads))}});
}

/// Two queries of three keys, of which the second query reads none.
Array mask_with_empty_row() { return Array({{0, hidden, 0}, {hidden, hidden, hidden}}); }

void softmax_gradient(Draw& draw) {
  require_gradients(
      {"x"}, [](const Tensor& x) { return chapter5::masked_softmax(x, mask_with_empty_row()); },
      draw.normal({draw.extent(2, 2, 4), 2, 3}));
}

void attention_gradient(Draw& draw) {
  const Inputs x = inputs(draw);
  require_gradients(
      {"q", "k", "v"},
      [&](const Tensor& q, const Tensor& k, const Tensor& v) {
        return chapter5::masked_attend(q, k, v, x.mask);
      },
      x.q, x.k, x.v);
}

void gradient_of_empty_row(Draw& draw) {
  const Array q = draw.normal({2, 4}), k = draw.normal({3, 4}), v = draw.normal({3, 2});
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return chapter5::masked_attend(a, b, c, mask_with_empty_row());
  };
  const Tensor a = Tensor::variable(q), b = Tensor::variable(k), c = Tensor::variable(v);
  const Tensor y = f(a, b, c);
  require_numbers("the output of a query that reads nothing", y.value(),
                  "its weights sum to 0, so do not divide by their sum; expected zeros");
  require_same("the output of a query that reads nothing", y.value().sliced(1, 2),
               Array::zeros({1, v.cols()}));
  const Gradients g = backward(y, draw.normal(y.shape()));
  for (const auto& [name, x] : {std::pair("q", a), std::pair("k", b), std::pair("v", c)}) {
    const Array gradient = g[x];
    for (const double value : gradient.values())
      require(std::isfinite(value),
              fmt::format("the gradient of {} contains {}: one row that reads nothing spoils it",
                          name, value));
  }
  require_gradients({"q", "k", "v"}, f, q, k, v);
}

// ---- what a query does not depend on ----

void causality(Draw& draw) {
  const std::int64_t n = draw.extent(5, 3, 7), w = 4;
  const Array q = draw.normal({n, w}), k = draw.normal({n, w}), v = draw.normal({n, w});
  const Array before = chapter5::masked_attend(q, k, v, chapter5::causal(n)).value();
  for (std::int64_t changed = 0; changed < n; ++changed) {
    Array other_k = k.clone(), other_v = v.clone();
    for (std::int64_t c = 0; c < w; ++c) {
      other_k.row(changed)[c] += 3;
      other_v.row(changed)[c] -= 5;
    }
    const Array after = chapter5::masked_attend(q, other_k, other_v, chapter5::causal(n)).value();
    for (std::int64_t i = 0; i < n; ++i) {
      const bool same = close(before.sliced(i, i + 1), after.sliced(i, i + 1), exact);
      require(
          same == (i < changed),
          fmt::format("token {} changes, and row {} of causal attention {}", changed, i,
                      same ? "does not: it must read the token" : "does too: it must not read it"));
    }
  }
}

void padding_is_not_read(Draw& draw) {
  const Inputs x = inputs(draw);
  const std::int64_t n = x.q.shape()[2];
  const Array before = chapter5::masked_attend(x.q, x.k, x.v, chapter5::padding({2, n}, n)).value();
  Array k = x.k.clone(), v = x.v.clone();
  for (std::int64_t head = 0; head < 2; ++head)
    for (std::int64_t j = 2; j < n; ++j) k.at({0, head, j, 0}) = v.at({0, head, j, 0}) = 1000;
  require_same("attention with other values in the padding",
               chapter5::masked_attend(x.q, k, v, chapter5::padding({2, n}, n)).value(), before);
}

/// Rows [b, :length, :] of x [batch, 1, n, w], for all b.
Array rows_without_padding(const Array& x, const Lengths& lengths) {
  std::vector<double> rows;
  const std::int64_t n = x.shape()[2];
  for (std::int64_t b = 0; b < std::ssize(lengths); ++b)
    rows.insert(rows.end(), x.row(b * n), x.row(b * n) + at(lengths, b) * x.cols());
  return Array({std::ssize(rows) / x.cols(), x.cols()}, rows);
}

void packed_equals_padded(Draw& draw) {
  const std::int64_t n = draw.extent(5, 4, 6);
  const Lengths some = lengths(draw, n);
  const Shape shape{std::ssize(some), 1, n, 3};
  const Array q = draw.normal(shape), k = draw.normal(shape), v = draw.normal(shape);
  const Array padded = chapter5::masked_attend(q, k, v, chapter5::decoder_mask(some, n)).value();
  require_same("attention of packed sequences, compared with that of padded ones,",
               chapter5::masked_attend(rows_without_padding(q, some), rows_without_padding(k, some),
                                       rows_without_padding(v, some), chapter5::packed(some))
                   .value(),
               rows_without_padding(padded, some));
}

void extents_0_and_1(Draw& draw) {
  require_same("causal(0)", chapter5::causal(0), Array({0, 0}));
  require_same("causal(1)", chapter5::causal(1), Array::zeros({1, 1}));
  require_same("padding of a sequence without tokens", chapter5::padding({0}, 2),
               Array::full({1, 1, 1, 2}, hidden));
  require_same("packed of lengths 0, 1, 0", chapter5::packed({0, 1, 0}), Array::zeros({1, 1}));
  require_same("packed without sequences", chapter5::packed({}), Array({0, 0}));
  require_same("masked_softmax of an array of shape [2, 0]",
               chapter5::masked_softmax(Array({2, 0}), Array({2, 0})).value(), Array({2, 0}));
  const Array v = draw.normal({1, 3});
  require_same(
      "attention to one key",
      chapter5::masked_attend(draw.normal({1, 2}), draw.normal({1, 2}), v, chapter5::causal(1))
          .value(),
      v);
}

void in_time(Draw& draw) {
  const Array q = draw.normal({256, 32}), k = draw.normal({256, 32}), v = draw.normal({256, 32});
  require_within("causal attention of 256 rows of width 32", 0.3,
                 [&] { chapter5::masked_attend(q, k, v, chapter5::causal(256)); });
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "the causal mask", causal},
    {"values", "the mask of the padding", padding},
    {"values", "the mask of a decoder", decoder_mask},
    {"values", "the mask of packed sequences", packed},
    {"values", "a row with hidden keys", partly_masked_row},
    {"values", "a row that sees nothing", fully_masked_row},
    {"values", "attention with a mask", attention_with_mask},
    {"gradients", "masked softmax", softmax_gradient},
    {"gradients", "attention with a mask", attention_gradient},
    {"gradients", "a row that sees nothing", gradient_of_empty_row},
    {"properties", "causality", causality},
    {"properties", "padding is not read", padding_is_not_read},
    {"properties", "packed sequences give what padded ones give", packed_equals_padded},
    {"properties", "extents 0 and 1", extents_0_and_1},
    {"budgets", "a long sequence", in_time},
})
