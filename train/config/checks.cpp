/// Sets the values that follow from others, checks the conditions of the field table and compares
/// the values of several keys.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "autograd/base/option_error.h"
#include "autograd/io/message_text.h"
#include "data/inputs/input_info.h"
#include "data/sources/records.h"
#include "data/sources/synthetic.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/layers/mixer.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "optim/schedule.h"
#include "train/config/fields.h"

namespace heed {
namespace {

/// A key's value as text, as the field table prints it.
std::string value_of(const Config& config, std::string_view key) {
  return find_field(key)->print(config);
}

class Checker {
 public:
  Checker(Config& config, const Config& file, const YamlNode& tree, Problems& problems)
      : config_(config), file_(file), tree_(tree), problems_(problems) {}

  void run() {
    set_architecture();
    set_swin();
    for (const Field& field : fields()) check_conditions(field);
    check_name();
    check_files();
    check_fractions();
    check_synthetic();
    check_spans();
    check_tokenizer();
    check_input();
    check_model();
    check_positions();
    check_decoding();
    check_schedule();
    check_train();
  }

 private:
  /// A key that is set although its chooser makes it ineffective is an error. If the chooser is set
  /// on the command line and the key is not, a resettable key is reset to its default instead, as
  /// is a key that an old run's config lacks. A default always passes, because a resolved config
  /// contains every key.
  void check_conditions(const Field& field) {
    if (field.is_default(config_)) return;
    const std::string value = field.print(config_);
    for (const Condition& condition : field.conditions) {
      if (!condition.of.empty() && !contains(condition.of, value)) continue;
      if (contains(condition.values, value_of(config_, condition.chooser))) continue;
      const bool not_given = !field.in_old_runs.is_null() && !tree_.place_of(field.key).complete;
      if (not_given || (field.resettable && from_command_line(condition.chooser) &&
                        !from_command_line(field.key))) {
        return field.set(config_, field.get(Config{}));
      }
      add_error({field.key, condition.chooser},
                (condition.of.empty() ? "" : value + " is ") + field.sentence(condition));
    }
  }

  static bool contains(const std::vector<std::string>& values, std::string_view value) {
    return std::ranges::find(values, value) != values.end();
  }

  const TaskInfo& task() const { return info_of(config_.task); }
  bool synthetic() const { return config_.data.synthetic.name != SyntheticKind::none; }

  static bool any_file(const FilesOptions& files) {
    return !files.source.empty() || !files.target.empty() || !files.text.empty();
  }

  void check_name() {
    const std::string& name = config_.name;
    if (name.empty() || name.size() > 200 || name.front() == '.' || name.front() == '-' ||
        name.find('/') != std::string::npos || shown(name, 1000) != name) {
      add_error(
          {"name"},
          fmt::format("\"{}\" cannot be a folder's name: expected 1 to 200 bytes, without slashes, "
                      "control characters, or a leading dot or dash",
                      shown(name)));
    }
  }

  void check_files() {
    check_split("data.train", config_.data.train);
    check_split("data.valid", config_.data.valid);
    check_split("data.test", config_.data.test);
    // A run that was imported has no data; training without data fails when they are read.
    if (synthetic() || any_file(config_.data.train) || config_.bench.sequences > 0 ||
        !config_.train.init_from.empty())
      return;
    add_error({"data.train", "data.synthetic.name", "task"},
              fmt::format("missing: nothing to train on (give {})",
                          task().reads != Reads::pairs
                              ? "text files"
                              : "source and target files, or data.synthetic.name"));
  }

  /// Source and target must name the same number of files. Files that contain both sides need no
  /// target: tables, and folders of classes, which only reading can distinguish from lists.
  void check_split(const std::string& split, const FilesOptions& files) {
    const std::string source = split + ".source", target = split + ".target";
    const auto both = [&](const std::string& path) {
      return config_.data.input != InputKind::text ||
             format_of(path, config_.data.format) != FileFormat::lines;
    };
    if (files.source.empty() && !files.target.empty()) {
      add_error({source, target}, "missing, but target is given");
    } else if (files.target.empty() && std::ranges::all_of(files.source, both)) {
      return;
    } else if (files.target.empty() && !files.source.empty()) {
      add_error({target, source}, "missing, but source is given");
    } else if (files.source.size() != files.target.size()) {
      add_error({source, target}, fmt::format("expected as many files as target ({}), got {}",
                                              files.target.size(), files.source.size()));
    }
  }

