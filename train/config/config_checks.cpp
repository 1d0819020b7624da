#include "train/config/config_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/message_text.h"
#include "train/config/fields.h"
#include "train/config/yaml_raw.h"

namespace heed {
namespace {

class Checker {
 public:
  Checker(Config& config, const YamlNode& tree, Problems& problems)
      : config_(config), tree_(tree), problems_(problems) {}

  void run() {
    check_name();
    check_files();
    check_fractions();
    check_synthetic();
    check_tokenizer();
    check_model();
    check_positions();
    check_optim();
    check_train();
  }

 private:
  using Keys = std::initializer_list<std::string_view>;

  /// Says `message` about the first key. The place is that of a key on the command line, or else of
  /// the first one that the file gives. Nothing, if any of them was already found wrong.
  void complain(Keys keys, const std::string& message) {
    const auto known_wrong = [&](std::string_view key) { return problems_.about(key); };
    if (std::ranges::any_of(keys, known_wrong)) return;
    Place place;
    std::size_t deepest = 0;
    for (const std::string_view key : keys) {
      const auto [found, depth] = place_of(key);
      if (depth > deepest || (depth == deepest && found.source > 0 && place.source == 0)) {
        place = found;
        deepest = depth;
      }
    }
    problems_.add(place, std::string(*keys.begin()), message);
  }

  /// The place of a key and how much of its path is given, in bytes; all of it counts as most.
  std::pair<Place, std::size_t> place_of(std::string_view key) const {
    const YamlNode* node = &tree_;
    Place place;
    for (std::size_t begin = 0; begin <= key.size();) {
      const std::size_t end = std::min(key.find('.', begin), key.size());
      const YamlEntry* entry = node->find(key.substr(begin, end - begin));
      if (entry == nullptr) return {place, begin};
      node = &entry->value;
      const bool scalar = node->kind == YamlNode::Kind::scalar;
      place = scalar ? node->place : entry->place;
      begin = end + 1;
    }
    return {place, std::string_view::npos};
  }

  bool is_default(std::string_view key) const {
    static const Config defaults;
    const Field& field = *find_field(key);
    return field.print(config_) == field.print(defaults);
  }

  /// A key that says something where another key leaves it no effect is a mistake, but not if the
  /// command line chose otherwise than the file was written for: then it is put back to its
  /// default. A default always passes, since a resolved config holds every key.
  void only_for(std::string_view key, std::string_view chooser, bool used, std::string_view where) {
    if (used || is_default(key)) return;
    if (place_of(chooser).first.source > 0 && place_of(key).first.source == 0) {
      reset(key);
    } else {
      complain({key, chooser}, fmt::format("only for {}", where));
    }
  }

  void reset(std::string_view key) {
    const Field& field = *find_field(key);
    Problems none("", {});
    field.read(config_, *parse_yaml(field.print(Config{}), 0, none));
  }

  bool lm() const { return config_.task == Task::lm; }
  bool synthetic() const { return config_.data.synthetic.name != SyntheticKind::none; }

  static bool any_file(const FilesOptions& files) {
    return !files.source.empty() || !files.target.empty() || !files.text.empty();
  }

  void check_name() {
    const std::string& name = config_.name;
    if (name.empty() || name.size() > 200 || name.front() == '.' || name.front() == '-' ||
        name.find_first_of("/\t\r\n") != std::string::npos || find_flaw(name)) {
      complain({"name"}, fmt::format("\"{}\" cannot be a folder's name: 1 to 200 bytes, no slash, "
                                     "no dot or dash in front",
                                     shown(name)));
    }
  }

  void check_files() {
    check_split("data.train", config_.data.train);
    check_split("data.valid", config_.data.valid);
    check_split("data.test", config_.data.test);
    if (synthetic() || any_file(config_.data.train) || config_.bench.sequences > 0) return;
    if (lm()) {
      complain({"data.train.text", "data.synthetic.name", "task"}, "missing: nothing to train on");
    } else {
      complain({"data.train", "data.synthetic.name", "task"},
               "missing: nothing to train on (source and target files, or data.synthetic)");
    }
  }

