// Exported graphs compute what the model computes.
#include <fmt/format.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "autograd/base/random.h"
#include "nn/models/classifier.h"
#include "nn/models/model.h"
#include "nn/options.h"
#include "nn/weights.h"
#include "tests/train/exchange_support.h"
#include "tests/train/support.h"

using namespace heed;
using namespace heed::test;

namespace {

/// A model with random weights and its graphs. With int8, the model has the dequantised weights of the
/// graphs.
struct RandomModel {
  Config config;
  std::unique_ptr<Model> model;
  std::map<std::string, Message> graphs;

  RandomModel(const std::string& data, const std::string& keys, bool int8 = false)
      : config(parse_config(data + "model: {d_model: 16, heads: 4, d_ff: 6" + keys + "}\n",
                            "model.yaml")),
        model(make_model(info_of(config.task).architecture, *config.model, {10, 10, true}, 1)) {
    Parameters state = model->state();
    std::uint64_t number = 0;
    for (NamedTensor& each : state) {
      Random random({.seed = 1, .stream = Stream::check, .index = ++number});
      const bool near_one =
          each.name.find("norm") != std::string::npos && each.tensor.shape().rank() == 1;
      for (real& value : each.tensor.mutable_value().values())
        value = static_cast<real>((near_one ? 1 : 0) + 0.4 * random.uniform() - 0.2);
    }
    const QuantisedWeights quantised(state);
    graphs = graphs_of(config, int8 ? quantised.views() : tensor_views(state));
    if (!int8) return;
    for (const TensorView& view : quantised.views()) {
      if (view.dtype != DType::i8) continue;
      const auto scales =
          std::ranges::find(quantised.views(), view.name + ".scale", &TensorView::name);
      Array& values =
          std::ranges::find(state, view.name, &NamedTensor::name)->tensor.mutable_value();
      for (std::int64_t i = 0; i < values.size(); ++i)
        values.data()[i] = static_cast<real>(static_cast<std::int8_t>(view.bytes[i])) *
                           scales->values<float>()[i / values.cols()];
    }
  }

  const ModelOptions& options() const { return *config.model; }
  /// Runs a graph with the caches of an earlier run, or with empty ones.
  OnnxArrays decoded(const std::string& graph, OnnxArrays inputs,
                     const OnnxArrays* before = nullptr) const {
    const std::int64_t kv_heads = options().attention.kv_heads;
    const OnnxArray empty = OnnxArray::of({2, kv_heads == 0 ? options().heads : kv_heads, 0, 4});
    const bool pairs = inputs.contains("encoder_hidden_states");
    if (pairs) inputs["use_cache_branch"] = {{1}, {before == nullptr ? 0.0 : 1.0}};
    for (std::int64_t layer = 0; layer < options().decoder_layers; ++layer) {
      for (const std::string side : {"decoder.", "encoder."}) {
        for (const std::string part : {"key", "value"}) {
          const std::string name = fmt::format("{}.{}{}", layer, pairs ? side : "", part);
          inputs["past_key_values." + name] =
              before == nullptr ? empty : before->at("present." + name);
        }
      }
    }
    return onnx_values(graphs.at(graph), inputs);
  }

