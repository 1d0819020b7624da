#include "train/exchange/onnx/layers.h"

#include <fmt/format.h>

#include <cmath>

#include "autograd/base/error.h"
#include "autograd/ops/more/attention/alibi.h"
#include "autograd/ops/more/attention/distance_bias.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"

HEED_BEGIN

namespace {

/// Replaces the scores of keys that a query does not read. Finite, so that a query of the padding, which
/// reads no key, has weights.
constexpr double unread_score = -1e30;

std::vector<float> values_of(const Array& array) {
  return {array.data(), array.data() + array.size()};
}

}  // namespace

OnnxStack::OnnxStack(OnnxBuilder& builder, const ModelOptions& options, BlockKind kind,
                     std::string positions, std::int64_t limit)
    : b_(builder),
      o_(options),
      kind_(kind),
      positions_(std::move(positions)),
      limit_(limit),
      size_(options.d_model / options.heads),
      kv_heads_(options.attention.kv_heads == 0 ? options.heads : options.attention.kv_heads) {}

// ---- positions ---------------------------------------------------------------------------------

void OnnxStack::place(OnnxSequences& s, const OnnxValue& mask, const OnnxValue& past) {
  const bool causal = kind_ != BlockKind::encoder;
  OnnxValue keys;  // positions of the keys
  if (mask.empty()) {
    keys = b_.unsqueeze(b_.range(past.empty() ? s.length : b_.add(past, s.length)), {0});
  } else {
    keys = b_.sub(b_.op("CumSum", {mask, b_.integer(1)}), b_.integer(1));
    s.visible = b_.unsqueeze(b_.cast(mask, DType::boolean), {1, 2});
  }
  s.positions = past.empty() ? keys : b_.slice(keys, 1, past);
  s.distances = b_.sub(b_.unsqueeze(s.positions, {2}), b_.unsqueeze(keys, {1}));
  const auto require = [&](const char* op, std::int64_t distance) {
    const OnnxValue met = b_.unsqueeze(b_.op(op, {s.distances, b_.integer(distance)}), {1});
    s.visible = s.visible.empty() ? met : b_.op("And", {s.visible, met});
  };
  if (causal) require("GreaterOrEqual", 0);
  if (o_.attention.pattern == PatternKind::window) {
    require("Less", o_.attention.window);
    if (!causal) require("Greater", -o_.attention.window);
  }
}

OnnxValue OnnxStack::positioned(const OnnxValue& rows, const OnnxSequences& s) {
  if (o_.positions == PositionKind::learned) {
    const std::string table = positions_ + ".weight";
    const std::int64_t last = b_.shape_of_weight(table)[0] - 1;
    return b_.add(rows, b_.lookup(table, b_.clamp(s.positions, 0, last)));
  }
  if (o_.positions != PositionKind::sinusoidal) return rows;
  const OnnxValue table =
      b_.numbers(values_of(sinusoids(0, limit_, o_.d_model)), {limit_, o_.d_model});
  return b_.add(rows, b_.gather(table, b_.clamp(s.positions, 0, limit_ - 1)));
}

/// The cosines and sines of the rows' positions: [batch or 1, 1, length, …] (rotary.h).
void OnnxStack::make_turns(const OnnxSequences& s) {
  const std::int64_t half = size_ / 2;
  const RotaryOptions options{
      .size = size_, .columns = size_, .pairs = RotaryPairs::halves, .base = o_.rotary_base};
  std::vector<float> cosines, sines;  // [positions, half]
  for (std::int64_t p = 0; p < limit_; ++p) {
    std::vector<double> head(static_cast<std::size_t>(size_), 0.0);
    std::fill_n(head.begin(), half, 1.0);  // (1, 0) rotated by θ is (cos θ, sin θ)
    rotate_head(head.data(), p, 1, options);
    cosines.insert(cosines.end(), head.begin(), head.begin() + half);
    sines.insert(sines.end(), head.begin() + half, head.end());
  }
  const OnnxValue at = b_.clamp(s.positions, 0, limit_ - 1);
  const auto turns = [&](const std::vector<float>& table) {
    return b_.unsqueeze(b_.gather(b_.numbers(table, {limit_, half}), at), {1, pair_axis()});
  };
  cosine_ = turns(cosines);
  sine_ = turns(sines);
}