  void check_fractions() {
    const DataOptions& data = config_.data;
    if (data.valid_fraction > 0 && any_file(data.valid)) {
      add_error({"data.valid_fraction", "data.valid"},
                "data.valid names files: use one or the other");
    }
    if (data.test_fraction > 0 && any_file(data.test)) {
      add_error({"data.test_fraction", "data.test"}, "data.test names files: use one or the other");
    }
    if (data.valid_fraction + data.test_fraction > 0 && !data.mixture.prefixes.empty()) {
      add_error(
          {"data.mixture.prefixes",
           data.valid_fraction > 0 ? "data.valid_fraction" : "data.test_fraction"},
          "a fraction cut from the end of train would contain only the last part; give files for "
          "valid and test");
    }
    if (data.valid_fraction + data.test_fraction >= 1.0) {
      add_error({"data.valid_fraction", "data.test_fraction"},
                fmt::format("{} and test_fraction {} leave nothing to train on",
                            data.valid_fraction, data.test_fraction));
    }
  }

  void check_synthetic() {
    if (!synthetic()) return;
    for (const auto& [files, split] : {std::pair(&config_.data.train, "data.train"),
                                       std::pair(&config_.data.valid, "data.valid"),
                                       std::pair(&config_.data.test, "data.test")}) {
      if (any_file(*files)) {
        add_error({split, "data.synthetic.name"},
                  "data.synthetic names a task: use one or the other");
      }
    }
    const SyntheticOptions& synthetic = config_.data.synthetic;
    if (synthetic.min_length > synthetic.max_length) {
      add_error({"data.synthetic.min_length", "data.synthetic.max_length"},
                fmt::format("{} is greater than max_length ({})", synthetic.min_length,
                            synthetic.max_length));
    }
  }

  void check_spans() {
    const SpanOptions& spans = config_.data.spans;
    const double max_spans =
        static_cast<double>(config_.data.max_length) * spans.rate / spans.length;
    if (!task().hides_spans || max_spans <= static_cast<double>(span_marks)) return;
    add_error(
        {"data.spans.length", "data.spans.rate", "data.max_length"},
        fmt::format(
            "a line of {0} tokens (data.max_length) may have more than {1} hidden spans, but there "
            "are only {1} sentinels <extra_id_...>",
            config_.data.max_length, span_marks));
  }

  void check_tokenizer() {
    const TokenizerOptions& tokenizer = config_.tokenizer;
    if (const std::string wrong = wrong_specials(tokenizer.specials); !wrong.empty())
      add_error({"tokenizer.specials"}, wrong);
    if (tokenizer.shared || tokenizer.source_model.empty() == tokenizer.target_model.empty())
      return;
    const bool source = tokenizer.source_model.empty();
    add_error({source ? "tokenizer.source_model" : "tokenizer.target_model",
               source ? "tokenizer.target_model" : "tokenizer.source_model"},
              std::string("missing, but ") + (source ? "target" : "source") + "_model is given");
  }

  void check_input() {
    const InputInfo& input = info_of(config_.data.input);
    const SyntheticInfo generated = info_of(config_.data.synthetic.name);
    if (synthetic() && config_.data.input != generated.input) {
      add_error({"data.synthetic.name", "data.input"},
                fmt::format("{} needs data.input: {}", value_of(config_, "data.synthetic.name"),
                            name_of(generated.input)));
    }
    if (config_.data.input != InputKind::text) {
      if (config_.model->segments > 1)
        add_error({"model.segments", "data.input"}, "a source that is not text has no segments");
      if (config_.tokenizer.sample.alpha > 0)
        add_error({"tokenizer.sample.alpha", "data.input"}, "only for data.input: text");
      if (config_.data.cutoff > 0)
        add_error({"data.cutoff", "data.input"}, "only for data.input: text");
      if (config_.data.format == FileFormat::conll)
        add_error({"data.format", "data.input"}, "conll needs data.input: text");
    }
    if (input.check != nullptr) add_errors(input.check(config_.data));
    if (generated.check != nullptr) add_errors(generated.check(config_.data));
  }

