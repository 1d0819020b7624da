/// Calls of every op (a test compares the list with the headers). Operands are read in separate
/// statements: compilers evaluate the arguments of a call in different orders, and a corpus must
/// have the same meaning with each of them.
#include <array>

#include "tests/fuzz/operands.h"

HEED_BEGIN

namespace graphs {
namespace {

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

template <Unary op>
Tensor unary(Operands& o) {
  return op(o.tensor());
}

template <Binary op>
Tensor binary(Operands& o) {
  const Tensor a = o.tensor(), b = o.tensor();
  return op(a, b);
}

template <Tensor (*op)(const Tensor&, int, bool)>
Tensor reduction(Operands& o) {
  const Tensor x = o.tensor();
  const bool all = o.flag(), keep = o.flag();
  return op(x, all ? all_axes : o.axis(), keep);
}

Tensor call_scale(Operands& o) {
  const Tensor x = o.tensor();
  return scale(x, static_cast<real>(o.axis()));
}
Tensor call_reshape(Operands& o) {
  const Tensor x = o.tensor();
  return reshape(x, o.shape());
}
Tensor call_transpose(Operands& o) {
  const Tensor x = o.tensor();
  const int a = o.axis(), b = o.axis();
  return transpose(x, a, b);
}
Tensor call_slice(Operands& o) {
  const Tensor x = o.tensor();
  const int axis = o.axis();
  const std::int64_t begin = o.extent(), end = o.extent();
  return slice(x, axis, begin, end);
}
Tensor call_concat(Operands& o) {
  // The operands within braces are evaluated in order.
  const std::array<Tensor, 3> parts = {o.tensor(), o.tensor(), o.tensor()};
  const auto count = static_cast<std::size_t>(o.extent()) % 4;
  return concat(std::span(parts).first(count), o.axis());
}
Tensor call_matmul(Operands& o) {
  const Tensor a = o.tensor(), b = o.tensor();
  const bool trans_a = o.flag(), trans_b = o.flag();
  return matmul(a, b, trans_a, trans_b);
}
Tensor call_affine(Operands& o) {
  const Tensor x = o.tensor(), weight = o.tensor(), bias = o.tensor();
  return affine(x, weight, bias);
}
Tensor call_affine_rows(Operands& o) {
  const Tensor x = o.tensor(), weight = o.tensor(), bias = o.tensor();
  const std::int64_t begin = o.extent(), end = o.extent();
  return affine_rows(x, weight, bias, begin, end);
}
Tensor call_affine_activation(Operands& o) {
  const UnaryFunction f = o.unary_function();
  const Tensor x = o.tensor(), weight = o.tensor(), bias = o.tensor();
  const real p = o.probability();
  return affine_activation(f, x, weight, bias, p, o.key());
}
Tensor call_softmax(Operands& o) {
  const Tensor x = o.tensor();
  return softmax(x, o.mask());
}
Tensor call_log_softmax(Operands& o) {
  const Tensor x = o.tensor();
  return log_softmax(x, o.mask());
}
Tensor call_batch_norm(Operands& o) {
  const Tensor x = o.tensor(), gain = o.tensor(), bias = o.tensor();
  return batch_norm(x, gain, bias);
}
Tensor call_layer_norm(Operands& o) {
  const Tensor x = o.tensor(), gain = o.tensor(), bias = o.tensor();
  return layer_norm(x, gain, bias);
}
Tensor call_rms_norm(Operands& o) {
  const Tensor x = o.tensor(), gain = o.tensor();
  return rms_norm(x, gain);
}
Tensor call_where(Operands& o) {
  const Array condition = o.mask();
  const Tensor a = o.tensor(), b = o.tensor();
  return where(condition, a, b);
}
Tensor call_pow(Operands& o) {
  const Tensor x = o.tensor();
  return pow(x, static_cast<real>(o.axis()));
}
Tensor call_clamp(Operands& o) {
  const Tensor x = o.tensor();
  const auto low = static_cast<real>(o.axis()), high = static_cast<real>(o.axis());
  return clamp(x, low, high);
}
Tensor call_gated(Operands& o) {
  const UnaryFunction f = o.unary_function();
  return gated(f, o.tensor());
}
Tensor call_rotary(Operands& o) {
  const Tensor x = o.tensor();
  RotaryOptions options;
  options.size = o.extent();
  options.columns = o.extent();
  if (o.flag()) options.pairs = RotaryPairs::adjacent;
  return rotary(x, o.ids(), options);
}
Tensor call_linear_attention(Operands& o) {
  const Tensor x = o.tensor();
  const auto offsets = o.offsets();
  const bool causal = o.flag();
  return linear_attention(x, offsets, causal, o.attention());
}
Tensor call_cumsum(Operands& o) {
  const Tensor x = o.tensor();
  return cumsum(x, o.axis());
}
Tensor call_stack(Operands& o) {
  // The operands within braces are evaluated in order.
  const std::array<Tensor, 3> parts = {o.tensor(), o.tensor(), o.tensor()};
  const auto count = static_cast<std::size_t>(o.extent()) % 4;
  return stack(std::span(parts).first(count), o.axis());
}
Tensor call_permute(Operands& o) {
  const Tensor x = o.tensor();
  const std::array<int, 4> axes = {o.axis(), o.axis(), o.axis(), o.axis()};
  const auto count = static_cast<std::size_t>(o.extent()) % 5;
  return permute(x, std::span(axes).first(count));
}
Tensor call_broadcast_to(Operands& o) {
  const Tensor x = o.tensor();
  return broadcast_to(x, o.shape());
}
Tensor call_einsum(Operands& o) {
  const auto equations =
      std::to_array<const char*>({"ij,jk->ik", "ij,kj->ki", "bij,bjk->bik", "i,i->", "i,j->ji",
                                  "ij,j->", "ij,kl->jl", "ii,i->i"});
  const auto equation = static_cast<std::size_t>(o.extent()) % equations.size();
  const Tensor a = o.tensor(), b = o.tensor();
  return einsum(equations[equation], {a, b});
}
Tensor call_index_select(Operands& o) {
  const Tensor x = o.tensor();
  return index_select(x, o.ids());
}
Tensor call_scatter_add(Operands& o) {
  const Tensor x = o.tensor();
  const auto ids = o.ids();
  return scatter_add(x, ids, o.extent());
}
Tensor call_gather(Operands& o) {
  const Tensor x = o.tensor();
  return gather(x, o.ids());
}
Tensor call_embedding(Operands& o) {
  const Tensor table = o.tensor();
  return embedding(table, o.ids());
}
Tensor call_dropout(Operands& o) {
  const Tensor x = o.tensor();
  const real p = o.probability();
  return dropout(x, p, o.key());
}
Tensor call_dropout_add(Operands& o) {
  const Tensor x = o.tensor(), residual = o.tensor();
  const real p = o.probability();
  return dropout_add(x, residual, p, o.key());
}
Tensor call_attention(Operands& o) {
  const Tensor q = o.tensor(), k = o.tensor(), v = o.tensor();
  return attention(q, k, v, o.mask()).output;
}
Tensor call_self_attention(Operands& o) {
  const Tensor qkv = o.tensor();
  const auto offsets = o.offsets();
  return self_attention(qkv, offsets, o.attention());
}
Tensor call_cross_attention(Operands& o) {
  const Tensor q = o.tensor(), kv = o.tensor();
  const auto query_offsets = o.offsets(), key_offsets = o.offsets();
  return cross_attention(q, kv, query_offsets, key_offsets, o.attention());
}
template <Tensor (*op)(const Tensor&, const Tensor&, const Tensor&, std::span<const std::int32_t>,
                       bool)>
Tensor recurrence(Operands& o) {
  const Tensor x = o.tensor(), weight = o.tensor(), bias = o.tensor();
  const auto offsets = o.offsets();
  return op(x, weight, bias, offsets, o.flag());
}
Tensor call_unfold(Operands& o) {
  const Tensor x = o.tensor();
  const auto offsets = o.offsets();
  UnfoldWindow window{.width = o.extent(), .before = o.extent()};
  if (o.flag()) {
    window.stride = o.extent();
    window.height = o.extent();
    window.above = o.extent();
    window.line = o.extent();
  }
  return unfold(x, offsets, window);
}
Tensor call_cross_entropy(Operands& o) {
  const Tensor logits = o.tensor();
  const auto targets = o.ids();
  const real smoothing = o.probability();
  LossCounts counts;
  return cross_entropy(logits, targets, smoothing, o.divisor(), &counts);
}
Tensor call_projected_cross_entropy(Operands& o) {
  const Tensor x = o.tensor(), weight = o.tensor(), bias = o.tensor();
  const auto targets = o.ids();
  const real smoothing = o.probability();
  return projected_cross_entropy(x, weight, bias, targets, smoothing, o.divisor());
}
Tensor call_rdrop_cross_entropy(Operands& o) {
  const Tensor x = o.tensor(), weight = o.tensor(), bias = o.tensor();
  const auto targets = o.ids();
  const real smoothing = o.probability(), alpha = o.probability();
  return rdrop_cross_entropy(x, weight, bias, targets, smoothing, alpha, o.divisor());
}
Tensor call_distilled_cross_entropy(Operands& o) {
  const Tensor x = o.tensor(), weight = o.tensor(), bias = o.tensor();
  const auto targets = o.ids();
  const Array rows = o.tensor().value(), matrix = o.tensor().value();
  const real smoothing = o.probability();
  const TeacherLogits teacher{rows, matrix, {}, o.probability(), 2};
  return distilled_cross_entropy(x, weight, bias, targets, smoothing, teacher, o.divisor());
}

constexpr auto calls = std::to_array<OpCall>({
    {"add", true, binary<add>},
    {"sub", true, binary<sub>},
    {"mul", true, binary<mul>},
    {"div", false, binary<div>},
    {"scale", true, call_scale},
    {"neg", true, unary<neg>},
    {"exp", false, unary<exp>},
    {"log", false, unary<log>},
    {"sqrt", false, unary<sqrt>},
    {"tanh", true, unary<tanh>},
    {"relu", true, unary<relu>},
    {"gelu", true, unary<gelu>},
    {"gelu_tanh", true, unary<gelu_tanh>},
    {"sigmoid", true, unary<sigmoid>},
    {"silu", true, unary<silu>},
    {"sum", true, reduction<sum>},
    {"mean", true, reduction<mean>},
    {"reshape", true, call_reshape},
    {"transpose", true, call_transpose},
    {"slice", true, call_slice},
    {"concat", true, call_concat},
    {"matmul", true, call_matmul},
    {"affine", true, call_affine},
    {"affine_rows", true, call_affine_rows},
    {"affine_activation", true, call_affine_activation},
    {"softmax", true, call_softmax},
    {"log_softmax", false, call_log_softmax},  // masked entries are -inf
    {"layer_norm", true, call_layer_norm},
    {"batch_norm", true, call_batch_norm},
    {"rms_norm", true, call_rms_norm},
    {"embedding", true, call_embedding},
    {"dropout", true, call_dropout},
    {"dropout_add", true, call_dropout_add},
    {"attention", true, call_attention},
    {"self_attention", true, call_self_attention},
    {"cross_attention", true, call_cross_attention},
    {"cross_entropy", true, call_cross_entropy},
    {"projected_cross_entropy", true, call_projected_cross_entropy},
    {"rdrop_cross_entropy", true, call_rdrop_cross_entropy},
    {"distilled_cross_entropy", true, call_distilled_cross_entropy},
    {"maximum", true, binary<maximum>},
    {"minimum", true, binary<minimum>},
    {"where", true, call_where},
    {"softplus", true, unary<softplus>},
    {"abs", true, unary<abs>},
    {"sin", true, unary<sin>},
    {"cos", true, unary<cos>},
    {"pow", false, call_pow},
    {"clamp", true, call_clamp},
    {"gated", true, call_gated},
    {"rotary", true, call_rotary},
    {"linear_attention", false, call_linear_attention},
    {"max", true, reduction<max>},
    {"min", true, reduction<min>},
    {"log_sum_exp", true, reduction<log_sum_exp>},
    {"cumsum", true, call_cumsum},
    {"stack", true, call_stack},
    {"permute", true, call_permute},
    {"broadcast_to", true, call_broadcast_to},
    {"einsum", true, call_einsum},
    {"index_select", true, call_index_select},
    {"scatter_add", true, call_scatter_add},
    {"gather", true, call_gather},
    {"lstm", false, recurrence<lstm>},  // gradients may grow with every step
    {"gru", false, recurrence<gru>},
    {"unfold", true, call_unfold},
});

}  // namespace

std::span<const OpCall> op_calls() { return calls; }

}  // namespace graphs

HEED_END
