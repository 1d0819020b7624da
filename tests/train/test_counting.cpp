// Matrix products: their FLOPs compared with a formula, and the replay of a step's products.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <thread>

#include "autograd/kernels/fast/gemm/product_log.h"
#include "autograd/ops.h"
#include "nn/layers/patterns.h"
#include "nn/models/classifier.h"
#include "nn/models/model.h"
#include "optim/optimizer.h"
#include "tests/train/flops_formula.h"
#include "train/decode/model_input.h"
#include "train/loop/step.h"
#include "train/tasks/token_cost.h"
#include "train/views/report/product_replay.h"
#include "train/views/report/step_profile.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(counting)
using kernels::Product;
using kernels::ProductFlops;
using kernels::ProductLog;

namespace {

constexpr std::int64_t vocabulary = 11;

ModelOptions small(std::int64_t d = 12, std::int64_t heads = 3) {
  ModelOptions o;
  o.d_model = d;
  o.heads = heads;
  o.d_ff = 20;
  o.encoder_layers = 2;
  o.decoder_layers = 3;
  o.dropout = 0.1;
  o.context = 1200;
  o.max_positions = 1200;
  return o;
}

std::unique_ptr<Model> seq2seq(const ModelOptions& o) {
  return make_seq2seq(o, vocabulary, vocabulary, true, 1);
}

std::unique_ptr<Model> tagger(const ModelOptions& o) {
  return make_classifier(o, Labelling::rows, vocabulary + 4, vocabulary, 1);
}

/// A batch with sequences of these lengths; an empty list means that the side is absent.
Batch batch_of(const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& target) {
  Batch batch;
  const auto fill = [](Side& side, const std::vector<std::int32_t>& lengths, std::int32_t id) {
    if (lengths.empty()) return;
    side.offsets = offsets_of(lengths);
    side.ids.assign(static_cast<std::size_t>(side.rows()), id);
  };
  fill(batch.source, source, 3);
  fill(batch.target, target, 4);
  batch.labels.assign(static_cast<std::size_t>(batch.labelled().rows()), 4);
  batch.samples.resize(static_cast<std::size_t>(batch.sequences()));
  return batch;
}

ProductFlops training(const Model& model, const Batch& batch,
                      std::vector<Product>* products = nullptr) {
  ProductFlops counted;
  const ProductLog log(counted, products);
  shard_gradients(model, batch, 0, 1, 1, {}, nullptr);
  return counted;
}

ProductFlops forward_only(const Model& model, const Batch& batch) {
  ProductFlops counted;
  const NoGrad no_grad;
  const ProductLog log(counted);
  Pass pass;
  model.loss(model_input(batch), {}, pass);
  return counted;
}

TokenCost cost(TaskKind kind, const Model& model) {
  Config config;
  config.task = kind;
  return token_cost(*make_task(config), model);
}

double formula(const ModelOptions& o, const Batch& batch) {
  return forward_flops(o, vocabulary, batch.source.offsets, batch.target.offsets);
}

}  // namespace

// ---- the formula ------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(formula_equals_values_computed_by_hand) {
  ModelOptions m;
  m.d_model = 2;
  m.d_ff = 3;
  m.encoder_layers = m.decoder_layers = 1;
  const OffsetList source{0, 5}, target{0, 4};
  // One causal layer on 4 rows: q, k, v, out 4·(2·4·2·2) = 128; q kᵀ and p v 2·(2·4·4·2) = 128;
  // feed-forward 2·(2·4·2·3) = 96; output 2·4·2·7 = 112.
  BOOST_TEST(forward_flops(m, 7, {}, target) == 128 + 128 + 96 + 112);
  // Encoder on 5 rows: 160 + 200 + 120. Cross-attention: q and out 2·(2·4·2·2) = 64, k and v
  // 2·(2·5·2·2) = 80, products 2·(2·4·5·2) = 160.
  BOOST_TEST(forward_flops(m, 7, source, target) == 128 + 128 + 96 + 112 + 480 + 64 + 80 + 160);
}

