// The check of chapter 4: split and join, multi-head attention against the reference Transformer, and
// its cost against the products that it executes.
#include "check.h"
#include "autograd/kernels/fast/gemm/product_log.h"
#include "exercise.h"
#include "nn/reference/transformer.h"

using namespace heed;
using namespace heed::course;
using chapter4::Cost;
using chapter4::Layer;

namespace {

/// Different numbers of rows, heads and columns, so that a confusion of two of them shows.
struct Extents {
  std::int64_t heads, n, m, width;
  std::int64_t d() const { return heads * width; }
};
Extents extents(Draw& draw) {
  return {draw.extent(3, 2, 4), draw.extent(5, 5, 6), draw.extent(7, 7, 8), draw.extent(2, 2, 3)};
}

struct Inputs {
  Array x, y;
  Layer layer;
};
Inputs inputs(Draw& draw, const Extents& e) {
  const std::int64_t d = e.d();
  return {draw.normal({e.n, d}),
          draw.normal({e.m, d}),
          {e.heads, draw.normal({3 * d, d}, 0.5), draw.normal({3 * d}), draw.normal({d, d}, 0.5),
           draw.normal({d})}};
}

Tensor reference_output(const Inputs& in) {
  Init init(0);
  reference::MultiHeadAttention layer({.d_model = in.x.cols(), .heads = in.layer.heads}, init);
  layer.in_proj_weight = in.layer.in_weight;
  layer.in_proj_bias = in.layer.in_bias;
  layer.out_proj.weight = in.layer.out_weight;
  layer.out_proj.bias = in.layer.out_bias;
  return layer(in.x, in.y);
}

Tensor split_right(const Tensor& x, std::int64_t heads) {
  return transpose(reshape(x, {x.shape()[0], heads, x.shape()[1] / heads}), 0, 1);
}
Tensor split_by_reshape(const Tensor& x, std::int64_t heads) {
  return reshape(x, {heads, x.shape()[0], x.shape()[1] / heads});
}
Tensor split_interleaved(const Tensor& x, std::int64_t heads) {  // column c to head c mod heads
  const std::int64_t rows = x.shape()[0], width = x.shape()[1] / heads;
  return transpose(transpose(reshape(x, {rows, width, heads}), 1, 2), 0, 1);
}
Tensor join_right(const Tensor& x) {
  return reshape(transpose(x, 0, 1), {x.shape()[1], x.shape()[0] * x.shape()[2]});
}
Tensor join_by_reshape(const Tensor& x) {
  return reshape(x, {x.shape()[1], x.shape()[0] * x.shape()[2]});
}

constexpr const char* only_reshaped =
    "the values keep their order in memory (a reshape alone), so a head gets rows instead of columns; "
    "the axes must be exchanged too";
constexpr const char* interleaved =
    "column c is in head c % heads, but a head is a block of adjacent columns: column c is in head "
    "c / width";

// ---- split and join ----

void split_values(Draw& draw) {
  const Extents e = extents(draw);
  const Array x = draw.normal({e.n, e.d()});
  require_same(fmt::format("split_values(x, {})", e.heads), chapter4::split_values(x, e.heads),
               split_right(x, e.heads).value(),
               {{only_reshaped, split_by_reshape(x, e.heads).value()},
                {interleaved, split_interleaved(x, e.heads).value()}});
}

void join_values(Draw& draw) {
  const Extents e = extents(draw);
  const Array x = draw.normal({e.heads, e.n, e.width});
  require_same("join_values(x)", chapter4::join_values(x), join_right(x).value(),
               {{"the values keep their order in memory (a reshape alone), so a row of the result "
                 "comes from one head; it must contain a part of every head",
                 join_by_reshape(x).value()},
                {"the columns of the heads alternate, but each head is a block of adjacent columns",
                 reshape(transpose(transpose(x, 0, 1), 1, 2), {e.n, e.d()}).value()}});
}

void inverse(Draw& draw) {
  const Extents e = extents(draw);
  const Array x = draw.normal({e.n, e.d()});
  require_same("join_values(split_values(x))",
               chapter4::join_values(chapter4::split_values(x, e.heads)), x);
}

void refused(Draw&) {
  for (const std::int64_t heads : {4, 0}) {
    std::string said;
    try {
      chapter4::split_values(Array::zeros({2, 6}), heads);
    } catch (const Error& error) {
      said = error.what();
    }
    require(said.find("divide") != std::string::npos,
            fmt::format("split_values of 6 columns into {} heads {}: expected an error that says "
                        "that {} heads do not divide 6",
                        heads, said.empty() ? "is accepted" : "says \"" + said + "\"", heads));
  }
}

/// The gradient of x for a random cotangent of f(x), compared with `expected(cotangent)`.
template <class F, class G>
void require_moved_back(const std::string& what, const Array& x, const Array& dy, const F& f,
                        const G& expected, const Array& reshaped) {
  const Tensor leaf = Tensor::variable(x);
  const Tensor y = f(leaf);
  const Gradients g = backward(y, dy);
  require(g.depends_on(leaf), what + " is missing");
  require_same(what, g[leaf], expected(dy).value(),
               {{"the values keep their order in memory (a reshape alone); each must return to the "
                 "place from which forward took it",
                 reshaped},
                {"the gradient is 0", Array::zeros(x.shape())}});
}

void split_gradient(Draw& draw) {
  const Extents e = extents(draw);
  const Array x = draw.normal({e.n, e.d()}), dy = draw.normal({e.heads, e.n, e.width});
  require_moved_back(
      "the gradient of split", x, dy, [&](const Tensor& t) { return chapter4::split(t, e.heads); },
      [](const Tensor& t) { return join_right(t); }, dy.reshaped(x.shape()));
  require_gradients(
      {"x"}, [&](const Tensor& t) { return chapter4::split(t, e.heads); }, x);
}

void join_gradient(Draw& draw) {
  const Extents e = extents(draw);
  const Array x = draw.normal({e.heads, e.n, e.width}), dy = draw.normal({e.n, e.d()});
  require_moved_back(
      "the gradient of join", x, dy, [](const Tensor& t) { return chapter4::join(t); },
      [&](const Tensor& t) { return split_right(t, e.heads); }, dy.reshaped(x.shape()));
  require_gradients(
      {"x"}, [](const Tensor& t) { return chapter4::join(t); }, x);
}

// ---- the layer ----

/// How a wrong layer differs from the right one.
struct Variant {
  const char* sentence = "";
  std::array<std::int64_t, 3> parts = {0, 1, 2};  ///< of in_weight, for q, k and v
  bool keys_from_x = false, values_from_x = false, in_bias = true, projected_twice = false;
  double scale = 1;  ///< of the scores, beside the right one
  Tensor (*split)(const Tensor&, std::int64_t) = split_right;
};

Tensor heads_of(const Inputs& in, const Variant& variant) {
  const Layer& layer = in.layer;
  const std::int64_t d = in.x.cols();
  const Tensor bias = variant.in_bias ? layer.in_bias : Tensor();
  const auto project = [&](Tensor rows, std::size_t i) {
    const std::int64_t part = variant.parts[i];
    for (int times = variant.projected_twice ? 2 : 1; times > 0; --times)
      rows = affine_rows(rows, layer.in_weight, bias, part * d, (part + 1) * d);
    return variant.split(rows, layer.heads);
  };
  const Tensor q = scale(project(in.x, 0), variant.scale),
               k = project(variant.keys_from_x ? in.x : in.y, 1),
               v = project(variant.values_from_x ? in.x : in.y, 2);
  return attention(q, k, v).output;
}

std::vector<Variant> wrong_layers(const Layer& layer, std::int64_t d) {
  const double root = std::sqrt(static_cast<double>(layer.heads)),
               width = std::sqrt(static_cast<double>(d / layer.heads));
  std::vector<Variant> wrong{
      {.sentence =
           "the scores are divided by √d instead of √(d / heads), the root of a head's width",
       .scale = 1 / root},
      {.sentence = "the scores are not divided by √(d / heads)", .scale = width},
      {.sentence = "the scores are divided by √(d / heads) twice: heed::attention already does it",
       .scale = 1 / width},
      {.sentence = "in_bias is not added", .in_bias = false},
      {.sentence = "the rows are projected twice: W_iQ, W_iK and W_iV apply to x and y themselves",
       .projected_twice = true},
      {.sentence = only_reshaped, .split = split_by_reshape},
      {.sentence = interleaved, .split = split_interleaved},
      {.sentence = "queries use the rows of the keys in in_weight, and keys those of the queries",
       .parts = {1, 0, 2}},
      {.sentence = "keys use the rows of the values in in_weight, and values those of the keys",
       .parts = {0, 2, 1}},
      {.sentence = "queries use the rows of the values in in_weight", .parts = {2, 1, 0}},
      {.sentence = "queries, keys and values all use the first d rows of in_weight",
       .parts = {0, 0, 0}}};
  return wrong;
}

void require_heads(const Inputs& in) {
  std::vector<Variant> wrong = wrong_layers(in.layer, in.x.cols());
  wrong.push_back({.sentence = "keys and values come from x instead of y",
                   .keys_from_x = true,
                   .values_from_x = true});
  if (in.x.shape() == in.y.shape()) {
    wrong.push_back({.sentence = "keys come from x instead of y", .keys_from_x = true});
    wrong.push_back({.sentence = "values come from x instead of y", .values_from_x = true});
  }
  std::vector<Mistake> mistakes;
  for (const Variant& variant : wrong)
    mistakes.push_back({variant.sentence, heads_of(in, variant).value()});
  require_same("heads_of(x, y, layer)", chapter4::heads_of(in.x, in.y, in.layer).value(),
               heads_of(in, {}).value(), mistakes);
}

void heads_of_equal_extents(Draw& draw) {
  Extents e = extents(draw);
  e.m = e.n;
  require_heads(inputs(draw, e));
}

void heads(Draw& draw) { require_heads(inputs(draw, extents(draw))); }

void output(Draw& draw) {
  const Extents e = extents(draw);
  const Inputs in = inputs(draw, e);
  const Layer& layer = in.layer;
  const Tensor heads = heads_of(in, {}), joined = join_right(heads);
  std::vector<Mistake> mistakes{
      {"these are the joined heads: W_O is missing", joined.value()},
      {"out_bias is not added", affine(joined, layer.out_weight).value()},
      {"out_weight is not transposed: heed::affine multiplies by the transposed weight",
       add(matmul(joined, layer.out_weight), layer.out_bias).value()},
      {"the heads are joined by a reshape alone; the axes must be exchanged first",
       affine(join_by_reshape(heads), layer.out_weight, layer.out_bias).value()}};
  for (const Variant& variant : wrong_layers(layer, e.d()))
    mistakes.push_back(
        {variant.sentence,
         affine(join_right(heads_of(in, variant)), layer.out_weight, layer.out_bias).value()});
  require_same("multi_head(x, y, layer)", chapter4::multi_head(in.x, in.y, layer).value(),
               reference_output(in).value(), mistakes);
}

void one_head(Draw& draw) {
  Extents e = extents(draw);
  e.heads = 1;
  const Inputs in = inputs(draw, e);
  require_same("multi_head with one head", chapter4::multi_head(in.x, in.y, in.layer).value(),
               reference_output(in).value());
}

void layer_gradients(Draw& draw) {
  const Extents e = extents(draw);
  const Inputs in = inputs(draw, e);
  require_gradients(
      {"x", "y", "in_weight", "in_bias", "out_weight", "out_bias"},
      [&](const Tensor& x, const Tensor& y, const Tensor& in_weight, const Tensor& in_bias,
          const Tensor& out_weight, const Tensor& out_bias) {
        return chapter4::multi_head(x, y, {e.heads, in_weight, in_bias, out_weight, out_bias});
      },
      in.x, in.y, in.layer.in_weight.value(), in.layer.in_bias.value(), in.layer.out_weight.value(),
      in.layer.out_bias.value());
}

// ---- shares ----

void share(Draw& draw) {
  const Extents e = extents(draw);
  const Array heads = draw.normal({e.heads, e.n, e.width}), weight = draw.normal({e.d(), e.d()});
  for (std::int64_t i = 0; i < e.heads; ++i) {
    const Tensor head = Tensor(heads)[i];
    const std::int64_t begin = i * e.width, end = begin + e.width;
    require_same(
        fmt::format("share_of(heads, out_weight, {})", i), chapter4::share_of(heads, weight, i),
        matmul(head, slice(weight, 1, begin, end), false, true).value(),
        {{"the part of the head consists of rows of out_weight; but out_weight is W_Oᵀ, so it "
          "consists of columns",
          matmul(head, slice(weight, 0, begin, end)).value()},
         {"every head is multiplied by the first columns of out_weight",
          matmul(head, slice(weight, 1, 0, e.width), false, true).value()},
         {"this is the share of head 0",
          matmul(Tensor(heads)[0], slice(weight, 1, 0, e.width), false, true).value()}});
  }
}

void shares_sum_to_output(Draw& draw) {
  const Extents e = extents(draw);
  const Inputs in = inputs(draw, e);
  const Array heads = chapter4::heads_of(in.x, in.y, in.layer).value();
  Tensor sum = in.layer.out_bias;
  for (std::int64_t i = 0; i < e.heads; ++i)
    sum = add(sum, chapter4::share_of(heads, in.layer.out_weight.value(), i));
  require_same("multi_head(x, y, layer), compared with the sum of the shares and the bias,",
               chapter4::multi_head(in.x, in.y, in.layer).value(), sum.value());
}

// ---- cost ----

/// The numbers that known mistakes give. `right` is n_heads times the cost of a head, plus W_O.
std::string cause_of_parameters(std::int64_t value, std::int64_t d, std::int64_t heads) {
  const std::int64_t right = 4 * (d * d + d);
  if (value == 4 * d * d) return ": the biases are missing";
  if (value == right - d) return ": the bias of W_O is missing";
  if (value == right - d * d - d) return ": W_O and its bias are missing";
  if (value == right - 3 * d) return ": the biases of the heads are missing";
  if (value == heads * 3 * (d * d + d) + d * d + d)
    return ": each head has matrices [d, d], but its W_iQ, W_iK and W_iV are [d, d / heads]";
  if (value == right + (heads - 1) * (d * d + d)) return ": W_O is counted for each head";
  if (value == 3 * (d * (d / heads) + d / heads) + d * d + d) return ": only one head is counted";
  return "";
}

std::string cause_of_flops(double value, double n, double m, double d, double heads) {
  const double projections = 2 * (n + 2 * m) * d * d, products = 4 * n * m * d, out = 2 * n * d * d;
  const double right = projections + products + out;
  if (value == right / 2) return ": a product of [a, b] and [b, c] takes 2 a b c FLOPs, not a b c";
  if (value == right - projections / 2 || value == right - out / 2)
    return ": some of the products are counted with a b c FLOPs, not 2 a b c";
  if (value == 6 * n * d * d + products + out)
    return ": keys and values are projected for the m rows of y, not for the n rows of x";
  if (value == right - out) return ": the product with W_O is missing";
  if (value == right - products) return ": the scores and the weights times the values are missing";
  if (value == right - products / 2) return ": one of the two products Q Kᵀ and P V is missing";
  if (value == projections + out + heads * products)
    return ": the scores of a head take 2 n m (d / heads) FLOPs, because its width is d / heads";
  if (value == heads * projections + heads * products + out ||
      value == heads * projections + products + out)
    return ": each head is counted with the whole width d, but its width is d / heads";
  if (value == right + (heads - 1) * out) return ": the product with W_O is counted for each head";
  return "";
}

void cost(Draw& draw) {
  const Extents e = extents(draw);
  const std::int64_t d = e.d();
  const Cost counted = chapter4::cost_of(e.n, e.m, d, e.heads);
  const Inputs in = inputs(draw, e);
  Init init(0);
  std::int64_t parameters = 0;
  const reference::MultiHeadAttention layer({.d_model = d, .heads = e.heads}, init);
  for (const NamedTensor& p : layer.parameters()) parameters += p.tensor.value().size();
  const std::string of = fmt::format("cost_of({}, {}, {}, {})", e.n, e.m, d, e.heads);
  require(counted.parameters == parameters,
          fmt::format("{} has {} parameters, expected {}{}", of, counted.parameters, parameters,
                      cause_of_parameters(counted.parameters, d, e.heads)));
  kernels::ProductFlops executed;
  {
    const kernels::ProductLog log(executed);
    chapter4::multi_head(in.x, in.y, in.layer);
  }
  const double flops = static_cast<double>(counted.flops);
  require(flops == executed.executed,
          fmt::format("{} has {:.0f} FLOPs, but the products that your multi_head executes take "
                      "{:.0f}{}",
                      of, flops, executed.executed,
                      cause_of_flops(flops, static_cast<double>(e.n), static_cast<double>(e.m),
                                     static_cast<double>(d), static_cast<double>(e.heads))));
}

void cost_without_heads(Draw& draw) {
  const std::int64_t n = draw.extent(5, 3, 7), d = 48;
  const Cost one = chapter4::cost_of(n, n, d, 1);
  for (const std::int64_t heads : {2, 3, 4, 8, 16, 48}) {
    const Cost many = chapter4::cost_of(n, n, d, heads);
    require(
        many.parameters == one.parameters && many.flops == one.flops,
        fmt::format("cost_of counts {} parameters and {} FLOPs for 1 head, but {} and {} for {} "
                    "heads: neither depends on the number of heads",
                    one.parameters, one.flops, many.parameters, many.flops, heads));
  }
}

void executed_without_heads(Draw& draw) {
  double one = 0;
  for (const std::int64_t heads : {1, 2, 4, 12}) {
    const Inputs in = inputs(draw, {.heads = heads, .n = 5, .m = 6, .width = 12 / heads});
    kernels::ProductFlops executed;
    const kernels::ProductLog log(executed);
    chapter4::multi_head(in.x, in.y, in.layer);
    if (heads == 1) one = executed.executed;
    require(
        executed.executed == one,
        fmt::format("multi_head of width 12 executes products of {:.0f} FLOPs with 1 head and of "
                    "{:.0f} with {}: does a head compute more than its own columns?",
                    one, executed.executed, heads));
  }
}

// ---- properties ----

/// The blocks of rows or columns of a weight in reverse order.
Array reversed(const Array& x, std::int64_t blocks) {
  const std::int64_t rows = x.rows() / blocks, size = rows * x.cols();
  Array y(x.shape());
  for (std::int64_t i = 0; i < blocks; ++i)
    std::copy_n(x.data() + i * size, size, y.data() + (blocks - 1 - i) * size);
  return y;
}

void order_of_heads(Draw& draw) {
  const Extents e = extents(draw);
  Inputs in = inputs(draw, e);
  const Array before = chapter4::multi_head(in.x, in.y, in.layer).value();
  const std::int64_t d = e.d();
  const Array weight = in.layer.in_weight.value(), bias = in.layer.in_bias.value();
  Array new_weight(weight.shape()), new_bias(bias.shape());
  for (std::int64_t part = 0; part < 3; ++part) {
    const Array rows = reversed(weight.sliced(part * d, (part + 1) * d), e.heads),
                entries = reversed(bias.sliced(part * d, (part + 1) * d).reshaped({d, 1}), e.heads);
    std::copy_n(rows.data(), rows.size(), new_weight.row(part * d));
    std::copy_n(entries.data(), d, new_bias.data() + part * d);
  }
  in.layer.in_weight = new_weight;
  in.layer.in_bias = new_bias;
  in.layer.out_weight =
      transpose(reversed(transpose(in.layer.out_weight).value(), e.heads)).value();
  require_same("multi_head with the heads in reverse order",
               chapter4::multi_head(in.x, in.y, in.layer).value(), before);
}

void extents_0_and_1(Draw& draw) {
  require_same("split_values of an array of shape [0, 6]", chapter4::split_values(Array({0, 6}), 3),
               Array({3, 0, 2}));
  require_same("join_values of an array of shape [3, 0, 2]",
               chapter4::join_values(Array({3, 0, 2})), Array({0, 6}));
  const Array x = draw.normal({1, 4});
  require_same("split_values of one row into heads of width 1", chapter4::split_values(x, 4),
               x.reshaped({4, 1, 1}));
  const Inputs in = inputs(draw, {.heads = 2, .n = 0, .m = 3, .width = 2});
  require_same("multi_head of no queries", chapter4::multi_head(in.x, in.y, in.layer).value(),
               Array({0, 4}));
}

void in_time(Draw& draw) {
  const Array x = draw.normal({512, 256});
  require_within("split_values and join_values of an array of shape [512, 256]", 0.3,
                 [&] { chapter4::join_values(chapter4::split_values(x, 8)); });
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "split", split_values},
    {"values", "heads that do not divide the width are refused", refused},
    {"values", "join", join_values},
    {"values", "heads of as many queries as keys", heads_of_equal_extents},
    {"values", "heads", heads},
    {"values", "multi-head attention", output},
    {"values", "the share of a head", share},
    {"values", "parameters and FLOPs", cost},
    {"gradients", "split", split_gradient},
    {"gradients", "join", join_gradient},
    {"gradients", "multi-head attention", layer_gradients},
    {"properties", "join is the inverse of split", inverse},
    {"properties", "one head", one_head},
    {"properties", "the shares sum to the output", shares_sum_to_output},
    {"properties", "the order of heads does not matter", order_of_heads},
    {"properties", "heads change neither parameters nor FLOPs", cost_without_heads},
    {"properties", "heads do not change the products that are executed", executed_without_heads},
    {"properties", "extents 0 and 1", extents_0_and_1},
    {"budgets", "a large array", in_time},
})