  void set_architecture() {
    const Architecture architecture = task().architecture;
    const bool text = config_.data.input == InputKind::text;
    config_.model->input_width = row_width(config_.data);
    if (!text) {  // only the target has a tokenizer
      config_.tokenizer.shared = true;
      if (!has_decoder(architecture)) config_.tokenizer.kind = TokenizerKind::words;
    }
    if (const auto grid = info_of(config_.data.input).grid; grid != nullptr) {
      const auto [height, width] = grid(config_.data);
      config_.model->grid_height = height;
      config_.model->grid_width = width;
    }
    if (!has_encoder(architecture)) config_.model->encoder_layers = 0;
    for (const std::string& name : task().specials) {
      std::vector<std::string>& specials = config_.tokenizer.specials;
      if (std::ranges::find(specials, name) == specials.end()) specials.push_back(name);
    }
    if (has_decoder(architecture)) return;
    config_.model->decoder_layers = 0;
    if (architecture == Architecture::encoder_of_tokens || !text) return;
    if (config_.tokenizer.shared && tree_.place_of("tokenizer.shared").complete)
      warn({"tokenizer.shared", "task"}, "has no effect: labels have a separate vocabulary");
    config_.tokenizer.shared = false;
  }

  /// Sets the keys that kind: swin determines: no position scheme (Swin blocks have relative
  /// position biases), the mean of the patches as output, and the number of layers.
  void set_swin() {
    if (config_.model->kind != ModelKind::swin ||
        task().architecture != Architecture::encoder_of_sequences)
      return;
    const std::vector<std::int64_t>& depths = config_.model->swin.depths;
    const std::int64_t blocks = std::accumulate(depths.begin(), depths.end(), std::int64_t{0});
    if (blocks > 1000)
      add_error({"model.swin.depths"},
                fmt::format("{} blocks in all; the maximum is 1000", blocks));
    set_derived("model.positions", "none", "positions: none");
    set_derived("model.pool", "mean", "pool: mean");
    set_derived("model.layers.encoder", blocks,
                fmt::format("the sum of model.swin.depths, {}", blocks));
  }

  /// Sets a key whose value follows from kind: swin. A different value on the command line is an
  /// error; so is one in the file, unless the command line sets model.kind or model.swin.depths.
  void set_derived(std::string_view key, const nlohmann::json& value, const std::string& needed) {
    const Field& field = *find_field(key);
    const bool changed = from_command_line("model.kind") || from_command_line("model.swin.depths");
    const bool layers = key == "model.layers.encoder";
    const bool given = tree_.place_of(key).complete || (layers && one_number_for_layers());
    const bool typed = from_command_line(key) || (layers && from_command_line("model.layers"));
    if (given && field.get(config_) != value && (typed || !changed))
      add_error({key, "model.kind"},
                fmt::format("{}, but kind: swin needs {}", field.print(config_), needed));
    field.set(config_, value);
  }

  /// True if one number sets both keys of model.layers (layers: 3).
  bool one_number_for_layers() const {
    const YamlEntry* const model = tree_.find("model");
    const YamlEntry* const layers = model != nullptr ? model->value.find("layers") : nullptr;
    return layers != nullptr && layers->value.kind == YamlNode::Kind::scalar;
  }

  /// Each stage but the first has half as many patches along each side as the previous stage.
  void check_stages() {
    const ModelOptions& model = config_.model;
    const std::int64_t stages = std::ssize(model.swin.depths),
                       divisor = std::int64_t{1} << std::min<std::int64_t>(stages - 1, 30);
    if (model.grid_height % divisor != 0 || model.grid_width % divisor != 0) {
      add_error(
          {"model.swin.depths", "data.image.patch", "model.kind"},
          fmt::format(
              "{} stages need a grid of patches with both sides divisible by {}, but the grid is "
              "{} x {}",
              stages, divisor, model.grid_height, model.grid_width));
    }
    if (config_.train.recompute)
      add_error({"train.recompute", "model.kind"},
                "has no effect with kind: swin; set it to false");
  }

