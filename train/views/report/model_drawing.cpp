#include "train/views/report/model_drawing.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/inputs/input_info.h"
#include "nn/layers/activations.h"
#include "nn/layers/mixer.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/views/draw/column.h"
#include "train/views/draw/svg.h"

namespace heed {

namespace {

using Texts = std::vector<std::string>;
constexpr int plain = 1, wide = 2, weights = 3, mixing = 4;  // tints

std::string shape(const std::string& rows, std::int64_t columns) {
  return fmt::format("[{}, {}]", rows, columns);
}
std::string map(std::int64_t from, std::int64_t to) { return fmt::format("{} → {}", from, to); }

template <class Enum>
std::string name(Enum value) {
  return std::string(names_of(value)[static_cast<std::size_t>(value)]);
}

/// Text lines common to self-attention and cross-attention.
Texts heads_of(const ModelOptions& o) {
  const AttentionChoice& a = o.attention;
  Texts lines{fmt::format("{} head{}", o.heads, o.heads == 1 ? "" : "s")};
  if (a.kv_heads > 0 && a.kv_heads < o.heads)
    lines[0] += fmt::format(", {} for keys and values", a.kv_heads);
  if (a.map != ScoreMap::softmax) lines.push_back(name(a.map) + " in place of softmax");
  if (a.scale != 0) lines.push_back("scores times " + svg_number(a.scale));
  return lines;
}

/// Adds the text lines that only self-attention has.
void add_choices(Texts& lines, const ModelOptions& o) {
  const AttentionChoice& a = o.attention;
  if (const auto own = info_of(a.pattern).lines; own != nullptr)
    for (std::string& line : own(a)) lines.push_back(std::move(line));
  if (info_of(o.positions).by_distance) lines.push_back("positions: " + name(o.positions));
  if (o.memory > 0) lines.push_back(fmt::format("segment memory of size {}", o.memory));
}

class ModelDrawing {
 public:
  ModelDrawing(const Config& config, const Vocabulary& vocabulary)
      : config_(config),
        o_(config.model),
        architecture_(info_of(config.task).architecture),
        vocabulary_(vocabulary),
        parameters_(build_uninitialised(config, vocabulary.sizes)->parameters()),
        both_(has_encoder(architecture_) && has_decoder(architecture_)) {}

  std::string file() {
    std::vector<Column> columns;
    if (has_encoder(architecture_)) columns.push_back(encoder());
    const double from = embedding_;
    if (has_decoder(architecture_)) {
      columns.push_back(decoder(columns.empty() ? 0 : columns[0].half() + 48));
      if (both_) join(columns[0], columns[1], from);
    }
    std::string list;
    return columns_file(
        columns,
        {fmt::format("{}: {}, {}", config_.name, info_of(config_.task).name, counted({""}, list)),
         "vocabulary: " + vocabulary_.basis,
         fmt::format(
             "dropout: {} on sublayers, {} on attention weights, {} on feed-forward activations",
             o_.dropout.residual, o_.dropout.attention, o_.dropout.activation)});
  }

 private:
  // ---- parameters

  static bool is_of(const NamedTensor& p, const std::string& part) {
    return part.empty() || p.name == part || p.name.starts_with(part + ".");
  }
  bool has(const std::string& part) const {
    return std::ranges::any_of(parameters_, [&](const auto& p) { return is_of(p, part); });
  }
  /// The number of parameters of these parts, as in "12 parameters". Appends one line per tensor to
  /// `list`.
  std::string counted(const Texts& parts, std::string& list) const {
    std::int64_t values = 0;
    for (const NamedTensor& p : parameters_) {
      if (std::ranges::none_of(parts, [&](const auto& part) { return is_of(p, part); })) continue;
      values += p.tensor.size();
      list += fmt::format("{}{} {}", list.empty() ? "" : "\n", p.name, p.tensor.shape());
    }
    return fmt::format("{} parameters", values);
  }
  Box box(const std::string& name, Texts lines, const Texts& parts, int tint,
          bool reads_side_box = false) const {
    std::string list;
    const std::string count = counted(parts, list);
    if (!list.empty()) lines.push_back(count);
    return {name, std::move(lines), list, tint, reads_side_box};
  }

  // ---- blocks