BOOST_AUTO_TEST_CASE(formula_equals_that_of_the_benchmark_scripts) {
  ModelOptions m;  // nmt-small of tests/bench/workloads.py
  m.d_model = 256;
  m.d_ff = 1024;
  m.encoder_layers = m.decoder_layers = 3;
  const OffsetList offsets = offsets_of(std::vector<std::int32_t>(64, 32));
  BOOST_TEST(3 * forward_flops(m, 8000, offsets, offsets) == 94623498240.0);
}

BOOST_AUTO_TEST_CASE(attention_costs_as_much_as_the_rest_of_a_layer_at_six_times_its_width) {
  ModelOptions m = small(8, 2);
  m.d_ff = 4 * m.d_model;
  m.decoder_layers = 1;
  const auto d = static_cast<double>(m.d_model);
  for (const std::int32_t n : {12, 48, 96}) {
    const Batch batch = batch_of({}, {n});
    const double layer = forward_only(*make_language_model(m, vocabulary, 1), batch).model -
                         2 * n * d * vocabulary;  // without the output
    const double quadratic = 4 * d * n * n;       // q kᵀ and p v
    BOOST_TEST(layer - quadratic == 24 * n * d * d);
    BOOST_TEST((quadratic == layer - quadratic) == (n == 48));
    BOOST_TEST((quadratic > layer - quadratic) == (n > 48));
  }
}

// ---- counting ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(model_flops_of_training_are_three_times_the_formula) {
  const std::vector<std::vector<std::int32_t>> lengths{{1}, {7}, {3, 1, 9}, {130}, {1100, 5}};
  for (const auto& target : lengths) {
    for (const bool post : {false, true}) {
      ModelOptions o = small();
      o.norm = post ? NormPlace::post : NormPlace::pre;
      o.tie_embeddings = !post;
      const Batch text = batch_of({}, target);
      BOOST_TEST(training(*make_language_model(o, vocabulary, 1), text).model ==
                 3 * formula(o, text));
      std::vector<std::int32_t> source(target.size(), 4);
      source.back() = 140;
      const Batch pairs = batch_of(source, target);
      BOOST_TEST(training(*seq2seq(o), pairs).model == 3 * formula(o, pairs));
      const Batch tokens = batch_of(target, {});
      BOOST_TEST(training(*tagger(o), tokens).model == 3 * formula(o, tokens));
    }
  }
}

BOOST_AUTO_TEST_CASE(flops_of_a_forward_pass_equal_the_formula) {
  const ModelOptions o = small();
  const std::unique_ptr<Model> model = seq2seq(o);
  const Batch batch = batch_of({5, 2}, {4, 6});
  BOOST_TEST(forward_only(*model, batch).model == formula(o, batch));
  BOOST_TEST(forward_only(*model, batch).executed == formula(o, batch));
}

BOOST_AUTO_TEST_CASE(backward_pass_recomputes_the_attention_scores) {
  const ModelOptions o = small();
  const Batch batch = batch_of({5, 2}, {4, 6});
  const auto d = static_cast<double>(o.d_model);
  const OffsetList &s = batch.source.offsets, &t = batch.target.offsets;
  const double scores = 2 * d * (2 * pairs(s, s) + 3 * pairs(t, t) + 3 * pairs(t, s));
  const ProductFlops counted = training(*seq2seq(o), batch);
  BOOST_TEST(counted.executed == counted.model + scores);
}

BOOST_AUTO_TEST_CASE(causal_attention_skips_masked_blocks) {
  ModelOptions o = small();
  o.decoder_layers = 1;
  const auto d = static_cast<double>(o.d_model);
  const Batch batch =
      batch_of({}, {256});  // four blocks of 64 queries read 64, 128, 192 and 256 keys
  const ProductFlops counted = forward_only(*make_language_model(o, vocabulary, 1), batch);
  BOOST_TEST(counted.model == formula(o, batch));
  BOOST_TEST(counted.model - counted.executed == 4 * d * (256 * 256 - 64 * (64 + 128 + 192 + 256)));
}

BOOST_AUTO_TEST_CASE(window_reduces_executed_flops_and_keeps_model_flops) {
  ModelOptions full = small();
  full.decoder_layers = 1;
  ModelOptions window = full;
  window.attention = {PatternKind::window, 16};
  const Batch batch = batch_of({}, {512});
  const ProductFlops all = forward_only(*make_language_model(full, vocabulary, 1), batch),
                     some = forward_only(*make_language_model(window, vocabulary, 1), batch);
  BOOST_TEST(some.model == formula(full, batch));
  BOOST_TEST(some.model == all.model);
  BOOST_TEST(some.executed < all.executed);
}