/// [batch, heads, length, size] with each pair of a head rotated by its position.
OnnxValue OnnxStack::rotated(const OnnxValue& x, const OnnxSequences& s) {
  if (o_.positions != PositionKind::rotary) return x;
  if (cosine_.empty()) make_turns(s);
  const std::int64_t axis = pair_axis(), half = size_ / 2;
  std::vector<OnnxDimension> pairs(5, std::int64_t{0});  // a head is [2, half] or [half, 2]
  pairs[3] = axis == 3 ? std::int64_t{2} : half;
  pairs[4] = axis == 3 ? half : std::int64_t{2};
  const auto ab = b_.split(b_.reshape(x, pairs), axis, {1, 1});
  const OnnxValue a = b_.sub(b_.mul(ab[0], cosine_), b_.mul(ab[1], sine_)),
                  b = b_.add(b_.mul(ab[1], cosine_), b_.mul(ab[0], sine_));
  return b_.reshape(b_.op("Concat", {a, b}, {{"axis", axis}}),
                    {std::int64_t{0}, std::int64_t{0}, std::int64_t{0}, size_});
}

/// scores + ⟨q_i, R[i − j]⟩ (relative_keys.h), where the rows of R are the keys of the distances from
/// `first` on.
OnnxValue OnnxStack::distance_keys(const OnnxValue& q, const OnnxValue& table, std::int64_t first,
                                   std::int64_t rows, const OnnxValue& scores,
                                   const OnnxSequences& s) {
  const OnnxValue keys = b_.transpose(b_.reshape(table, {rows, o_.heads, size_}), {1, 2, 0});
  const OnnxValue row = b_.clamp(b_.sub(s.distances, b_.integer(first)), 0, rows - 1);
  const OnnxValue of_each_head =
      b_.op("Expand", {b_.unsqueeze(row, {1}), b_.op("Shape", {scores})});
  return b_.add(scores, b_.op("GatherElements", {b_.matmul(q, keys), of_each_head},
                              {{"axis", std::int64_t{3}}}));
}

/// `q` is already multiplied by the scale.
OnnxValue OnnxStack::with_terms(OnnxValue scores, const OnnxValue& q, const OnnxSequences& s,
                                const std::string& positions) {
  if (s.bias) scores = s.bias(scores);
  if (positions.empty()) return scores;
  const bool causal = kind_ != BlockKind::encoder;
  const std::string table = positions + ".weight";
  switch (o_.positions) {
    case PositionKind::alibi: {
      std::vector<float> slopes;
      for (std::int64_t head = 0; head < o_.heads; ++head)
        slopes.push_back(-Alibi::slope(head, o_.heads));
      const OnnxValue length = b_.cast(b_.op("Abs", {b_.unsqueeze(s.distances, {1})}), DType::f32);
      return b_.add(scores, b_.mul(length, b_.numbers(slopes, {1, o_.heads, 1, 1})));
    }
    case PositionKind::relative_t5: {
      const std::int64_t far = o_.t5_distance, first = causal ? 0 : -far;
      const DistanceBias bias(Tensor(Array({o_.t5_buckets, o_.heads})), causal, far);
      std::vector<std::int64_t> buckets;
      for (std::int64_t distance = first; distance <= far; ++distance)
        buckets.push_back(bias.bucket(distance));
      const OnnxValue row = b_.sub(b_.clamp(s.distances, first, far), b_.integer(first));
      const OnnxValue bucket = b_.gather(b_.integers(buckets), row);
      return b_.add(scores, b_.transpose(b_.lookup(positions_ + ".weight", bucket), {0, 3, 1, 2}));
    }
    case PositionKind::relative_shaw: {
      const std::int64_t rows = b_.shape_of_weight(table)[0];
      return distance_keys(q, b_.weight(table), causal ? 0 : -(rows / 2), rows, scores, s);
    }
    case PositionKind::relative_xl: {
      const std::int64_t first = causal ? 0 : 1 - limit_, rows = limit_ - first;
      const OnnxValue encoded =
          b_.numbers(values_of(sinusoids(first, rows, o_.d_model)), {rows, o_.d_model});
      // The queries contain u; the keys of distances are read by q + v.
      const OnnxValue difference = b_.sub(b_.weight(positions + ".v"), b_.weight(positions + ".u"));
      const double scale =
          o_.attention.scale != 0 ? o_.attention.scale : 1 / std::sqrt(static_cast<double>(size_));
      const OnnxValue shift =
          b_.mul(b_.reshape(difference, {o_.heads, std::int64_t{1}, size_}), b_.number(scale));
      return distance_keys(b_.add(q, shift), b_.affine(encoded, b_.weight(table), ""), first, rows,
                           scores, s);
    }
    case PositionKind::sinusoidal:
    case PositionKind::learned:
    case PositionKind::rotary:
    case PositionKind::none:
      break;
  }
  return scores;
}