  Box norm(const std::string& part) const {
    constexpr std::array names{"Layer norm", "RMS norm", "Batch norm"};
    return box(names.at(static_cast<std::size_t>(o_.norm_kind)), {}, {part}, plain);
  }
  /// `more`: additional text lines.
  Box mixer(const ModelOptions& o, const std::string& block, bool causal,
            const Texts& more = {}) const {
    if (o.mixer == MixerKind::attention) {
      Texts lines = heads_of(o);
      add_choices(lines, o);
      lines.insert(lines.end(), more.begin(), more.end());
      return box(causal ? "Causal self-attention" : "Self-attention", lines,
                 {block + ".self_attn", block + ".positions"}, mixing);
    }
    const Texts part{block + ".mixer"};
    if (o.mixer == MixerKind::conv) {
      return box("Gated convolution",
                 {fmt::format("{} tokens{}", o.conv_width, causal ? " up to the current one" : "")},
                 part, mixing);
    }
    if (!is_built_in(o.mixer)) return box(name(o.mixer), {}, part, mixing);
    return box(o.mixer == MixerKind::lstm ? "LSTM" : "GRU",
               {causal ? fmt::format("width {}", o.d_model)
                       : fmt::format("two directions of width {}", o.d_model / 2)},
               part, mixing);
  }
  Box feed_forward(const ModelOptions& o, const std::string& block) const {
    return box("Feed-forward",
               {fmt::format("{} → {}{} → {}, {}", o.d_model, gate_of(o.activation) ? "2 × " : "",
                            o.d_ff, o.d_model, name(o.activation))},
               {block + ".linear1", block + ".linear2"}, wide);
  }
  /// Draws sublayers with the same input, their norm and their residual connection.
  void draw_sublayers(Column& column, const std::string& norm_name,
                      const std::vector<Box>& boxes) const {
    column.rise("", 10, false);
    const double from = column.top + 4;
    column.rise("", 12, o_.norm == NormPlace::pre || boxes.size() == 1);
    if (o_.norm == NormPlace::pre) {
      column.box(norm(norm_name));
      column.rise("", 12, boxes.size() == 1);
    }
    boxes.size() == 1 ? column.box(boxes[0]) : column.boxes(boxes);
    if (o_.residual) column.add_from(from);
    if (o_.norm != NormPlace::post) return;
    column.rise();
    column.box(norm(norm_name));
  }
  void draw_block(Column& column, const ModelOptions& o, const std::string& block, const Box& mixer,
                  bool reads_memory) const {
    std::vector<Box> boxes{mixer};
    const bool serial = o.block == BlockForm::serial;
    if (reads_memory)
      boxes.insert(serial ? boxes.end() : boxes.begin(),
                   box("Cross-attention", heads_of(o), {block + ".multihead_attn"}, mixing, true));
    boxes.push_back(feed_forward(o, block));
    if (!serial) draw_sublayers(column, block + ".norm1", boxes);
    for (std::size_t i = 0; serial && i < boxes.size(); ++i)
      draw_sublayers(column, fmt::format("{}.norm{}", block, i + 1), {boxes[i]});
  }
  /// Draws one of `n` equal blocks, in a frame labelled with `n`. Draws nothing if `n` is 0.
  template <class Draw>
  void draw_blocks(Column& column, const std::string& blocks, std::int64_t n, Draw draw) const {
    if (n == 0) return;
    std::string list;
    std::string count = counted({blocks + ".0"}, list);
    const std::size_t space = count.find(' ');
    column.frame({fmt::format("{} ×", n), count.substr(0, space), count.substr(space + 1)},
                 [&] { draw(blocks + ".0"); });
  }
  void draw_stack(Column& column, const std::string& stack, const std::string& rows,
                  std::int64_t depth, bool decodes) const {
    column.rise(shape(rows, o_.d_model), 22);
    draw_blocks(column, stack + ".layers", depth, [&](const std::string& block) {
      draw_block(column, o_, block, mixer(o_, block, decodes), decodes && both_);
    });
    draw_last_norm(column, stack);
  }
  void draw_last_norm(Column& column, const std::string& stack) const {
    if (!has(stack + ".norm")) return;
    column.rise();
    column.box(norm(stack + ".norm"));
  }

  // ---- columns

  Column column(double side, bool reads_memory) const {
    return {0, side, Column::width_of(o_.block == BlockForm::serial ? 1 : reads_memory ? 3 : 2)};
  }