  void check_split(const std::string& split, const FilesOptions& files) {
    const std::string source = split + ".source", target = split + ".target",
                      text = split + ".text";
    if (lm()) {
      if (!files.source.empty())
        complain({source, "task"}, "only for task: seq2seq (lm reads text)");
      if (!files.target.empty())
        complain({target, "task"}, "only for task: seq2seq (lm reads text)");
      return;
    }
    if (!files.text.empty()) {
      complain({text, "task"}, "only for task: lm (seq2seq reads source and target)");
    }
    if (files.source.empty() && !files.target.empty()) {
      complain({source, target}, "missing, but there is a target");
    } else if (files.target.empty() && !files.source.empty()) {
      complain({target, source}, "missing, but there is a source");
    } else if (files.source.size() != files.target.size()) {
      complain({source, target},
               fmt::format("{} files, but {} of target", files.source.size(), files.target.size()));
    }
  }

  void check_fractions() {
    const DataOptions& data = config_.data;
    if (data.valid_fraction > 0 && any_file(data.valid)) {
      complain({"data.valid_fraction", "data.valid"},
               "data.valid names files: use one or the other");
    }
    if (data.test_fraction > 0 && any_file(data.test)) {
      complain({"data.test_fraction", "data.test"}, "data.test names files: use one or the other");
    }
    if (data.valid_fraction + data.test_fraction >= 1.0) {
      complain({"data.valid_fraction", "data.test_fraction"},
               fmt::format("{} and test_fraction {} leave nothing to train on", data.valid_fraction,
                           data.test_fraction));
    }
  }

  void check_synthetic() {
    const SyntheticOptions& task = config_.data.synthetic;
    if (!synthetic()) {
      for (const char* key : {"train", "valid", "test", "min_length", "max_length", "symbols"}) {
        only_for(fmt::format("data.synthetic.{}", key), "data.synthetic.name", false,
                 "synthetic data: give it a name");
      }
      return;
    }
    const std::string_view name = "data.synthetic.name";
    if (lm()) complain({name, "task"}, "only for task: seq2seq (it makes pairs of lines)");
    for (const auto& [files, split] : {std::pair(&config_.data.train, "data.train"),
                                       std::pair(&config_.data.valid, "data.valid"),
                                       std::pair(&config_.data.test, "data.test")}) {
      if (any_file(*files)) {
        complain({split, name}, "there is a synthetic task already: use one or the other");
      }
    }
    only_for("data.valid_fraction", name, false, "files (set data.synthetic.valid)");
    only_for("data.test_fraction", name, false, "files (set data.synthetic.test)");
    if (task.min_length > task.max_length) {
      complain({"data.synthetic.min_length", "data.synthetic.max_length"},
               fmt::format("{} is more than max_length {}", task.min_length, task.max_length));
    }
  }

  void check_tokenizer() {
    const TokenizerOptions& tokenizer = config_.tokenizer;
    const std::string_view shared = "tokenizer.shared";
    if (lm() && !tokenizer.shared) complain({shared, "task"}, "a language model has one side only");
    if (!tokenizer.shared && !tokenizer.model.empty()) {
      complain({"tokenizer.model", shared},
               "with shared: false, give source_model and target_model instead");
    }
    const bool apart = !tokenizer.shared;
    only_for("tokenizer.source_model", shared, apart, "shared: false (or give model)");
    only_for("tokenizer.target_model", shared, apart, "shared: false (or give model)");
    if (!tokenizer.shared && tokenizer.source_model.empty() != tokenizer.target_model.empty()) {
      const bool source = tokenizer.source_model.empty();
      complain({source ? "tokenizer.source_model" : "tokenizer.target_model",
                source ? "tokenizer.target_model" : "tokenizer.source_model"},
               "missing, but the other side has one");
    }
    only_for("tokenizer.algorithm", "tokenizer.kind",
             tokenizer.kind == TokenizerKind::sentencepiece, "kind: sentencepiece");
    const bool ready = tokenizer.kind != TokenizerKind::bytes;
    for (const char* key :
         {"tokenizer.model", "tokenizer.source_model", "tokenizer.target_model"}) {
      only_for(key, "tokenizer.kind", ready, "other kinds: bytes need no file");
    }
  }

  void check_model() {
    ModelOptions& model = config_.model;
    if (model.d_model % model.heads != 0) {
      complain({"model.d_model", "model.heads"},
               fmt::format("{} cannot be divided by heads: {}", model.d_model, model.heads));
    }
    if (lm()) {
      model.encoder_layers = 0;
    } else if (model.encoder_layers == 0) {
      complain({"model.layers.encoder", "task"}, "0 is too few for task: seq2seq");
    }
    only_for("model.context", "task", lm(), "task: lm");
    only_for("model.init_std", "model.init", model.init == InitKind::normal, "init: normal");
  }

