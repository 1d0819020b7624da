// The gradients of every layer with respect to its input and each of its parameters, compared with
// finite differences.
#include "autograd/gradcheck.h"
#include "nn/embedding.h"
#include "nn/layers/positions.h"
#include "tests/autograd/right_or_empty.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(gradcheck_layers)

namespace {

/// A new pass for each call of the layer, with fixed dropout keys or without dropout.
Pass pass_of(double dropout) { return {dropout > 0, 5, 17, 2}; }

constexpr double dropouts[] = {0.0, 0.4};

/// Sequence lengths, including 0 and 1.
const std::vector<std::vector<std::int32_t>> length_lists{{3, 1, 5}, {1}, {0, 2, 0}, {7}, {0}};

}  // namespace

BOOST_AUTO_TEST_CASE(linear_layer_passes_gradcheck) {
  for (const auto& [in, out] : {std::pair{5, 3}, {1, 1}, {3, 1}, {1, 4}}) {
    for (const bool bias : {true, false}) {
      Init init = test_init();
      const Linear layer(in, out, init, bias);
      const auto f = layered(layer.parameters(), [&](const Tensor& x) { return layer(x); });
      for (const Shape& shape :
           {Shape{4, in}, Shape{in}, Shape{2, 3, in}, Shape{1, in}, Shape{0, in}}) {
        BOOST_TEST_CONTEXT(shape.str()
                           << (bias ? " with" : " without") << " bias, output width " << out) {
          BOOST_TEST(right_or_empty(gradcheck(f, normal(shape, 1))));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(embedding_passes_gradcheck) {
  for (const bool scaled : {true, false}) {
    Init init = test_init();
    const Embedding layer(7, 5, scaled, init);
    const auto f = layered(layer.parameters(), [&] {
      return layer(
          std::vector<std::int32_t>{3, 3, 0, 6, 3});  // the gradients of a repeated id add up
    });
    BOOST_TEST(gradcheck(f));
    const Array value = f().value();
    const double factor = scaled ? std::sqrt(5.0) : 1.0;
    for (std::int64_t c = 0; c < 5; ++c) {
      BOOST_TEST(std::abs(value.row(3)[c] - factor * layer.weight.value().row(6)[c]) < 1e-15);
    }
  }
}

BOOST_AUTO_TEST_CASE(norms_pass_gradcheck) {
  for (const NormKind kind : every<NormKind>()) {
    for (const std::int64_t d : {2, 5, 16, 17}) {
      ModelOptions o = small_options();
      o.d_model = d;
      o.norm_kind = kind;
      Init init = test_init();
      const Norm layer(o, init);
      for (const bool training : {true, false}) {
        const auto f = layered(layer.parameters(), [&](const Tensor& x) {
          return layer(x, Pass{.training = training});
        });
        for (const std::int64_t rows : {0, 1, 3})
          BOOST_TEST(right_or_empty(gradcheck(f, normal({rows, d}, 2))));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(feed_forward_passes_gradcheck_with_each_activation) {
  for (std::size_t i = 0; i < activation_count; ++i) {
    const auto activation = static_cast<Activation>(i);
    for (const double dropout : dropouts) {
      ModelOptions o = small_options();
      o.activation = activation;
      o.dropout = dropout;
      Init init = test_init();
      const FeedForward layer(o, init);
      const auto f = layered(layer.parameters(), [&](const Tensor& x) {
        Pass pass = pass_of(dropout);
        return layer(x, pass);
      });
      for (const std::int64_t rows : {0, 1, 5}) {
        BOOST_TEST_CONTEXT("activation " << static_cast<int>(activation) << ", dropout "
                                         << dropout) {
          BOOST_TEST(right_or_empty(gradcheck(f, normal({rows, o.d_model}, 3))));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(self_attention_passes_gradcheck) {
  for (const std::int64_t heads : {1, 2, 3}) {
    for (const AttentionScope scope : {AttentionScope::all, AttentionScope::past}) {
      for (const double dropout : dropouts) {
        Init init = test_init();
        const MultiHeadAttention layer = attention_of(6, heads, scope, dropout, init);
        for (const auto& lengths : length_lists) {
          const std::vector<std::int32_t> offsets = offsets_of(lengths);
          const auto f = layered(layer.parameters(), [&](const Tensor& x) {
            Pass pass = pass_of(dropout);
            return layer(x, {offsets, nullptr, pass});
          });
          BOOST_TEST_CONTEXT("heads: " << heads << (scope == AttentionScope::past ? ", causal" : "")
                                       << ", dropout " << dropout << ", rows: " << offsets.back()) {
            BOOST_TEST(right_or_empty(gradcheck(f, normal({offsets.back(), 6}, 4))));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cross_attention_passes_gradcheck) {
  const std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>> sides{
      {{3, 1, 5}, {2, 4, 1}}, {{1}, {7}}, {{0, 2}, {3, 1}}, {{2, 2}, {1, 0}}};
  for (const std::int64_t heads : {1, 2, 3}) {
    for (const double dropout : dropouts) {
      Init init = test_init();
      const MultiHeadAttention layer =
          attention_of(6, heads, AttentionScope::encoder_output, dropout, init);
      for (const auto& [asking, answering] : sides) {
        const std::vector<std::int32_t> offsets = offsets_of(asking), ends = offsets_of(answering);
        const auto f =
            layered(layer.parameters(), [&](const Tensor& x, const Tensor& encoder_rows) {
              Pass pass = pass_of(dropout);
              const EncoderOutput encoded{encoder_rows, ends};
              return layer(x, {offsets, &encoded, pass});
            });
        BOOST_TEST_CONTEXT("heads: " << heads << ", dropout " << dropout << ", query rows: "
                                     << offsets.back() << ", encoder rows: " << ends.back()) {
          BOOST_TEST(right_or_empty(
              gradcheck(f, normal({offsets.back(), 6}, 4), normal({ends.back(), 6}, 5))));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(positions_pass_gradcheck) {
  for (const PositionKind kind :
       {PositionKind::sinusoidal, PositionKind::learned, PositionKind::alibi, PositionKind::none}) {
    ModelOptions o = small_options();
    o.positions = kind;
    o.d_model = 5;
    Init init = test_init();
    const Positions layer(o, false, init);
    const std::vector<std::int32_t> offsets = offsets_of({3, 0, 4, 1});
    const auto f = layered(layer.parameters(), [&](const Tensor& x) { return layer(x, offsets); });
    BOOST_TEST(gradcheck(f, normal({8, 5}, 6)));
  }
}

BOOST_AUTO_TEST_CASE(residuals_pass_gradcheck) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post, NormPlace::none}) {
    for (const double dropout : dropouts) {
      ModelOptions o = small_options();
      o.residual = place != NormPlace::none;
      o.d_model = 5;
      o.norm = place;
      o.dropout = dropout;
      Init init = test_init();
      const Residual around(o, init);
      const auto f = layered(
          around.norm ? around.norm->parameters() : Parameters{},
          [&](const Tensor& x, const Tensor& gate) {
            Pass pass = pass_of(dropout);
            return around(x, pass, [&](const Tensor& rows) { return mul(gelu(rows), gate); });
          });
      BOOST_TEST(gradcheck(f, normal({3, 5}, 7), normal({5}, 8)));
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks_pass_gradcheck) {
  const std::vector<std::int32_t> offsets = offsets_of({3, 1, 0, 2}),
                                  ends = offsets_of({1, 3, 2, 1});
  for (const NormPlace place : every<NormPlace>()) {
    for (const BlockForm form : every<BlockForm>()) {
      for (const double dropout : dropouts) {
        for (const Activation activation : {Activation::relu, Activation::silu, Activation::swiglu,
                                            Activation::geglu, Activation::geglu_tanh}) {
          ModelOptions o = small_options();
          o.norm = place;
          o.block = form;
          o.residual = place == NormPlace::pre || activation == Activation::relu;
          o.norm_kind = activation == Activation::silu ? NormKind::rms : NormKind::layer;
          o.dropout = dropout;
          o.activation = activation;
          Init init = test_init();
          const Tensor x = normal({offsets.back(), 6}, 9),
                       encoder_rows = normal({ends.back(), 6}, 10);
          for (const BlockKind kind : {BlockKind::encoder, BlockKind::causal}) {
            const TransformerBlock block(o, kind, init);
            const auto f = layered(block.parameters(), [&](const Tensor& rows) {
              Pass pass = pass_of(dropout);
              return block(rows, {offsets, nullptr, pass});
            });
            BOOST_TEST(gradcheck(f, x));
          }
          const TransformerBlock block(o, BlockKind::decoder, init);
          const auto g = layered(block.parameters(), [&](const Tensor& rows, const Tensor& read) {
            Pass pass = pass_of(dropout);
            const EncoderOutput encoded{read, ends};
            return block(rows, {offsets, &encoded, pass});
          });
          BOOST_TEST(gradcheck(g, x, encoder_rows));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(stacks_pass_gradcheck) {
  const std::vector<std::int32_t> offsets = offsets_of({3, 2}), ends = offsets_of({1, 4});
  for (const double dropout : dropouts) {
    for (const bool final_norm : {true, false}) {
      ModelOptions o = small_options();
      o.heads = 3;
      o.dropout = dropout;
      o.norm = final_norm ? NormPlace::pre : NormPlace::post;
      o.final_norm = final_norm;
      Init init = test_init();
      const Tensor x = normal({5, 6}, 11), encoder_rows = normal({5, 6}, 12);
      for (const BlockKind kind : {BlockKind::encoder, BlockKind::causal}) {
        const Stack stack(o, 2, kind, init);
        BOOST_TEST(gradcheck(layered(stack.parameters(),
                                     [&](const Tensor& rows) {
                                       Pass pass = pass_of(dropout);
                                       return stack(rows, {offsets, nullptr, pass});
                                     }),
                             x));
      }
      const Stack decoder(o, 2, BlockKind::decoder, init);
      BOOST_TEST(gradcheck(layered(decoder.parameters(),
                                   [&](const Tensor& rows, const Tensor& read) {
                                     Pass pass = pass_of(dropout);
                                     const EncoderOutput encoded{read, ends};
                                     return decoder(rows, {offsets, &encoded, pass});
                                   }),
                           x, encoder_rows));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