  Column encoder() {
    Column c = column(-1, false);
    const std::string prefix = both_ ? "source_" : "";
    std::string rows = both_ ? "source rows" : "rows";
    if (o_.kind == ModelKind::swin) {
      draw_swin(c);
      return c;
    }
    if (o_.input_width > 0)
      rows = draw_front_end(c, prefix + "input", rows);
    else
      draw_embedding(c, both_ ? "source tokens" : "tokens", prefix, vocabulary_.sizes.source, rows);
    draw_positions(c, prefix, o_.max_positions);
    draw_stack(c, "encoder", rows, o_.encoder_layers, false);
    if (!both_) draw_labels(c, rows, o_.d_model);
    return c;
  }

  Column decoder(double left) {
    Column c = column(1, both_);
    if (both_) c.x = left + c.half();
    const std::string prefix = both_ ? "target_" : "", rows = both_ ? "target rows" : "rows";
    draw_embedding(c, both_ ? "target tokens" : "tokens", prefix, vocabulary_.sizes.target, rows);
    draw_positions(c, prefix, both_ ? o_.max_positions : o_.context);
    draw_stack(c, "decoder", rows, o_.decoder_layers, true);
    draw_output(c, rows, o_.d_model, vocabulary_.sizes.target, "logits of the next token");
    return c;
  }

  void draw_embedding(Column& c, const std::string& what, const std::string& prefix,
                      std::int64_t tokens, const std::string& rows) {
    Texts lines{fmt::format("{} × {}", tokens, o_.d_model)};
    if (o_.scale_embeddings) lines[0] += fmt::format(", times √{}", o_.d_model);
    // The parameters of a shared table are listed only in the column of the target.
    const bool repeated = has("embedding") && prefix == "source_";
    if (repeated) lines.emplace_back("the same matrix");
    const Box embedding =
        repeated ? Box{"Embedding", lines, "", weights}
                 : box("Embedding", lines, {has("embedding") ? "embedding" : prefix + "embedding"},
                       weights);
    c.caption(what);
    c.rise(fmt::format("[{}]", rows));
    embedding_ = c.top - embedding.height() / 2;
    c.box(embedding);
    if (has("segments")) c.add_side_box(box("Segments", {"learned"}, {"segments"}, weights));
  }

  void draw_positions(Column& c, const std::string& prefix, std::int64_t max_length) const {
    const PositionScheme& scheme = info_of(o_.positions);
    if (scheme.label.empty()) return;
    const Box positions =
        box(scheme.by_distance ? "Distances" : "Positions",
            {fmt::format(fmt::runtime(scheme.label), max_length)}, {prefix + "positions"}, weights);
    scheme.by_distance ? c.feed_from_side(positions) : c.add_side_box(positions);
  }

  /// Draws two captions for a source other than text: its size, and the content of a row.
  void draw_source(Column& c, bool class_row) const {
    const auto [source, row] = info_of(config_.data.input).captions(config_.data);
    c.caption(source);
    c.caption(row + (class_row ? ", after a row of zeros" : ""), "more");
  }
  /// Draws the source and the front end. Returns the number of output rows as text: "49",
  /// "source rows / 4".
  std::string draw_front_end(Column& c, const std::string& part, const std::string& rows) const {
    const bool class_row =
        architecture_ == Architecture::encoder_of_sequences && o_.pool == Pool::first;
    std::int64_t patches = fixed_rows(config_.data), height = o_.grid_height, width = o_.grid_width,
                 channels = o_.input_width;
    std::string made = patches > 0 ? std::to_string(patches + (class_row ? 1 : 0)) : rows;
    draw_source(c, class_row);
    c.rise(shape(made, channels));
    if (o_.front_end.kind == FrontEndKind::linear || o_.kind == ModelKind::swin) {
      c.box(box("Linear", {map(channels, o_.d_model)}, {part}, weights));
      return made;
    }
    for (std::int64_t i = 0; i < o_.front_end.layers; ++i, channels = o_.d_model) {
      if (i > 0) c.rise(shape(made, channels));
      c.box(box("Convolution",
                {fmt::format("{}, stride 2, {}, gelu", width > 0 ? "3 × 3" : "3 rows",
                             map(channels, o_.d_model))},
                {fmt::format("{}.layers.{}", part, i)}, weights));
      height = (height + 1) / 2;
      width = (width + 1) / 2;
      made = width > 0 ? std::to_string(height * width)
                       : fmt::format("{} / {}", rows, std::int64_t{2} << i);
    }
    return made;
  }