  void check_positions() {
    const ModelOptions& model = config_.model;
    const bool learned = model.positions == PositionKind::learned;
    if (model.positions == PositionKind::sinusoidal && model.d_model % 2 != 0) {
      complain({"model.d_model", "model.positions"},
               fmt::format("{} is odd, but positions: sinusoidal needs pairs", model.d_model));
    }
    only_for("model.max_positions", "model.positions", learned, "positions: learned");
    if (!learned) return;
    const auto fit = [&](std::string_view key, std::int64_t length, std::int64_t specials) {
      if (length + specials <= model.max_positions) return;
      complain({"model.max_positions", key},
               fmt::format("{} is less than {}: {}{}", model.max_positions, key, length,
                           specials > 0 ? ", and one for its end token" : ""));
    };
    if (lm()) {
      fit("model.context", model.context, 0);
    } else {
      fit("data.max_length", config_.data.max_length, 1);
      fit("decode.max_length", config_.decode.max_length, 0);
    }
  }

  void check_optim() {
    const OptimOptions& optim = config_.optim;
    const ScheduleOptions& schedule = optim.schedule;
    const bool sgd = optim.name == OptimizerKind::sgd;
    const bool decoupled_or_l2 = optim.name != OptimizerKind::adam;
    only_for("optim.betas", "optim.name", !sgd, "adam and adamw");
    only_for("optim.eps", "optim.name", !sgd, "adam and adamw");
    only_for("optim.momentum", "optim.name", sgd, "sgd");
    only_for("optim.weight_decay", "optim.name", decoupled_or_l2, "adamw and sgd");
    only_for("optim.decay", "optim.name", decoupled_or_l2, "adamw and sgd");
    const std::string_view name = "optim.schedule.name", warmup = "optim.schedule.warmup",
                           steps = "optim.schedule.steps";
    const bool decays =
        schedule.name == ScheduleKind::cosine || schedule.name == ScheduleKind::linear;
    only_for(steps, name, decays, "the schedules cosine and linear");
    only_for("optim.schedule.min_lr", name, decays, "the schedules cosine and linear");
    if (!decays) {
      if (schedule.name != ScheduleKind::constant && schedule.warmup == 0) {
        complain({warmup, name}, fmt::format("0, but {} needs at least 1", schedule_name()));
      }
      return;
    }
    const std::int64_t end = schedule.steps > 0 ? schedule.steps : config_.train.steps;
    if (end == 0 && config_.train.epochs == 0.0) {
      complain({steps, name, "train.steps"},
               fmt::format("missing: {} needs to know where it ends, and train.steps is 0",
                           schedule_name()));
    } else if (end > 0 && schedule.warmup >= end) {
      complain({warmup, steps, name, "train.steps"},
               fmt::format("{}, but {} ends at step {}; give a shorter warmup too", schedule.warmup,
                           schedule_name(), end));
    }
    if (schedule.min_lr > optim.lr) {
      complain({"optim.schedule.min_lr", "optim.lr"},
               fmt::format("{} is more than optim.lr: {}", schedule.min_lr, optim.lr));
    }
  }

  std::string schedule_name() const { return find_field("optim.schedule.name")->print(config_); }

  void check_train() {
    const TrainOptions& train = config_.train;
    if (train.steps == 0 && train.epochs == 0.0 && train.minutes == 0.0) {
      complain({"train.steps", "train.epochs", "train.minutes"},
               "nothing ends the run: steps, epochs and minutes are all 0");
    }
    if (train.early_stopping.metric) {
      const std::string_view metric = "train.early_stopping.metric";
      check_metric(metric, *train.early_stopping.metric);
      const DataOptions& data = config_.data;
      const bool validates =
          synthetic() ? data.synthetic.valid > 0 : data.valid_fraction > 0 || any_file(data.valid);
      if (!validates) complain({metric, "data.valid"}, "needs validation data");
    } else {
      only_for("train.early_stopping.patience", "train.early_stopping.metric", false,
               "early stopping: give it a metric");
    }
    check_metric("train.best", train.best);
  }

  void check_metric(std::string_view key, Metric metric) {
    const bool of_lines =
        metric == Metric::exact_match || metric == Metric::bleu || metric == Metric::chrf;
    if (lm() && of_lines) complain({key, "task"}, "only for task: seq2seq");
  }

  Config& config_;
  const YamlNode& tree_;
  Problems& problems_;
};

}  // namespace

void check_config(Config& config, const YamlNode& tree, Problems& problems) {
  Checker(config, tree, problems).run();
}

}  // namespace heed