  void check_model() {
    const ModelOptions& model = config_.model;
    if (model.kind == ModelKind::swin && model.grid_width > 0) check_stages();
    const Architecture architecture = task().architecture;
    if (model.front_end.kind == FrontEndKind::conv && model.pool == Pool::first &&
        architecture == Architecture::encoder_of_sequences) {
      add_error(
          {"model.pool", "model.front_end.kind"},
          "first, but front_end.kind: conv needs pool: mean, because the convolution would mix the "
          "first row of an input with the rows after it");
    }
    const bool attends = !is_built_in(model.mixer) || model.mixer == MixerKind::attention ||
                         (has_encoder(architecture) && has_decoder(architecture)),
               recurrent = model.mixer == MixerKind::lstm || model.mixer == MixerKind::gru;
    if (attends && model.d_model % model.heads != 0) {
      add_error({"model.d_model", "model.heads"},
                fmt::format("{} is not a multiple of heads ({})", model.d_model, model.heads));
    }
    if (attends && model.attention.kv_heads > 0 && model.heads % model.attention.kv_heads != 0) {
      add_error(
          {"model.attention.kv_heads", "model.heads"},
          fmt::format("{} does not divide heads ({})", model.attention.kv_heads, model.heads));
    }
    if (recurrent && has_encoder(architecture) && model.d_model % 2 != 0) {
      add_error({"model.d_model", "model.mixer"},
                fmt::format("{} is odd, but mixer: {} has two directions in an encoder, each of "
                            "half the width",
                            model.d_model, name_of(model.mixer)));
    }
  }

  void check_positions() {
    const ModelOptions& model = config_.model;
    const PositionScheme& scheme = info_of(model.positions);
    if (scheme.check != nullptr) add_errors(scheme.check(model));
    if (!scheme.limited) return;
    const auto fit = [&](std::string_view key, std::int64_t length, std::int64_t special) {
      if (length + special <= model.max_positions) return;
      const std::string specials = special == 0 ? ""
                                   : special == 1
                                       ? " plus one for a special token"
                                       : fmt::format(" plus {} for special tokens", special);
      add_error(
          {"model.max_positions", key},
          fmt::format("{} is less than {} ({}){}", model.max_positions, key, length, specials));
    };
    if (task().reads == Reads::text) return fit("model.context", model.context, 0);
    const bool two_lines = config_.data.mask.next_sentence;
    if (fixed_rows(config_.data) > 0) {
      check_patches_placed();
      if (task().searches) fit("decode.max_length", config_.decode.max_length, 0);
      return;
    }
    if (model.front_end.kind == FrontEndKind::conv) {
      const std::int64_t rows = rows_after(model.front_end, config_.data.max_length);
      if (rows > model.max_positions)
        add_error({"model.max_positions", "data.max_length", "model.front_end.layers"},
                  fmt::format(
                      "{} is less than the {} rows that front_end outputs for data.max_length ({})",
                      model.max_positions, rows, config_.data.max_length));
      return;
    }
    if (config_.data.input != InputKind::text)  // task classify adds a row of zeros
      return fit("data.max_length", config_.data.max_length, 1);
    switch (task().architecture) {
      case Architecture::encoder:
        return fit("data.max_length", config_.data.max_length, 0);
      case Architecture::encoder_of_sequences:
        return fit("data.max_length", config_.data.max_length, 3);
      case Architecture::encoder_of_tokens:
        return fit("data.max_length", (two_lines ? 2 : 1) * config_.data.max_length,
                   two_lines ? 3 : 2);
      default:
        fit("data.max_length", config_.data.max_length, 1);
    }
    if (task().searches) fit("decode.max_length", config_.decode.max_length, 0);
  }

  /// A table of learned positions must have a row for each row that the encoder reads: the patches
  /// and, if there is one, the class token.
  void check_patches_placed() {
    const ModelOptions& model = config_.model;
    const InputInfo& input = info_of(config_.data.input);
    const bool class_row =
        task().architecture == Architecture::encoder_of_sequences && model.pool == Pool::first;
    const std::int64_t patches = model.grid_width > 0
                                     ? rows_after(model.front_end, model.grid_height) *
                                           rows_after(model.front_end, model.grid_width)
                                     : fixed_rows(config_.data),
                       needed = patches + (class_row ? 1 : 0);
    if (needed <= model.max_positions) return;
    add_error(
        {"model.max_positions", input.rows_key},
        fmt::format("{} is less than the {} rows of {}", model.max_positions, needed, input.noun));
  }