// ---- attention ---------------------------------------------------------------------------------

/// [batch · length, count · size] → [batch, count, length, size]
OnnxValue OnnxStack::heads(const OnnxValue& rows, const OnnxSequences& s, std::int64_t count) {
  return b_.transpose(b_.reshape(rows, {s.batch, s.length, count, size_}), {0, 2, 1, 3});
}

/// [batch, heads, length, size] → [batch · length, d]
OnnxValue OnnxStack::joined(const OnnxValue& x) {
  return b_.reshape(b_.transpose(x, {0, 2, 1, 3}), {std::int64_t{-1}, o_.d_model});
}

OnnxValue OnnxStack::scores(const OnnxValue& q, const OnnxKeysAndValues& kv,
                            const OnnxSequences& s) {
  const OnnxValue keys = b_.transpose(kv.keys, {0, 1, 3, 2});
  if (kv_heads_ == o_.heads) return b_.matmul(q, keys);
  // The queries of a group read the same key head: [batch, key heads, group · length, size].
  const OnnxValue groups = b_.reshape(q, {std::int64_t{0}, kv_heads_, std::int64_t{-1}, size_});
  return b_.reshape(b_.matmul(groups, keys),
                    {std::int64_t{0}, o_.heads, s.length, std::int64_t{-1}});
}

OnnxValue OnnxStack::weighted(const OnnxValue& weights, const OnnxKeysAndValues& kv,
                              const OnnxSequences& s) {
  if (kv_heads_ == o_.heads) return b_.matmul(weights, kv.values);
  const OnnxValue groups =
      b_.reshape(weights, {std::int64_t{0}, kv_heads_, std::int64_t{-1}, b_.size(kv.values, 2)});
  return b_.reshape(b_.matmul(groups, kv.values), {std::int64_t{0}, o_.heads, s.length, size_});
}