  Array rows(const ModelInput& input) const {
    Pass pass;
    if (const auto* const writer = dynamic_cast<const Generative*>(model.get()))
      return writer->logits(input, pass).value();
    return dynamic_cast<const Classifier&>(*model).logits(input, pass).value();
  }
};

using Ids = std::vector<std::int32_t>;

/// Columns [first, end) of two padded sequences of ids.
OnnxArray columns_of(const std::array<Ids, 2>& both, std::size_t first, std::size_t end) {
  OnnxArray all{{2, static_cast<std::int64_t>(end - first)}, {}};
  for (const Ids& ids : both)
    all.values.insert(all.values.end(), ids.begin() + static_cast<std::ptrdiff_t>(first),
                      ids.begin() + static_cast<std::ptrdiff_t>(end));
  return all;
}

SideView view_of(const Ids& ids, Ids& offsets) {
  offsets = {0, static_cast<std::int32_t>(ids.size())};
  return {ids, offsets};
}

/// Compares rows [from, …) of sequence `sequence` of a batch with all rows of `expected`.
void check_rows(const OnnxArray& logits, std::int64_t sequence, std::int64_t from,
                const Array& expected, const std::string& what) {
  double largest = 0;
  for (std::int64_t r = 0; r < expected.rows(); ++r) {
    for (std::int64_t c = 0; c < expected.cols(); ++c) {
      OnnxShape at{sequence, from + r, c};
      if (logits.rank() == 2) at = {sequence, c};
      const double difference = std::abs(logits.at(at) - double{expected.row(r)[c]});
      largest = difference <= largest ? largest : difference;  // NaN remains
    }
  }
  BOOST_TEST(largest < 2e-4, what << ", sequence " << sequence << ": " << largest);
}

/// Rows of `expected` from `from` on.
Array later_rows(const Array& expected, std::int64_t from) {
  return expected.sliced(from, expected.rows());
}

/// Compares the logits of a model that reads rows of `width` values with those of its graphs, for two
/// inputs. A decoder reads the same three target tokens for both inputs.
template <class Rows>
void check_inputs(const RandomModel& built, const OnnxArrays& inputs, std::int64_t width,
                  const std::string& what, const Rows& rows_of) {
  const bool labels = !built.graphs.contains("encoder_model");
  const Ids target{1, 4, 5};
  OnnxArray logits;
  if (labels) {
    logits = onnx_values(built.graphs.at("model"), inputs).at("logits");
  } else {
    OnnxArrays read{
        {"input_ids", columns_of({target, target}, 0, 3)},
        {"encoder_hidden_states",
         onnx_values(built.graphs.at("encoder_model"), inputs).at("last_hidden_state")}};
    if (inputs.contains("attention_mask"))
      read["encoder_attention_mask"] = inputs.at("attention_mask");
    logits = built.decoded("decoder_model_merged", read).at("logits");
  }
  for (const std::int64_t number : {0, 1}) {
    std::vector<float> rows = rows_of(number);
    if (has_class_row(built.config)) rows.insert(rows.begin(), static_cast<std::size_t>(width), 0);
    const Ids offsets{0, static_cast<std::int32_t>(std::ssize(rows) / width)};
    Ids written;
    const SideView source{{}, offsets, rows, width};
    check_rows(logits, number, 0,
               built.rows({source, labels ? SideView{} : view_of(target, written)}), what);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx)

// The second sequence begins with three columns of padding, as clients fill batches of prompts.
BOOST_AUTO_TEST_CASE(graphs_of_language_models_compute_their_logits_with_and_without_a_cache) {
  const std::array<Ids, 2> ids{{{3, 5, 2, 9, 4, 7, 8}, {0, 0, 0, 6, 8, 3, 5}}},
      mask{{{1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 1}}};
  for (
      const std::string keys :
      {", positions: learned", ", positions: sinusoidal, scale_embeddings: false",
       ", positions: rotary, attention: {kv_heads: 2, scale: 0.3}, rotary_base: 20",
       ", positions: rotary, rotary_pairs: adjacent, block: parallel, norm_kind: rms",
       ", positions: alibi, norm: post, final_norm: false, activation: gelu",
       ", positions: relative_shaw, shaw_distance: 3, attention: {kv_heads: 2}",
       ", positions: relative_t5, t5_buckets: 4, t5_distance: 5, norm_kind: rms, activation: geglu",
       ", positions: relative_xl, activation: swiglu, tie_embeddings: false",
       ", positions: relative_xl, bias: false, attention: {scale: 0.3}",
       ", positions: none, norm: none, residual: false, activation: tanh",
       ", activation: sigmoid, attention: {pattern: window, window: 2}",
       ", embedding_norm: true, activation: gelu_tanh, attention: {pattern: topk, top_k: 2}",
       ", activation: silu, output_bias: true, attention: {pattern: linear}",
       ", activation: geglu_tanh, attention: {map: hard}",
       ", attention: {map: sum, scale: none}"}) {
    for (const bool int8 : {false, true}) {
      const RandomModel built("task: lm\ndata: {train: {text: a}}\n",
                              ", layers: 2, context: 9" + keys, int8);
      const auto run = [&](std::size_t first, std::size_t end, const OnnxArrays* before) {
        return built.decoded("model",
                             {{"input_ids", columns_of(ids, first, end)},
                              {"attention_mask", columns_of(mask, 0, end)}},
                             before);
      };
      const OnnxArrays whole = run(0, 7, nullptr), begun = run(0, 5, nullptr),
                       continued = run(5, 7, &begun);
      for (const std::int64_t sequence : {0, 1}) {
        const std::int64_t padding = 3 * sequence;
        Ids offsets;
        const Ids own(ids[sequence].begin() + padding, ids[sequence].end());
        const Array expected = built.rows({{}, view_of(own, offsets)});
        check_rows(whole.at("logits"), sequence, padding, expected, keys);
        check_rows(continued.at("logits"), sequence, 0, later_rows(expected, 5 - padding),
                   keys + ", with a cache");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(graphs_of_encoder_and_decoder_compute_the_logits_of_the_model) {
  const std::array<Ids, 2> source{{{3, 5, 9, 4, 2}, {6, 8, 2, 0, 0}}},
      mask{{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}}, target{{{1, 4, 5, 6}, {1, 7, 3, 9}}};
  for (const std::string keys :
       {", positions: learned", ", positions: rotary, attention: {kv_heads: 2, scale: 0.3}",
        ", norm_kind: rms, norm: post, activation: geglu",
        ", positions: relative_shaw, shaw_distance: 2",
        ", positions: relative_t5, t5_buckets: 8, t5_distance: 5, bias: false",
        ", positions: relative_xl, tie_embeddings: false",
        ", block: parallel, embedding_norm: true", ", attention: {pattern: window, window: 2}",
        ", attention: {pattern: linear}", ", attention: {map: hard}"}) {
    for (const bool int8 : {false, true}) {
      const RandomModel built("task: seq2seq\ndata: {train: {source: a, target: b}}\n",
                              ", layers: {encoder: 1, decoder: 2}" + keys, int8);
      const OnnxArray states = onnx_values(built.graphs.at("encoder_model"),
                                           {{"input_ids", columns_of(source, 0, 5)},
                                            {"attention_mask", columns_of(mask, 0, 5)}})
                                   .at("last_hidden_state");
      const auto run = [&](std::size_t first, std::size_t end, const OnnxArrays* before) {
        return built.decoded("decoder_model_merged",
                             {{"input_ids", columns_of(target, first, end)},
                              {"encoder_hidden_states", states},
                              {"encoder_attention_mask", columns_of(mask, 0, 5)}},
                             before);
      };
      const OnnxArrays whole = run(0, 4, nullptr), begun = run(0, 2, nullptr),
                       continued = run(2, 4, &begun);
      for (const std::int64_t sequence : {0, 1}) {
        Ids read, written;
        const Ids own(source[sequence].begin(), source[sequence].end() - 2 * sequence);
        const Array expected = built.rows({view_of(own, read), view_of(target[sequence], written)});
        check_rows(whole.at("logits"), sequence, 0, expected, keys);
        check_rows(continued.at("logits"), sequence, 0, later_rows(expected, 2),
                   keys + ", with a cache");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(graphs_of_labels_compute_the_logits_of_the_model) {
  const std::array<Ids, 2> ids{{{3, 2, 9, 2, 2}, {6, 8, 2, 0, 0}}},
      mask{{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}};
  const std::string pairs = "data: {train: {source: a, target: b}}\n";
  for (const auto& [data, keys] : std::vector<std::pair<std::string, std::string>>{
           {"task: tag\n" + pairs, ", positions: rotary, rotary_pairs: adjacent"},
           {"task: tag\n" + pairs, ", positions: alibi"},
           {"task: tag\n" + pairs,
            ", positions: relative_xl, attention: {pattern: window, window: 2}"},
           {"task: tag\n" + pairs, ", attention: {pattern: linear}, norm_kind: batch"},
           {"task: classify\n" + pairs, ", pool: first, segments: 2"},
           {"task: classify\n" + pairs, ", pool: mean, positions: learned"},
           {"task: mlm\ndata: {train: {text: a}}\ntokenizer: {kind: word, specials: [<mask>]}\n",
            ", segments: 2, head_transform: true, embedding_norm: true, positions: learned, "
            "norm: post, final_norm: false, output_bias: true, activation: gelu"}}) {
    const RandomModel built(data, ", layers: 2" + keys);
    const OnnxArray logits =
        onnx_values(built.graphs.at("model"), {{"input_ids", columns_of(ids, 0, 5)},
                                               {"attention_mask", columns_of(mask, 0, 5)}})
            .at("logits");
    for (const std::int64_t sequence : {0, 1}) {
      Ids offsets;
      const Ids own(ids[sequence].begin(), ids[sequence].end() - 2 * sequence);
      check_rows(logits, sequence, 0, built.rows({view_of(own, offsets), {}}), data + keys);
    }
  }
}

// An image has 4 lines of 8 patches; a patch has 2 × 2 pixels with 3 channels, side by side.
BOOST_AUTO_TEST_CASE(graphs_of_images_compute_the_logits_of_the_model) {
  const std::string image =
      "data: {input: image, image: {height: 8, width: 16, channels: 3, patch: 2}, "
      "train: {source: a, target: b}}\n";
  Random random({.seed = 2, .stream = Stream::check, .index = 1});
  OnnxArray pixels{{2, 3, 8, 16}, {}};
  for (int i = 0; i < 2 * 3 * 8 * 16; ++i)
    pixels.values.push_back(static_cast<double>(static_cast<float>(random.uniform() - 0.5)));
  for (const auto& [task, keys] : std::vector<std::pair<std::string, std::string>>{
           {"classify", ", layers: 2, pool: first, positions: learned"},
           {"classify", ", layers: 2, pool: mean, front_end: {kind: conv, layers: 2}"},
           {"classify", ", kind: swin, pool: mean, swin: {window: 2, depths: [2, 1]}"},
           {"classify", ", kind: swin, pool: mean, swin: {window: 3, depths: [2]}, norm_kind: rms"},
           {"seq2seq", ", layers: 1, positions: learned"}}) {
    const RandomModel built("task: " + task + "\n" + image, keys);
    check_inputs(built, {{"pixel_values", pixels}}, 12, task + keys, [&](std::int64_t number) {
      std::vector<float> rows;
      for (std::int64_t patch = 0; patch < 32; ++patch)
        for (std::int64_t i = 0; i < 12; ++i)
          rows.push_back(static_cast<float>(
              pixels.at({number, i % 3, patch / 8 * 2 + i / 6, patch % 8 * 2 + i / 3 % 2})));
      return rows;
    });
  }
}

// Two sequences of 7 and 5 rows with 3 values. The last window of each of the two convolutions that
// the second sequence fills reaches one row beyond its end.
BOOST_AUTO_TEST_CASE(graphs_of_features_compute_the_logits_of_the_model) {
  const std::string features =
      "data: {input: features, features: {width: 3}, train: {source: a, target: b}}\n";
  Random random({.seed = 3, .stream = Stream::check, .index = 1});
  OnnxArray rows{{2, 7, 3}, {}};
  for (int i = 0; i < 2 * 7 * 3; ++i)
    rows.values.push_back(static_cast<double>(static_cast<float>(random.uniform() - 0.5)));
  const OnnxArray mask{{2, 7}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}};
  for (const auto& [task, keys] : std::vector<std::pair<std::string, std::string>>{
           {"classify", ", layers: 1, pool: first"},
           {"classify", ", layers: 1, pool: mean, front_end: {kind: conv, layers: 2}"},
           {"seq2seq", ", layers: 1, front_end: {kind: conv, layers: 2}"}}) {
    const RandomModel built("task: " + task + "\n" + features, keys);
    check_inputs(built, {{"input_features", rows}, {"attention_mask", mask}}, 3, task + keys,
                 [&](std::int64_t number) {
                   std::vector<float> own;
                   for (std::int64_t i = 0; i < (number == 0 ? 21 : 15); ++i)
                     own.push_back(static_cast<float>(rows.at({number, i / 3, i % 3})));
                   return own;
                 });
  }
}

BOOST_AUTO_TEST_SUITE_END()