  void check_decoding() {
    const DecodeOptions& decode = config_.decode;
    if (decode.min_length > decode.max_length) {
      add_error(
          {"decode.min_length", "decode.max_length"},
          fmt::format("{} is greater than max_length ({})", decode.min_length, decode.max_length));
    }
    for (const char* key : {"decode.temperature", "decode.top_k", "decode.top_p"})
      if (!decode.sample && !find_field(key)->is_default(config_))
        warn({key, "decode.sample"}, "has no effect: set decode.sample to true");
  }

  void check_schedule() {
    ScheduleOptions& schedule = config_.optim.schedule;
    // A run states its warmup in steps, so that the rate does not jump if resume extends the run. The
    // number of steps in epochs is known only to the trainer.
    const std::int64_t run = config_.train.steps;
    if (schedule.warmup == ScheduleOptions::automatic && run > 0 && config_.train.epochs == 0.0)
      schedule.warmup = warmup_steps(schedule, run);
    const std::string_view name = name_of(schedule.name), chooser = "optim.schedule.name",
                           warmup = "optim.schedule.warmup";
    if (schedule.warmup == 0 && min_warmup(schedule.name) > 0)
      add_error({warmup, chooser}, fmt::format("0, but {} needs at least 1", name));
    if (schedule.name == ScheduleKind::cosine || schedule.name == ScheduleKind::linear)
      check_decay(name);
    const std::string too_long = long_warmup(schedule.warmup, run);
    if (!too_long.empty() && (schedule.warmup < run || !shorten_warmup(run)))
      warn({warmup, chooser, "train.steps"}, too_long);
  }

  /// Checks a schedule with a last step.
  void check_decay(std::string_view name) {
    const ScheduleOptions& schedule = config_.optim.schedule;
    const std::string_view steps = "optim.schedule.steps", chooser = "optim.schedule.name";
    const std::int64_t end = end_of_decay(config_);
    if (end == 0 && config_.train.epochs == 0.0) {
      add_error({steps, chooser, "train.steps"},
                fmt::format("missing: {} needs an end step; train.steps and epochs are 0", name));
    } else if (end > 0 && schedule.warmup >= end && !shorten_warmup(end)) {
      add_error({"optim.schedule.warmup", steps, chooser, "train.steps"},
                fmt::format("{}, but {} ends at step {}; set a shorter warmup", schedule.warmup,
                            name, end));
    }
    if (schedule.min_lr > config_.optim.lr) {
      add_error({"optim.schedule.min_lr", "optim.lr"},
                fmt::format("{} is greater than optim.lr ({})", schedule.min_lr, config_.optim.lr));
    }
  }

  static std::int64_t end_of_decay(const Config& config) {
    const std::int64_t steps = config.optim.schedule.steps;
    return steps > 0 ? steps : config.train.steps;
  }

  /// If the number of steps on the command line is too small for the file's warmup, shortens the
  /// warmup in proportion and returns true. Returns false if the command line sets the warmup, or
  /// if the file's number of steps is also too small or is unlimited.
  bool shorten_warmup(std::int64_t end) {
    std::int64_t& warmup = config_.optim.schedule.warmup;
    const bool shorter =
        from_command_line("train.steps") || from_command_line("optim.schedule.steps");
    const std::int64_t before = warmup, file_end = end_of_decay(file_);
    if (!shorter || from_command_line("optim.schedule.warmup") || before >= file_end) return false;
    const double share = static_cast<double>(before) / static_cast<double>(file_end);
    warmup = std::max(static_cast<std::int64_t>(share * static_cast<double>(end)),
                      min_warmup(config_.optim.schedule.name));
    warn({"optim.schedule.warmup", "optim.schedule.steps", "train.steps"},
         fmt::format("shortened from {} to {} steps, in proportion to the run", before, warmup));
    return true;
  }