OnnxValue OnnxStack::weights_of(OnnxValue scores, const OnnxValue& visible, bool self) {
  const std::int64_t keys = 3;  // axis
  const OnnxValue unread = b_.number(unread_score);
  if (o_.attention.map == ScoreMap::sum) {
    if (!visible.empty()) scores = b_.op("Where", {visible, scores, b_.number(0)});
    // A padded query that attends to no key has weights of 0: 0 / 0 = NaN would spread to other rows.
    const OnnxValue sum = b_.sum(scores, keys), none = b_.op("Equal", {sum, b_.number(0)});
    return b_.op("Div", {scores, b_.op("Where", {none, b_.number(1), sum})});
  }
  if (!visible.empty()) scores = b_.op("Where", {visible, scores, unread});
  if (self && o_.attention.pattern == PatternKind::topk) {
    const OnnxValue count =
        b_.op("Min", {b_.size(scores, keys), b_.integers({o_.attention.top_k})});
    const OnnxValue largest =
        b_.ops("TopK", {scores, count}, 2, {{"axis", keys}}).back();  // indices
    const OnnxValue none = b_.mul(scores, b_.number(0));
    const OnnxValue ones = b_.op("Expand", {b_.number(1), b_.op("Shape", {largest})});
    const OnnxValue kept = b_.op("ScatterElements", {none, largest, ones}, {{"axis", keys}});
    scores = b_.op("Where", {b_.cast(kept, DType::boolean), scores, unread});
  }
  const OnnxValue weights = b_.op("Softmax", {scores}, {{"axis", keys}});
  if (o_.attention.map != ScoreMap::hard) return weights;
  const OnnxValue first = b_.op("ArgMax", {weights}, {{"axis", keys}});
  return b_.cast(b_.op("Equal", {b_.range(b_.size(weights, keys)), first}), DType::f32);
}

/// `positions`: name of LayerPositions; empty: no terms.
OnnxValue OnnxStack::attend(OnnxValue q, const OnnxKeysAndValues& kv, const OnnxSequences& s,
                            const OnnxValue& visible, const std::string& positions) {
  const double scale =
      o_.attention.scale != 0 ? o_.attention.scale : 1 / std::sqrt(static_cast<double>(size_));
  q = b_.mul(q, b_.number(scale));
  const OnnxValue all = with_terms(scores(q, kv, s), q, s, positions);
  return joined(weighted(weights_of(all, visible, !positions.empty()), kv, s));
}

OnnxValue OnnxStack::self_attention(const OnnxValue& x, const OnnxSequences& s,
                                    const std::string& name, std::int64_t layer) {
  const std::string positions = name + ".positions";
  const std::int64_t d = o_.d_model, e = kv_heads_ * size_;
  OnnxValue bias;
  if (b_.has(name + ".in_proj_bias")) bias = b_.weight(name + ".in_proj_bias");
  if (b_.has(positions + ".u")) {
    const OnnxValue zeros =
        b_.numbers(std::vector<float>(static_cast<std::size_t>(2 * e)), {2 * e});
    const OnnxValue u =
        b_.op("Concat", {b_.weight(positions + ".u"), zeros}, {{"axis", std::int64_t{0}}});
    bias = bias.empty() ? u : b_.add(bias, u);
  }
  const auto qkv = b_.split(b_.affine(x, b_.weight(name + ".in_proj_weight"), bias), 1, {d, e, e});
  OnnxValue q = rotated(heads(qkv[0], s, o_.heads), s);
  OnnxKeysAndValues kv{rotated(heads(qkv[1], s, kv_heads_), s), heads(qkv[2], s, kv_heads_)};
  if (s.cached) kv = s.cached(kv, layer);
  if (o_.attention.pattern != PatternKind::linear)
    return b_.linear(attend(q, kv, s, s.visible, positions), name + ".out_proj");
  // φ(x) = x + 1 above 0, eˣ below (linear_attention.cpp)
  const auto phi = [&](const OnnxValue& y) {
    return b_.op("Where",
                 {b_.op("Greater", {y, b_.number(0)}), b_.add(y, b_.number(1)), b_.op("Exp", {y})});
  };
  OnnxValue weights = scores(phi(q), {phi(kv.keys), kv.values}, s);
  if (!s.visible.empty()) weights = b_.op("Where", {s.visible, weights, b_.number(0)});
  const OnnxValue total = b_.add(b_.sum(weights, 3), b_.number(1e-6));
  return b_.linear(joined(b_.op("Div", {weighted(weights, kv, s), total})), name + ".out_proj");
}