  void draw_swin(Column& c) const {
    std::string rows = draw_front_end(c, "encoder.input", "");
    c.rise();
    c.box(norm("encoder.input_norm"));
    ModelOptions o = o_;
    std::int64_t height = o.grid_height, width = o.grid_width;
    for (std::size_t s = 0; s < o.swin.depths.size(); ++s) {
      const std::string stage = fmt::format("encoder.stages.{}", s);
      c.rise(shape(rows, o.d_model), 22);
      if (s > 0) {
        const std::int64_t d = o.d_model;
        c.box(box("Merge 2 × 2 patches", {"norm, " + map(4 * d, 2 * d)}, {stage + ".merge"},
                  weights));
        for (std::int64_t* const size : {&o.d_model, &o.d_ff, &o.heads, &o.attention.kv_heads})
          *size *= 2;
        rows = std::to_string((height /= 2) * (width /= 2));
        c.rise(shape(rows, o.d_model), 22);
      }
      const std::int64_t side = std::min(o.swin.window, std::max(height, width));
      Texts lines{fmt::format("windows of {0} × {0} patches", side)};
      if (std::max(height, width) > side && o.swin.depths[s] > 1)
        lines.push_back(fmt::format("every second block: shifted by {}", side / 2));
      lines.emplace_back("biases of relative positions");
      draw_blocks(c, stage + ".layers", o.swin.depths[s], [&](const std::string& block) {
        draw_block(c, o, block, mixer(o, block, false, lines), false);
      });
    }
    draw_last_norm(c, "encoder");
    draw_labels(c, rows, o.d_model);
  }

  /// Draws the output layers of a model without a decoder.
  void draw_labels(Column& c, const std::string& rows, std::int64_t d) const {
    const VocabularySizes& sizes = vocabulary_.sizes;
    if (architecture_ == Architecture::encoder_of_tokens) {
      draw_output(c, rows, d, sizes.source, "logits of the masked tokens");
    } else if (architecture_ == Architecture::encoder) {
      draw_output(c, rows, d, sizes.target, "logits of each row's label");
    } else {
      c.rise(shape(rows, d), 22);
      c.box({o_.pool == Pool::first ? "First row" : "Mean of the rows", {}, "", plain});
      draw_output(c, "1", d, sizes.target, "logits of the label");
    }
  }

  void draw_output(Column& c, const std::string& rows, std::int64_t d, std::int64_t labels,
                   const std::string& what) const {
    c.rise(shape(rows, d), 22);
    const bool tied = !has("output");
    const Box output = tied ? Box{"Linear", {map(d, labels), "the embedding's matrix"}, "", weights}
                            : box("Linear", {map(d, labels)}, {"output"}, weights);
    if (tied) c.tie(embedding_, c.top - output.height() / 2);
    c.box(output);
    c.rise(shape(rows, labels), 22);
    c.caption(what);
  }

  /// Joins the columns: cross-attention reads the encoder output, and both sides may share one
  /// embedding table.
  void join(Column& from, const Column& to, double source_embedding) const {
    const double up = from.top - 16, channel = from.x + from.half() + 24;
    for (const auto& [x, y] : to.readers)
      from.line(svg("M{} {}V{}H{}V{}H{}", from.x, from.top, up, channel, y, x));
    from.top = up;
    if (!has("embedding")) return;
    const double half = Column::box_width / 2;
    from.line(
        svg("M{} {}H{}V{}H{}", from.x + half, source_embedding, channel, embedding_, to.x - half),
        "line tie");
  }

  const Config& config_;
  const ModelOptions& o_;
  Architecture architecture_;
  const Vocabulary& vocabulary_;
  Parameters parameters_;
  bool both_;             ///< whether the model has both an encoder and a decoder
  double embedding_ = 0;  ///< y coordinate of the centre of the last embedding drawn
};

}  // namespace

std::string model_drawing(const Config& config, const Vocabulary& vocabulary) {
  return ModelDrawing(config, vocabulary).file();
}

}  // namespace heed