  void check_train() {
    const TrainOptions& train = config_.train;
    if (train.steps == 0 && train.epochs == 0.0 && train.minutes == 0.0) {
      add_error({"train.steps", "train.epochs", "train.minutes"},
                "nothing ends the run: steps, epochs and minutes are all 0");
    }
    const DataOptions& data = config_.data;
    const bool validates =
        synthetic() ? data.synthetic.valid > 0 : data.valid_fraction > 0 || any_file(data.valid);
    if (train.early_stopping.metric && !validates)
      add_error({"train.early_stopping.metric", "data.valid"}, "needs validation data");
    if (train.rdrop > 0 && config_.model->memory > 0) {
      add_error({"train.rdrop", "model.memory"},
                "runs each sequence twice, which a segment memory does not allow; set model.memory "
                "or train.rdrop to 0");
    }
    const DropoutRates& dropout = config_.model->dropout;
    if (train.rdrop > 0 && dropout.residual + dropout.attention + dropout.activation == 0) {
      warn(
          {"train.rdrop", "model.dropout"},
          "without dropout, both passes of a step are equal: set model.dropout, or train.rdrop to 0");
    }
    for (const char* key : {"train.distill.weight", "train.distill.temperature"})
      if (train.distill.teacher.empty() && !find_field(key)->is_default(config_))
        add_error({key, "train.distill.teacher"}, "only with train.distill.teacher");
    if (!train.distill.teacher.empty() && (train.rdrop > 0 || config_.model->memory > 0)) {
      const bool twice = train.rdrop > 0;
      add_error({"train.distill.teacher", twice ? "train.rdrop" : "model.memory"},
                fmt::format("distillation cannot be combined with {0}; set {0} to 0",
                            twice ? "train.rdrop" : "model.memory"));
    }
    const std::int64_t averaged = (train.steps + 4) / 5;  // the run's last fifth, rounded up
    if (train.average > 1 && train.steps > 0 && (train.average - 1) * train.save_every > averaged) {
      warn({"train.average", "train.save_every", "train.steps"},
           fmt::format(
               "{} checkpoints with save_every: {} span more than the last fifth of the {} steps, "
               "and only those within it are averaged; lower average or save_every",
               train.average, train.save_every, train.steps));
    }
  }

  // ---- errors and warnings about several keys, each with its place ----------------------------

  using Keys = std::vector<std::string_view>;

  /// Reports `message` about the first key, unless an error about any of the keys has been
  /// reported. The place in the message is that of the key whose path exists in the tree to the
  /// greatest depth; at equal depth, the command line takes precedence over the file.
  void add_error(const Keys& keys, const std::string& message) {
    if (!any_wrong(keys)) problems_.add(place_of(keys), std::string(keys.front()), message);
  }

  void add_errors(const OptionErrors& errors) {
    for (const OptionError& error : errors) add_error(error.keys, error.message);
  }

  void warn(const Keys& keys, const std::string& message) {
    if (!any_wrong(keys)) problems_.warn(place_of(keys), std::string(keys.front()), message);
  }

  bool any_wrong(const Keys& keys) const {
    return std::ranges::any_of(keys, [&](std::string_view key) { return problems_.about(key); });
  }

  Place place_of(const Keys& keys) const {
    YamlNode::Found best{};
    for (const std::string_view key : keys) {
      const YamlNode::Found found = tree_.place_of(key);
      if (found.depth > best.depth ||
          (found.depth == best.depth && found.place.source > 0 && best.place.source == 0)) {
        best = found;
      }
    }
    return best.place;
  }

  bool from_command_line(std::string_view key) const {
    const YamlNode::Found found = tree_.place_of(key);
    return found.complete && found.place.source > 0;
  }

  Config& config_;
  const Config& file_;
  const YamlNode& tree_;
  Problems& problems_;
};

}  // namespace

std::string long_warmup(std::int64_t warmup, std::int64_t steps) {
  if (steps == 0 || 2 * warmup <= steps + 1) return "";
  return fmt::format(
      "{} of the {} steps of the run, so most of it has a low learning rate; auto is a tenth of the "
      "steps",
      warmup, steps);
}

void check_config(Config& config, const Config& file, const YamlNode& tree, Problems& problems) {
  Checker(config, file, tree, problems).run();
}

}  // namespace heed