OnnxKeysAndValues OnnxStack::keys_and_values(const OnnxValue& rows, const OnnxSequences& of,
                                             const std::string& name) {
  const std::int64_t d = o_.d_model, e = kv_heads_ * size_;
  const OnnxRows part{.first = d, .count = 2 * e};
  const OnnxValue bias =
      b_.has(name + ".in_proj_bias") ? b_.weight(name + ".in_proj_bias", part) : "";
  const auto kv =
      b_.split(b_.affine(rows, b_.weight(name + ".in_proj_weight", part), bias), 1, {e, e});
  return {heads(kv[0], of, kv_heads_), heads(kv[1], of, kv_heads_)};
}

OnnxValue OnnxStack::cross_attention(const OnnxValue& x, const OnnxSequences& s,
                                     const std::string& name, std::int64_t layer) {
  const OnnxRows part{.first = 0, .count = o_.d_model};
  const OnnxValue bias =
      b_.has(name + ".in_proj_bias") ? b_.weight(name + ".in_proj_bias", part) : "";
  const OnnxValue q =
      heads(b_.affine(x, b_.weight(name + ".in_proj_weight", part), bias), s, o_.heads);
  OnnxSequences plain{s.batch, s.length};
  return b_.linear(attend(q, s.encoded(name, layer), plain, s.encoder_visible, ""),
                   name + ".out_proj");
}

// ---- blocks ------------------------------------------------------------------------------------

OnnxValue OnnxStack::feed_forward(const OnnxValue& x, const std::string& name) {
  return b_.linear(b_.activation(o_.activation, b_.linear(x, name + "linear1")), name + "linear2");
}

OnnxValue OnnxStack::residual(const OnnxValue& x, const std::string& norm,
                              const std::function<OnnxValue(const OnnxValue&)>& sublayer) {
  const OnnxValue change = sublayer(o_.norm == NormPlace::pre ? b_.norm(o_, x, norm) : x);
  const OnnxValue total = o_.residual ? b_.add(change, x) : change;
  return o_.norm == NormPlace::post ? b_.norm(o_, total, norm) : total;
}

OnnxValue OnnxStack::block(const OnnxValue& x, const OnnxSequences& s, const std::string& name,
                           std::int64_t layer) {
  const auto mix = [&](const OnnxValue& rows) {
    return self_attention(rows, s, name + "self_attn", layer);
  };
  const auto cross = [&](const OnnxValue& rows) {
    return cross_attention(rows, s, name + "multihead_attn", layer);
  };
  const auto feed = [&](const OnnxValue& rows) { return feed_forward(rows, name); };
  const bool crosses = kind_ == BlockKind::decoder;
  if (o_.block == BlockForm::parallel) {
    return residual(x, name + "norm1", [&](const OnnxValue& rows) {
      const OnnxValue y = crosses ? b_.add(mix(rows), cross(rows)) : mix(rows);
      return b_.add(y, feed(rows));
    });
  }
  OnnxValue y = residual(x, name + "norm1", mix);
  if (crosses) y = residual(y, name + "norm2", cross);
  return residual(y, name + (crosses ? "norm3" : "norm2"), feed);
}

OnnxValue OnnxStack::operator()(const OnnxValue& rows, const OnnxSequences& s,
                                const std::string& name, std::int64_t layers) {
  OnnxValue x = b_.reshape(positioned(rows, s), {std::int64_t{-1}, o_.d_model});
  if (o_.embedding_norm) {  // named as the positions
    std::string norm = positions_;
    norm.replace(norm.find("positions"), std::string_view("positions").size(), "embedding_norm");
    x = b_.norm(o_, x, norm);
  }
  for (std::int64_t i = 0; i < layers; ++i)
    x = block(x, s, fmt::format("{}.layers.{}.", name, i), i);
  const bool normed = o_.final_norm && o_.norm != NormPlace::none;
  return normed ? b_.norm(o_, x, name + ".norm") : x;
}

HEED_END
