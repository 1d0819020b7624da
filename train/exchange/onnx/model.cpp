#include "train/exchange/onnx/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/base/error.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "nn/weights.h"
#include "train/config/tasks.h"
#include "train/exchange/onnx/layers.h"
#include "train/exchange/onnx/swin.h"

HEED_BEGIN

namespace {

using Dimensions = std::vector<OnnxDimension>;

const std::string batch_size = "batch_size";  // clients look for this name

/// Builds the graphs of one model.
class OnnxModel {
 public:
  OnnxModel(const Config& config, OnnxBuilder& builder)
      : config_(config), o_(*config.model), b_(builder) {}

  void language_model();
  void encoder_of_pairs();
  void decoder_of_pairs();
  void labels();

 private:
  /// Rows [batch, length, d], and their mask, as clients give it: [batch, length] or empty.
  struct Source {
    OnnxValue rows, mask;
  };

  std::int64_t limit() const;
  std::int64_t kv_heads() const {
    return o_.attention.kv_heads == 0 ? o_.heads : o_.attention.kv_heads;
  }
  Dimensions cache_shape(const char* length) const {
    return {batch_size, kv_heads(), length, o_.d_model / o_.heads};
  }
  OnnxValue embedded(const std::string& table, const OnnxValue& ids);
  OnnxValue mask_input(const char* name, const char* length) {
    return b_.input(name, DType::i64, {batch_size, length});
  }
  Source text(const std::string& table);
  OnnxValue patches();
  Source features(const std::string& name);
  OnnxValue convolved(const OnnxValue& x, const std::string& layer, std::size_t axes);
  Source source(const std::string& table, const std::string& input);
  OnnxSequences sequences_of(const OnnxValue& rows);
  OnnxValue encoded(const Source& source, const std::string& positions);
  /// Keys and values of self-attention, after those of earlier calls.
  std::function<OnnxKeysAndValues(const OnnxKeysAndValues&, std::int64_t)> cache(const char* side);
  OnnxValue past_length(const char* side);
  void logits(const OnnxValue& rows, const std::string& embedding, const Dimensions& shape);

