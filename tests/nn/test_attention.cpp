// Fused attention in a layer, compared with its definition, which is composed of simple ops.
#include "nn/layers/attention.h"

#include "autograd/ops/more/attention/mask.h"
#include "nn/reference/transformer.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(attention_layers)

namespace {

/// The output of the layer according to its definition, one sequence at a time.
Tensor composed(const MultiHeadAttention& layer, const Tensor& x, const Tensor& encoder_rows,
                const std::vector<std::int32_t>& offsets, const std::vector<std::int32_t>& ends) {
  Init init = test_init();
  reference::MultiHeadAttention definition({.d_model = layer.d, .heads = layer.heads}, init);
  definition.in_proj_weight = layer.in_proj_weight;
  definition.in_proj_bias = layer.in_proj_bias;
  definition.out_proj = layer.out_proj;
  std::vector<Tensor> outputs;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const Tensor queries = slice(x, 0, offsets[s], offsets[s + 1]);
    outputs.push_back(definition(
        queries, slice(encoder_rows, 0, ends[s], ends[s + 1]),
        layer.scope == AttentionScope::past ? causal_mask(queries.shape()[0]) : Array()));
  }
  return concat(outputs, 0);
}

/// Compares the values of two implementations and their gradients with respect to the leaves.
void check_same(const std::vector<Tensor>& leaves, const Tensor& fused, const Tensor& plain,
                double tolerance = 1e-12) {
  BOOST_TEST(difference(fused.value(), plain.value()) < tolerance);
  const Array cotangent = normal(fused.shape(), 50);
  const Gradients a = backward(fused, cotangent), b = backward(plain, cotangent);
  for (const Tensor& leaf : leaves) BOOST_TEST(difference(a[leaf], b[leaf]) < tolerance);
}

}  // namespace