BOOST_AUTO_TEST_CASE(cost_of_a_token_equals_the_formula) {
  for (const std::int64_t d : {12, 48, 510}) {
    for (const bool tied : {true, false}) {
      ModelOptions o = small(d);
      o.tie_embeddings = tied;
      const TokenCost pairs = cost(TaskKind::seq2seq, *seq2seq(o));
      BOOST_TEST(pairs.source == forward_flops(o, vocabulary, {0, 1}, {0, 0}));
      BOOST_TEST(pairs.target == forward_flops(o, vocabulary, {0, 0}, {0, 1}));
      const TokenCost text = cost(TaskKind::lm, *make_language_model(o, vocabulary, 1));
      BOOST_TEST(text.source == 0);
      BOOST_TEST(text.target == forward_flops(o, vocabulary, {}, {0, 1}));
      const TokenCost tokens = cost(TaskKind::tag, *tagger(o));
      BOOST_TEST(tokens.source == forward_flops(o, vocabulary, {0, 1}, {}));
      BOOST_TEST(tokens.target == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(innermost_product_log_counts_the_products_of_its_thread) {
  const Array a = Array::full({2, 3}, 1), b = Array::full({3, 5}, 1);
  const auto multiply = [&] { matmul(Tensor(a), Tensor(b)); };
  ProductFlops outer, inner;
  BOOST_TEST(ProductLog::active == nullptr);
  multiply();
  {
    const ProductLog log(outer);
    std::thread(multiply).join();
    BOOST_TEST(outer.executed == 0);
    multiply();
    {
      const ProductLog inner_log(inner);
      multiply();
      multiply();
    }
    multiply();
  }
  BOOST_TEST(ProductLog::active == nullptr);
  BOOST_TEST(outer.executed == 2 * 60);
  BOOST_TEST(outer.model == 2 * 60);
  BOOST_TEST(inner.executed == 2 * 60);
}

// ---- replaying --------------------------------------------------------------------------------

/// Operands that share an address in the step share one in the replay.
BOOST_AUTO_TEST_CASE(replay_keeps_order_and_sharing_of_operands) {
  const ModelOptions o = small();
  const std::unique_ptr<Model> model = seq2seq(o);
  const Parameters weights = model->parameters();
  std::vector<Product> products, again;
  const ProductFlops counted = training(*model, batch_of({5, 140}, {4, 150}), &products);
  const ProductReplay replay(products, weights);
  ProductFlops replayed;
  {
    const ProductLog log(replayed, &again);
    replay.run();
  }
  BOOST_TEST(replayed.executed == counted.executed);
  BOOST_REQUIRE(again.size() == products.size());
  const auto is_weight = [&](const real* p) {
    return std::any_of(weights.begin(), weights.end(), [&](const NamedTensor& w) {
      const auto values = w.tensor.value().values();
      return p >= values.data() && p < values.data() + values.size();
    });
  };
  std::map<const real*, const real*> moved;
  std::int64_t of_weights = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Product &was = products[i], &is = again[i];
    BOOST_TEST((was.trans_a == is.trans_a && was.trans_b == is.trans_b && was.m == is.m &&
                was.n == is.n && was.k == is.k && was.alpha == is.alpha && was.beta == is.beta));
    BOOST_TEST((was.lda == is.lda && was.ldb == is.ldb && was.ldc == is.ldc));
    BOOST_TEST(!is_weight(is.c));
    for (const auto& [before, now] :
         {std::pair<const real*, const real*>{was.a, is.a}, {was.b, is.b}, {was.c, is.c}}) {
      BOOST_TEST(moved.try_emplace(before, now).first->second == now);
      BOOST_TEST(is_weight(before) == (before == now));
      of_weights += is_weight(before) ? 1 : 0;
      BOOST_TEST(reinterpret_cast<std::uintptr_t>(before) % 64 ==
                 reinterpret_cast<std::uintptr_t>(now) % 64);
    }
  }
  BOOST_TEST(of_weights > 0);
}

BOOST_AUTO_TEST_CASE(operands_that_overlap_in_a_step_overlap_in_its_replay) {
  const Array left = Array::full({4, 10}, 1), right = Array::full({10, 4}, 1);
  Array sum = Array::zeros({4, 4});
  std::vector<Product> products;
  ProductFlops flops;
  const auto columns = [&](std::int64_t from) {  // multiplies a [4, 5] block of left
    kernels::gemm(kernels::Trans::no, kernels::Trans::no, 4, 4, 5, 1, left.data() + from, 10,
                  right.data(), 4, 1, sum.data(), 4);
  };
  {
    const ProductLog log(flops, &products);
    columns(0);
    columns(5);
  }
  const ProductReplay replay(products, {});
  std::vector<Product> again;
  {
    const ProductLog log(flops, &again);
    replay.run();
  }
  BOOST_REQUIRE(again.size() == 2);
  BOOST_TEST(again[1].a - again[0].a == 5);
  BOOST_TEST(again[0].c == again[1].c);
  BOOST_TEST(again[0].b == again[1].b);
  BOOST_TEST(replay.values() >= 40 + 20 + 16);
  BOOST_TEST(replay.values() < 40 + 20 + 16 + 3 * 16);  // alignment adds at most 3 · 16 values
}

// ---- the profile of a step ----------------------------------------------------------------------

// All figures are those of one step, whatever the number of steps that were profiled.
BOOST_AUTO_TEST_CASE(calls_in_a_profile_are_those_of_one_step) {
  const std::unique_ptr<Model> model = tagger(small());
  const std::vector<Batch> shards{batch_of({5, 2}, {}), batch_of({3}, {})};
  const auto calls = [&](const std::unique_ptr<Model>& of, int steps) {
    Team team(2);
    StepProfile profile;
    for (int i = 0; i < steps; ++i) profile.add(1, *of, shards, i + 1, {}, team);
    std::map<std::string, std::int64_t> all;
    for (const StepProfile::Row& row : profile.rows()) all[row.name] = row.calls;
    return all;
  };
  const auto one = calls(model, 1);
  BOOST_TEST((calls(model, 2) == one));
  BOOST_TEST((calls(model, 5) == one));
  // Each of the 2 layers normalises twice, and the stack once more, for each of the 2 shards.
  BOOST_TEST(one.at("LayerNorm") == 2 * (2 * 2 + 1));
}

BOOST_AUTO_TEST_CASE(times_in_a_profile_add_up_to_the_time_of_the_step) {
  const std::unique_ptr<Model> model = seq2seq(small());
  const std::vector<Batch> shards{batch_of({5, 2}, {4, 6}), batch_of({3}, {8}), batch_of({1}, {2})};
  Team team(2);
  StepProfile profile;
  std::vector<ShardProducts> products;
  for (const double seconds : {0.25, 0.75})
    products = profile.add(seconds, *model, shards, 1, {}, team);
  BOOST_TEST(profile.step_seconds() == 0.5);
  double sum = 0, flops = 0;
  std::int64_t affine_calls = 0;
  for (const StepProfile::Row& row : profile.rows()) {
    sum += row.seconds;
    flops += row.flops;
    if (row.name == "Affine") affine_calls = row.calls;
    // Forward reads x, gain and bias and writes y; backward reads the cotangent, x, gain and bias and
    // writes their gradients. Five norms of the encoder have its 11 rows, ten of the decoder its 20.
    if (row.name == "LayerNorm")
      BOOST_TEST(row.bytes == 4 * 12 * (5 * (5 * 11 + 6 * 3) + 10 * (5 * 20 + 6 * 3)));
  }
  double executed = 0;
  for (const ShardProducts& p : products) executed += p.flops.executed;
  BOOST_TEST(flops == executed);
  BOOST_TEST(std::abs(sum - 0.5) < 1e-12);
  BOOST_TEST(affine_calls > 0);
  BOOST_TEST(affine_calls % 3 == 0);  // each shard makes the same calls
  BOOST_REQUIRE(products.size() == shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    BOOST_TEST(products[i].flops.model == 3 * formula(small(), shards[i]));
    double listed = 0;
    for (const Product& p : products[i].list) listed += p.flops();
    BOOST_TEST(listed == products[i].flops.executed);
  }
}

BOOST_AUTO_TEST_SUITE_END()