  const Config& config_;
  const ModelOptions& o_;
  OnnxBuilder& b_;
};

/// The number of positions in tables that are computed.
std::int64_t OnnxModel::limit() const {
  if (info_of(config_.task).architecture == Architecture::decoder) return o_.context;
  return std::max(
      {o_.max_positions, config_.decode.max_length, o_.grid_height * o_.grid_width + 1});
}

/// Embeddings of ids [batch, length], scaled as the model requires: [batch, length, d].
OnnxValue OnnxModel::embedded(const std::string& table, const OnnxValue& ids) {
  const OnnxValue rows = b_.lookup(table, ids);
  if (!o_.scale_embeddings) return rows;
  return b_.mul(rows, b_.number(std::sqrt(static_cast<double>(o_.d_model))));
}

// ---- inputs ------------------------------------------------------------------------------------

OnnxModel::Source OnnxModel::text(const std::string& table) {
  const OnnxValue ids = mask_input("input_ids", "sequence_length"),
                  mask = mask_input("attention_mask", "sequence_length");
  OnnxValue rows = embedded(table, ids);
  if (b_.has("segments.weight")) {  // the number of </s> before a row (Backbone::segments_of)
    const OnnxValue ends = b_.cast(b_.op("Equal", {ids, b_.integer(Tokenizer::eos)}), DType::i64);
    const OnnxValue before = b_.sub(b_.op("CumSum", {ends, b_.integer(1)}), ends);
    rows = b_.add(rows, embedded("segments.weight", b_.clamp(before, 0, o_.segments - 1)));
  }
  return {rows, mask};
}

/// Pixels [batch, channels, height, width] → patches [batch, patches, width of a patch], as Images has
/// them: line by line, the channels of a pixel side by side.
OnnxValue OnnxModel::patches() {
  const ImageOptions& image = config_.data.image;
  const std::int64_t c = image.channels, p = image.patch, gh = o_.grid_height, gw = o_.grid_width;
  const OnnxValue pixels =
      b_.input("pixel_values", DType::f32, {batch_size, c, image.height, image.width});
  const OnnxValue grid = b_.reshape(pixels, {std::int64_t{-1}, c, gh, p, gw, p});
  return b_.reshape(b_.transpose(grid, {0, 2, 4, 3, 5, 1}), {std::int64_t{-1}, gh * gw, p * p * c});
}

/// gelu(convolution): [batch, …, channels] with a kernel of 3 and a stride of 2 along each of `axes`
/// axes between the first and the last (FrontEnd).
OnnxValue OnnxModel::convolved(const OnnxValue& x, const std::string& layer, std::size_t axes) {
  std::vector<OnnxDimension> kernel_shape(axes + 2, std::int64_t{3});
  kernel_shape.front() = o_.d_model;
  kernel_shape.back() = std::int64_t{-1};
  const auto last = static_cast<std::int64_t>(axes) + 1;
  std::vector<std::int64_t> channels_first{0, last}, channels_last{0};
  for (std::int64_t axis = 1; axis < last; ++axis) {
    channels_first.push_back(axis);
    channels_last.push_back(axis + 1);
  }
  channels_last.push_back(1);
  const OnnxValue kernel =
      b_.transpose(b_.reshape(b_.weight(layer + ".weight"), kernel_shape), channels_first);
  const OnnxValue y =
      b_.op("Conv", {b_.transpose(x, channels_first), kernel, b_.weight(layer + ".bias")},
            {{"pads", std::vector<std::int64_t>(2 * axes, 1)},
             {"strides", std::vector<std::int64_t>(axes, 2)}});
  return b_.unary("gelu", b_.transpose(y, channels_last));
}

/// A source of feature rows; `name`: the front end's tensors.
OnnxModel::Source OnnxModel::features(const std::string& name) {
  const bool image = config_.data.input == InputKind::image;
  const bool conv = o_.front_end.kind == FrontEndKind::conv;
  const std::int64_t width = o_.input_width;
  OnnxValue rows, mask;
  if (image) {
    rows = patches();
  } else {
    rows = b_.input("input_features", DType::f32, {batch_size, "sequence_length", width});
    mask = mask_input("attention_mask", "sequence_length");
  }
  if (has_class_row(config_)) {  // a row of zeros
    const OnnxValue batch = b_.size(rows, 0);
    const auto first = [&](const OnnxValue& value, const std::vector<OnnxDimension>& shape,
                           const OnnxValue& others) {
      return b_.op("Concat", {b_.op("Expand", {value, b_.shape_of(shape)}), others},
                   {{"axis", std::int64_t{1}}});
    };
    rows = first(b_.number(0), {batch, std::int64_t{1}, width}, rows);
    if (!mask.empty()) mask = first(b_.integer(1), {batch, std::int64_t{1}}, mask);
  }
  if (!conv) {
    const OnnxSequences s = sequences_of(rows);
    const OnnxValue projected = b_.linear(b_.reshape(rows, {std::int64_t{-1}, width}), name);
    return {b_.reshape(projected, {s.batch, s.length, o_.d_model}), mask};
  }
  std::int64_t height = o_.grid_height, line = o_.grid_width;
  if (line > 0) rows = b_.reshape(rows, {std::int64_t{0}, height, line, std::int64_t{-1}});
  for (std::int64_t i = 0; i < o_.front_end.layers; ++i) {
    if (!mask.empty()) {  // rows of the padding are zeros
      rows = b_.mul(rows, b_.unsqueeze(b_.cast(mask, DType::f32), {2}));
      mask = b_.slice(mask, 1, b_.integers({0}), 2);
    }
    rows = convolved(rows, fmt::format("{}.layers.{}", name, i), line > 0 ? 2 : 1);
    height = (height + 1) / 2;
    line = (line + 1) / 2;
  }
  if (line > 0) rows = b_.reshape(rows, {std::int64_t{0}, height * line, o_.d_model});
  return {rows, mask};
}

OnnxModel::Source OnnxModel::source(const std::string& table, const std::string& input) {
  return o_.input_width > 0 ? features(input) : text(table);
}

OnnxSequences OnnxModel::sequences_of(const OnnxValue& rows) {
  return {b_.size(rows, 0), b_.size(rows, 1)};
}

/// The rows of the encoder: [batch · length, d].
OnnxValue OnnxModel::encoded(const Source& source, const std::string& positions) {
  OnnxSequences sequences = sequences_of(source.rows);
  OnnxStack stack(b_, o_, BlockKind::encoder, positions, limit());
  stack.place(sequences, source.mask, "");
  return stack(source.rows, sequences, "encoder", o_.encoder_layers);
}

// ---- cache -------------------------------------------------------------------------------------

/// Inputs and outputs of a layer's keys and values are past_key_values.LAYER.SIDE.key and .value, and
/// present.….
std::function<OnnxKeysAndValues(const OnnxKeysAndValues&, std::int64_t)> OnnxModel::cache(
    const char* side) {
  return [this, side](const OnnxKeysAndValues& fresh, std::int64_t layer) {
    const auto joined = [&](const OnnxValue& values, const char* what) {
      const std::string name = fmt::format("{}.{}{}", layer, side, what);
      const OnnxValue all =
          b_.op("Concat", {"past_key_values." + name, values}, {{"axis", std::int64_t{2}}});
      b_.output("present." + name, DType::f32, cache_shape("total_sequence_length"), all);
      return all;
    };
    const OnnxValue keys = joined(fresh.keys, "key");
    return OnnxKeysAndValues{keys, joined(fresh.values, "value")};
  };
}

/// Declares the inputs of the cache and returns the number of positions in it: [1].
OnnxValue OnnxModel::past_length(const char* side) {
  for (std::int64_t layer = 0; layer < o_.decoder_layers; ++layer) {
    for (const char* const what : {"key", "value"})
      b_.input(fmt::format("past_key_values.{}.{}{}", layer, side, what), DType::f32,
               cache_shape("past_sequence_length"));
  }
  return b_.size(fmt::format("past_key_values.0.{}key", side), 2);
}

/// The output `logits` of rows [rows, d].
void OnnxModel::logits(const OnnxValue& rows, const std::string& embedding,
                       const Dimensions& shape) {
  const bool separate = b_.has("output.weight");
  const OnnxValue all = separate ? b_.linear(rows, "output")
                                 : b_.affine(rows, b_.weight(embedding),
                                             b_.has("output.bias") ? b_.weight("output.bias") : "");
  const OnnxValue shaped = shape.size() == 2 ? all : b_.reshape(all, shape);
  Dimensions dimensions = shape;
  dimensions[0] = batch_size;
  if (shape.size() == 3) dimensions[1] = "sequence_length";
  dimensions.back() = b_.shape_of_weight(separate ? "output.weight" : embedding)[0];
  b_.output("logits", DType::f32, dimensions, shaped);
}

// ---- models ------------------------------------------------------------------------------------

void OnnxModel::language_model() {
  const OnnxValue ids = mask_input("input_ids", "sequence_length"),
                  mask = mask_input("attention_mask", "total_sequence_length"),
                  past = past_length("");
  OnnxSequences sequences = sequences_of(ids);
  sequences.cached = cache("");
  OnnxStack stack(b_, o_, BlockKind::causal, "positions", limit());
  stack.place(sequences, mask, past);
  const OnnxValue rows =
      stack(embedded("embedding.weight", ids), sequences, "decoder", o_.decoder_layers);
  logits(rows, "embedding.weight", {sequences.batch, sequences.length, std::int64_t{-1}});
}

void OnnxModel::encoder_of_pairs() {
  const bool shared = b_.has("embedding.weight");
  const Source from =
      source(shared ? "embedding.weight" : "source_embedding.weight", "source_input");
  const OnnxValue rows = encoded(from, "source_positions");
  const OnnxSequences s = sequences_of(from.rows);
  b_.output("last_hidden_state", DType::f32, {batch_size, "encoder_sequence_length", o_.d_model},
            b_.reshape(rows, {s.batch, s.length, o_.d_model}));
}

void OnnxModel::decoder_of_pairs() {
  const std::string table =
      b_.has("embedding.weight") ? "embedding.weight" : "target_embedding.weight";
  const OnnxValue ids = mask_input("input_ids", "sequence_length");
  const OnnxValue states = b_.input("encoder_hidden_states", DType::f32,
                                    {batch_size, "encoder_sequence_length", o_.d_model});
  OnnxSequences sequences = sequences_of(ids), encoder = sequences_of(states);
  if (config_.data.input != InputKind::image) {
    OnnxValue mask = mask_input("encoder_attention_mask", "encoder_mask_length");
    if (o_.input_width > 0 && o_.front_end.kind == FrontEndKind::conv)
      mask = b_.slice(mask, 1, b_.integers({0}), std::int64_t{1} << o_.front_end.layers);
    sequences.encoder_visible = b_.unsqueeze(b_.cast(mask, DType::boolean), {1, 2});
  }
  const OnnxValue past = past_length("decoder.");
  const OnnxValue read = b_.input("use_cache_branch", DType::boolean, {std::int64_t{1}});
  OnnxStack stack(b_, o_, BlockKind::decoder, "target_positions", limit());
  sequences.cached = cache("decoder.");
  const OnnxValue rows_of_encoder = b_.reshape(states, {std::int64_t{-1}, o_.d_model});
  sequences.encoded = [&](const std::string& name, std::int64_t layer) {
    const auto past_of = [&](const char* what) {
      return b_.input(fmt::format("past_key_values.{}.encoder.{}", layer, what), DType::f32,
                      cache_shape("past_encoder_sequence_length"));
    };
    const OnnxValue keys = past_of("key"), values = past_of("value");
    const auto kept = [&] {
      return std::vector{b_.op("Identity", {keys}), b_.op("Identity", {values})};
    };
    const auto computed = [&] {
      const OnnxKeysAndValues kv = stack.keys_and_values(rows_of_encoder, encoder, name);
      return std::vector{kv.keys, kv.values};
    };
    const auto kv = b_.choose(read, kept, computed);
    const auto name_of_output = [&](const char* what) {
      return fmt::format("present.{}.encoder.{}", layer, what);
    };
    b_.output(name_of_output("key"), DType::f32, cache_shape("encoder_sequence_length"), kv[0]);
    b_.output(name_of_output("value"), DType::f32, cache_shape("encoder_sequence_length"), kv[1]);
    return OnnxKeysAndValues{kv[0], kv[1]};
  };
  stack.place(sequences, "", past);
  const OnnxValue rows = stack(embedded(table, ids), sequences, "decoder", o_.decoder_layers);
  logits(rows, table, {sequences.batch, sequences.length, std::int64_t{-1}});
}

void OnnxModel::labels() {
  const bool of_sequences =
      info_of(config_.task).architecture == Architecture::encoder_of_sequences;
  Source from;
  OnnxValue rows;
  if (o_.kind == ModelKind::swin) {
    from.rows = onnx_swin(b_, o_, patches());
    rows = from.rows;
  } else {
    from = source("embedding.weight", "input");
    rows = encoded(from, "positions");
  }
  const OnnxSequences s = sequences_of(from.rows);
  if (!of_sequences) {
    if (b_.has("transform.dense.weight"))
      rows = b_.norm(o_, b_.activation(o_.activation, b_.linear(rows, "transform.dense")),
                     "transform.norm");
    logits(rows, "embedding.weight", {s.batch, s.length, std::int64_t{-1}});
    return;
  }
  if (o_.kind != ModelKind::swin) rows = b_.reshape(rows, {s.batch, s.length, o_.d_model});
  OnnxValue pooled;
  if (o_.pool == Pool::first) {
    pooled = b_.gather(rows, b_.integer(0), 1);
  } else if (from.mask.empty()) {
    pooled = b_.op("ReduceMean", {rows},
                   {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", std::int64_t{0}}});
  } else {
    const OnnxValue read = b_.unsqueeze(b_.cast(from.mask, DType::f32), {2});
    pooled = b_.op("Squeeze", {b_.op("Div", {b_.sum(b_.mul(rows, read), 1), b_.sum(read, 1)}),
                               b_.integers({1})});
  }
  logits(pooled, "", {s.batch, std::int64_t{-1}});
}

}  // namespace

void require_onnx(const Config& config) {
  static_assert(names_of(PatternKind{}).size() == 5 && names_of(ScoreMap{}).size() == 3 &&
                    names_of(NormKind{}).size() == 3 && names_of(BlockForm{}).size() == 2,
                "OnnxStack must compute a new kind, or this function refuse it");
  const ModelOptions& o = *config.model;
  std::vector<std::string> found;
  const auto refuse = [&](bool is, const char* key, const auto& value, const char* advice) {
    if (is) found.push_back(fmt::format("model.{} is {}: {}", key, value, advice));
  };
  refuse(o.mixer != MixerKind::attention, "mixer", name_of(o.mixer), "train with attention");
  refuse(!is_built_in(o.activation), "activation", name_of(o.activation),
         "train with an activation that is not a plugin's");
  refuse(o.attention.pattern == PatternKind::bigbird, "attention.pattern", "bigbird",
         "its random blocks depend on the length of a sequence; train with window or full");
  refuse(o.memory > 0, "memory", o.memory, "train with 0");
  constexpr std::int64_t farthest = 1'000'000;
  refuse(o.positions == PositionKind::relative_t5 && o.t5_distance > farthest, "t5_distance",
         o.t5_distance, "train with a maximum of 1,000,000");
  if (!is_built_in(config.task))
    found.push_back(fmt::format("task {} is a plugin's", name_of(config.task)));
  if (!found.empty())
    throw Error(Exit::usage, "onnx cannot express this model:\n  {}", fmt::join(found, "\n  "));
}

std::deque<OnnxPart> onnx_parts(const Config& config, OnnxWeights& weights) {
  require_onnx(config);
  std::deque<OnnxPart> parts;
  const auto add = [&](const char* name, void (OnnxModel::*build)()) {
    OnnxPart& part = parts.emplace_back(name, weights);
    (OnnxModel(config, part.graph).*build)();
  };
  const Architecture architecture = info_of(config.task).architecture;
  if (architecture == Architecture::decoder) {
    add("model", &OnnxModel::language_model);
  } else if (architecture == Architecture::encoder_decoder) {
    add("encoder_model", &OnnxModel::encoder_of_pairs);
    add("decoder_model_merged", &OnnxModel::decoder_of_pairs);
  } else {
    add("model", &OnnxModel::labels);
  }
  if (const std::string unused = weights.unused(); !unused.empty())
    fail("[onnx] {} is in no graph", unused);
  return parts;
}

void for_each_onnx_file(const Config& config, std::span<const NamedTensor> state, bool int8,
                        const std::function<void(const std::string&, const OnnxGraph&)>& visit) {
  const auto visit_parts = [&](std::span<const TensorView> views) {
    OnnxWeights weights(views);
    for (const OnnxPart& part : onnx_parts(config, weights)) visit(part.name, part.graph.graph());
  };
  if (int8)
    visit_parts(QuantisedWeights(state).views());
  else
    visit_parts(tensor_views(state));
}

HEED_END