BOOST_AUTO_TEST_CASE(fused_attention_equals_composed_ops) {
  const std::vector<std::int32_t> offsets = offsets_of({3, 1, 9, 2}),
                                  ends = offsets_of({5, 2, 1, 17});
  for (const std::int64_t heads : {1, 2, 3, 4}) {
    Init init = test_init();
    const MultiHeadAttention every[] = {
        attention_of(12, heads, AttentionScope::all, 0, init),
        attention_of(12, heads, AttentionScope::past, 0, init),
        attention_of(12, heads, AttentionScope::encoder_output, 0, init)};
    const Tensor x = Tensor::variable(normal({15, 12}, 1)),
                 encoder_rows = Tensor::variable(normal({25, 12}, 2));
    const EncoderOutput encoded{encoder_rows, ends};
    Pass pass;
    for (const MultiHeadAttention& layer : every) {
      randomise(layer.parameters());
      const bool cross = layer.scope == AttentionScope::encoder_output;
      std::vector<Tensor> leaves{x};
      if (cross) leaves.push_back(encoder_rows);
      for (const NamedTensor& p : layer.parameters()) leaves.push_back(p.tensor);
      check_same(leaves, layer(x, {offsets, &encoded, pass}),
                 composed(layer, x, cross ? encoder_rows : x, offsets, cross ? ends : offsets));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_map_scale_and_number_of_key_heads_applies_to_self_and_cross_attention) {
  const std::int64_t d = 12, heads = 4, width = d / heads, rows = 6, sources = 8;
  const auto twice = [](const Array& half) {
    return concat({Tensor(half), Tensor(half)}, 0).value();
  };
  // Equal rows have equal scores; the map hard selects the first of them.
  const Array x = twice(normal({rows / 2, d}, 1)), encoded = twice(normal({sources / 2, d}, 2));
  const std::vector<std::int32_t> offsets{0, rows}, ends{0, sources};
  const EncoderOutput output{Tensor(encoded), ends};
  Pass pass;
  for (const ScoreMap map : {ScoreMap::softmax, ScoreMap::sum, ScoreMap::hard})
    for (const auto& [given_scale, key_heads] : {std::pair(0.0, 4), {0.7, 4}, {0.0, 2}, {0.7, 1}})
      for (const AttentionScope scope :
           {AttentionScope::all, AttentionScope::past, AttentionScope::encoder_output}) {
        Init init = test_init();
        ModelOptions o = small_options();
        o.d_model = d;
        o.heads = heads;
        o.attention.map = map;
        o.attention.scale = given_scale;
        o.attention.kv_heads = key_heads == heads ? 0 : key_heads;
        const MultiHeadAttention layer(o, scope, init);
        randomise(layer.parameters());
        const double factor = given_scale > 0 ? given_scale : 1 / std::sqrt(double(width));
        const Array& y = scope == AttentionScope::encoder_output ? encoded : x;
        const auto projected = [&](const Array& of, std::int64_t row, std::int64_t column) {
          real sum = layer.in_proj_bias.value().data()[column];
          for (std::int64_t c = 0; c < d; ++c)
            sum += of.data()[row * d + c] * layer.in_proj_weight.value().data()[column * d + c];
          return sum;
        };
        Array joined = Array::zeros({rows, d});
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t head = 0; head < heads; ++head) {
            const std::int64_t keys = scope == AttentionScope::past ? i + 1 : y.shape()[0],
                               query = head * width, key = d + head / (heads / key_heads) * width,
                               value = key + key_heads * width;
            std::vector<real> p;
            for (std::int64_t j = 0; j < keys; ++j) {
              real score = 0;
              for (std::int64_t c = 0; c < width; ++c)
                score += projected(x, i, query + c) * projected(y, j, key + c);
              p.push_back(factor * score);
            }
            const auto first = std::ranges::max_element(p);
            const real largest = *first;
            if (map == ScoreMap::softmax)
              for (real& s : p) s = std::exp(s - largest);
            if (map == ScoreMap::hard) {
              const auto at = first - p.begin();
              p.assign(p.size(), 0);
              p[at] = 1;
            }
            const real sum = std::accumulate(p.begin(), p.end(), real(0));
            for (std::int64_t c = 0; c < width; ++c)
              for (std::int64_t j = 0; j < keys; ++j)
                joined.data()[i * d + query + c] += p[j] / sum * projected(y, j, value + c);
          }
        const Array expected = layer.out_proj(Tensor(joined)).value(),
                    found = layer(Tensor(x), {offsets, &output, pass}).value();
        BOOST_TEST_CONTEXT(name_of(map)
                           << ", scale " << given_scale << ", key heads: " << key_heads)
        BOOST_TEST(difference(found, expected) < 1e-9);
      }
}

BOOST_AUTO_TEST_CASE(pattern_of_the_context_applies_to_self_attention_only) {
  constexpr std::int64_t rows = 9, d = 6;
  const std::vector<std::int32_t> offsets{0, 4, rows};
  const Tensor x(normal({rows, d}, 1));
  const EncoderOutput encoded{Tensor(normal({rows, d}, 2)), offsets};
  for (const AttentionScope scope :
       {AttentionScope::all, AttentionScope::past, AttentionScope::encoder_output}) {
    Init init = test_init();
    const MultiHeadAttention layer = attention_of(d, 2, scope, 0, init);
    randomise(layer.parameters());
    Pass pass;
    Context context{offsets, &encoded, pass};
    const Array without = layer(x, context).value();
    // With a single key, the output is the projection of its value.
    context.pattern = mask_pattern([](auto, auto query, auto key) { return query == key; });
    const Array with = layer(x, context).value(),
                values = layer
                             .out_proj(affine_rows(x, layer.in_proj_weight, layer.in_proj_bias,
                                                   2 * d, 3 * d))
                             .value();
    const bool cross = scope == AttentionScope::encoder_output;
    BOOST_TEST(difference(with, cross ? without : values) < 1e-13);
    BOOST_TEST(difference(without, values) > 1e-3);
  }
}

BOOST_AUTO_TEST_CASE(fused_attention_with_large_scores_equals_composed_ops) {
  Init init = test_init();
  const MultiHeadAttention layer = attention_of(6, 2, AttentionScope::past, 0, init);
  randomise(layer.parameters());
  const std::vector<std::int32_t> offsets{0, 5};
  const Tensor x = Tensor::variable(normal({5, 6}, 1, 1e3));
  Pass pass;
  // In double precision, scores of about 10⁶ and their differences are accurate to about 10⁻¹⁰.
  check_same({x}, layer(x, {offsets, nullptr, pass}), composed(layer, x, x, offsets, offsets),
             1e-8);
}

BOOST_AUTO_TEST_CASE(missing_encoder_output_or_cache_while_recording_is_refused) {
  const auto about = [](const std::string& text) {
    return [text](const Error& e) { return std::string(e.what()).find(text) != std::string::npos; };
  };
  Init init = test_init();
  const MultiHeadAttention cross = attention_of(6, 2, AttentionScope::encoder_output, 0, init),
                           self = attention_of(6, 2, AttentionScope::past, 0, init);
  const Tensor x(normal({1, 6}, 1));
  const std::vector<std::int32_t> offsets{0, 1};
  Pass pass;
  BOOST_CHECK_EXCEPTION(cross(x, {offsets, nullptr, pass}), Error,
                        about("expected the output of an encoder"));
  Cache cache(1);
  cache.layers.resize(1);
  cache.grow();
  BOOST_CHECK_EXCEPTION(self(x, {offsets, nullptr, pass, &cache}), Error, about("under NoGrad"));
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
