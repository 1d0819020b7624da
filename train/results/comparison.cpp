#include "train/results/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "train/config/fields.h"
#include "train/run/jsonl.h"
#include "train/tasks/evaluation.h"
#include "train/terminal/table.h"

namespace heed {

namespace {

/// The number of characters of a setting in tables and sentences; the rest is cut.
constexpr std::size_t max_value = 60;

/// The column of RunResult::derived, among those of config keys.
constexpr std::string_view weights_key = "weights";

std::vector<std::string> differing_keys(const std::vector<RunResult>& results) {
  std::vector<std::string> keys;
  for (const Field& field : fields()) {
    if (!changes_results(field.key) || field.key == "seed") continue;
    const bool differs = std::ranges::any_of(results, [&](const RunResult& result) {
      return field.get(result.config) != field.get(results.front().config);
    });
    if (differs) keys.push_back(field.key);
  }
  if (std::ranges::any_of(results, [](const RunResult& run) { return !run.derived.empty(); }))
    keys.emplace_back(weights_key);
  return keys;
}

std::int64_t seeds_of(const RunGroup& group) {
  std::set<std::uint64_t> seeds;
  for (const RunResult* run : group.runs) seeds.insert(run->config.seed);
  return std::ssize(seeds);
}

/// The data of the group's metrics: "test", or a list if the data of its runs differ.
std::string data_of(const RunGroup& group) {
  std::vector<std::string> all;
  for (const RunResult* run : group.runs)
    if (std::ranges::find(all, run->where) == all.end()) all.push_back(run->where);
  return fmt::format("{}", fmt::join(all, "; "));
}

/// Whether runs were evaluated on the same lines, as far as their records contain checksums. Of runs
/// with generated data, which depend on the seed, only those with equal seeds are compared.
bool same_lines(const RunGroup& a, const RunGroup& b) {
  std::map<std::uint64_t, std::string> of_seed;
  for (const RunGroup* group : {&a, &b}) {
    for (const RunResult* run : group->runs) {
      if (!run->record.is_object() || !run->record.contains("lines")) continue;
      const std::string& lines = run->record["lines"].get_ref<const std::string&>();
      const bool generated = run->config.data.synthetic.name != SyntheticKind::none;
      const std::uint64_t seed = generated ? run->config.seed : 0;
      if (of_seed.try_emplace(seed, lines).first->second != lines) return false;
    }
  }
  return true;
}

void require_comparable(const std::vector<RunResult>& results) {
  const RunResult& first = results.front();
  std::set<std::filesystem::path> seen;
  for (const RunResult& result : results) {
    if (result.config.task != first.config.task)
      throw Error(Exit::usage,
                  "{} is a run of task {}, but {} is one of task {}: only runs of one task can "
                  "be compared",
                  first.folder, info_of(first.config.task).name, result.folder,
                  info_of(result.config.task).name);
    if (!seen.insert(std::filesystem::canonical(result.folder)).second)
      throw Error(Exit::usage, "{} is given twice, so it would count as two runs", result.folder);
  }
}

/// Whether the tables of runs with train.best = `main` show a metric (Comparison::metrics).
bool is_column(Metric metric, Metric main) {
  if (info_of(metric).detail && !info_of(main).detail) return false;
  return !compares_texts(metric) || judges_texts(main);
}

std::string minutes_of(const RunGroup& group) {
  double sum = 0;
  for (const RunResult* run : group.runs)
    if (run->record.is_object()) sum += run->record.value("seconds", 0.0);
  return fmt::format("{:.1f}", sum / 60 / static_cast<double>(group.runs.size()));
}

/// Describes how a run was derived from a trained one: "quantised", "pruned, 12 heads, then quantised".
/// The record of the run includes the records of earlier derivations.
std::string derivation(const nlohmann::json& record) {
  std::string text;
  for (const nlohmann::json& earlier : record.value("earlier", nlohmann::json::array()))
    text += derivation(earlier) + ", then ";
  text += record.at("kind").get<std::string>();
  for (const auto& [key, noun] :
       {std::pair("removed_heads", "heads"), {"zero_weights", "zero weights"}})
    if (record.contains(key)) text += fmt::format(", {} {}", record.at(key).dump(), noun);
  return text;
}

/// Sets `record` and `where` to the last evaluation of the test split or, if there is none, of the
/// validation split. Evaluations with other settings do not count.
void set_evaluation(RunResult& result) {
  const std::filesystem::path file = RunFolder{result.folder}.evaluations();
  for (nlohmann::json& record : read_jsonl(file)) {
    try {
      const std::string split = record.at("split"), settings = record.at("settings"),
                        lines = record.at("lines");
      const bool usual = (split == "test" || split == "valid") && settings.empty();
      if (!usual || (split == "valid" && result.where == "test")) continue;
      result.where = split;
    } catch (const nlohmann::json::exception& error) {
      throw Error(Exit::bad_input, "{}: not the record of an evaluation: {}", file.string(),
                  plain_reason(error));
    }
    result.record = std::move(record);
  }
}

/// A cell of a table in LaTeX.
std::string latex_text(std::string_view text) {
  std::string escaped;
  for (const char c : for_terminal(text)) {
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) escaped += '\\';
    if (c == '\\' || c == '~' || c == '^')
      escaped += c == '~'   ? "\\textasciitilde{}"
                 : c == '^' ? "\\textasciicircum{}"
                            : "\\textbackslash{}";
    else
      escaped += c;
  }
  constexpr std::string_view plus_minus = "±";
  for (std::size_t at = 0; (at = escaped.find(plus_minus, at)) != std::string::npos;)
    escaped.replace(at, plus_minus.size(), "$\\pm$");
  return escaped;
}

}  // namespace

std::string setting(const RunResult& result, std::string_view key) {
  if (key == weights_key) return result.derived.empty() ? "trained" : result.derived;
  return find_field(key)->print(result.config);
}

bool changes_results(std::string_view key) {
  constexpr std::array<std::string_view, 3> neutral{"name", "threads", "train.tensorboard"};
  return std::ranges::find(neutral, key) == neutral.end();
}

std::optional<double> figure(const RunResult& result, Metric metric) {
  const auto found = result.record.find(std::string(info_of(metric).name));
  if (found == result.record.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::vector<nlohmann::json> read_metrics(const RunFolder& run) {
  const auto is_whole = [](const nlohmann::json& v) {
    return v.is_number_unsigned() ? v.get<std::uint64_t>() <= INT64_MAX : v.is_number_integer();
  };
  const auto is_text = [](const nlohmann::json& v) { return v.is_string(); };
  const auto is_number = [](const nlohmann::json& v) { return v.is_number(); };
  std::vector<nlohmann::json> records = read_jsonl(run.metrics());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto require = [&](const char* key, const auto& is_right, const char* type) {
      const auto found = records[i].find(key);
      if (found != records[i].end() && !is_right(*found))
        throw Error(Exit::bad_input, "{}:{}: {}: expected {}, got {}", run.metrics().string(),
                    i + 1, key, type, excerpt(found->dump(), 40));
    };
    require("kind", is_text, "a string");
    require("step", is_whole, "a whole number");
    require("target_tokens", is_whole, "a whole number");
    require("seconds", is_number, "a number");
    require("bleu_signature", is_text, "a string");
    require("lines", is_text, "a string");
  }
  return records;
}

void set_results(RunResult& result, std::vector<nlohmann::json> records) {
  std::int64_t step = -1;
  for (nlohmann::json& record : records) {
    try {
      const std::string kind = record.at("kind");
      if (kind == "pruned" || kind == "quantised") result.derived = derivation(record);
      const bool last = kind == "test" || kind == "final-valid";
      if (!last && kind != "valid") continue;
      const std::int64_t at = whole_number(record.at("step"));
      if (!last && at <= step) continue;  // only a later validation replaces the result
      result.where = kind == "test" ? kind : last ? "valid" : fmt::format("valid, step {}", at);
      step = at;
    } catch (const nlohmann::json::exception& e) {
      throw Error(Exit::bad_input, "{}: a record without kind or step: {}",
                  RunFolder{result.folder}.metrics().string(), plain_reason(e));
    }
    result.record = std::move(record);
  }
}

RunResult result_of(const std::string& folder, std::vector<nlohmann::json> records) {
  RunResult result{folder, read_run_config(RunFolder{folder}), {}, ""};
  set_results(result, std::move(records));
  if (result.where.empty()) set_evaluation(result);
  return result;
}

RunResult read_result(const std::string& folder) {
  const RunFolder run{folder};
  RunResult result = result_of(folder, read_metrics(run));
  if (result.where.empty())
    throw Error(
        Exit::bad_input,
        "{}: no results yet: {} contains neither a test nor a validation; heed eval {} measures and "
        "records the metrics",
        folder, run.metrics().string(), folder);
  return result;
}

std::vector<std::string> run_folders(const std::vector<std::string>& named) {
  std::vector<std::string> all;
  for (const std::string& name : named) {
    const std::filesystem::path folder = name, list = folder / "sweep.json";
    std::error_code ignored;
    if (!std::filesystem::exists(list, ignored)) {
      all.push_back(name);
      continue;
    }
    const std::size_t before = all.size();
    const nlohmann::json sweep = parse_json(read_bytes(list), list.string());
    try {
      for (const nlohmann::json& run : sweep.at("runs")) {
        const std::string path = (folder / run.at("name").get<std::string>()).string();
        if (std::filesystem::exists(RunFolder{path}.metrics(), ignored) &&
            !result_of(path, read_metrics(RunFolder{path})).where.empty())
          all.push_back(path);
      }
    } catch (const nlohmann::json::exception& error) {
      throw Error(Exit::bad_input, "{}: {}", list.string(), plain_reason(error));
    }
    if (all.size() == before)
      throw Error(Exit::usage, "{}: no run of this sweep has results yet", name);
  }
  return all;
}

Comparison::Comparison(const std::vector<RunResult>& results) : keys_(differing_keys(results)) {
  require_comparable(results);
  for (const RunResult& result : results) {
    std::vector<std::string> values;
    for (const std::string& key : keys_) values.push_back(setting(result, key));
    const auto same = std::ranges::find(groups_, values, &RunGroup::values);
    if (same != groups_.end())
      same->runs.push_back(&result);
    else
      groups_.push_back({std::move(values), {&result}});
  }
  main_ = results.front().config.train.best;
  for (std::size_t i = 0; i < metric_table.size(); ++i) {
    const auto metric = static_cast<Metric>(i);
    if (is_column(metric, main_) && std::ranges::any_of(results, [&](const RunResult& r) {
          return figure(r, metric).has_value();
        }))
      metrics_.push_back(metric);
  }
}

Spread Comparison::spread(const RunGroup& group, Metric metric) const {
  std::vector<double> values;
  for (const RunResult* run : group.runs)
    if (const auto value = figure(*run, metric)) values.push_back(*value);
  Spread s{std::ssize(values)};
  if (values.empty()) return s;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) s.mean += v / n;
  double squares = 0;
  for (const double v : values) squares += (v - s.mean) * (v - s.mean);
  s.deviation = values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  s.low = std::ranges::min(values);
  s.high = std::ranges::max(values);
  return s;
}

std::string Comparison::name_of_group(const RunGroup& group) const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (group.values[i] != groups_.front().values[i])
      parts.push_back(fmt::format("{}={}", keys_[i], excerpt(group.values[i], max_value)));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string Comparison::label(const RunGroup& group) const {
  if (keys_.empty()) return group.runs.front()->folder;
  const auto without_section = [](const std::string& key) { return key.substr(key.find('.') + 1); };
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == "model.layers.encoder" && i + 1 < keys_.size() &&
        keys_[i + 1] == "model.layers.decoder" &&
        std::ranges::all_of(groups_,
                            [&](const RunGroup& g) { return g.values[i] == g.values[i + 1]; })) {
      parts.push_back(fmt::format("layers {}", group.values[i++]));
      continue;
    }
    const std::string name = without_section(keys_[i]);
    const bool unique = std::ranges::count(keys_, name, without_section) == 1;
    parts.push_back(fmt::format("{} {}", unique ? name : keys_[i], group.values[i]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string Comparison::verdict(const RunGroup& group) const {
  const RunGroup& base = groups_.front();
  const MetricInfo& info = info_of(main_);
  const Spread range = spread(group, main_), first = spread(base, main_);
  if (range.count == 0 || first.count == 0) return fmt::format("no {} to compare", info.label);
  if (data_of(group) != data_of(base))
    return fmt::format("{} was measured on other data ({})", info.label, data_of(group));
  if (!same_lines(group, base)) return fmt::format("{} was measured on other lines", info.label);
  const double by = range.mean - first.mean;
  const std::string difference = by == 0
                                     ? "the same"
                                     : fmt::format("{} by {:.{}f}{}", by > 0 ? "higher" : "lower",
                                                   (info.percent ? 100 : 1) * std::abs(by),
                                                   info.digits, info.percent ? " points" : "");
  std::string judgement = "one seed cannot show how much results vary between seeds";
  if (const auto seeds = seeds_of(group), first_seeds = seeds_of(base);
      std::min(seeds, first_seeds) > 1) {
    const bool apart = range.low > first.high || range.high < first.low;
    judgement = fmt::format("the ranges of {} and {} seeds {}", first_seeds, seeds,
                            apart ? "do not overlap" : "overlap");
  }
  return fmt::format("{} {}: {}", info.label, difference, judgement);
}

std::vector<std::string> Comparison::verdicts() const {
  std::vector<std::string> all;
  for (const RunGroup& group : std::span(groups_).subspan(1))
    all.push_back(fmt::format("{}: {}", name_of_group(group), verdict(group)));
  return all;
}

std::string Comparison::cell(const RunGroup& group, Metric metric) const {
  const Spread s = spread(group, metric);
  if (s.count == 0) return "-";
  std::string text = text_of(metric, s.mean);
  if (s.count > 1) text += fmt::format(" ± {}", text_of(metric, s.deviation));
  if (s.count < std::ssize(group.runs))
    text += fmt::format(" ({} of {} runs)", s.count, group.runs.size());
  return text;
}

std::vector<std::vector<std::string>> Comparison::rows() const {
  std::vector<std::string> head = keys_;
  if (keys_.empty()) head.emplace_back("run");
  for (const char* name : {"seeds", "data"}) head.emplace_back(name);
  for (const Metric metric : metrics_) head.emplace_back(info_of(metric).label);
  head.emplace_back("minutes");
  std::vector<std::vector<std::string>> all{head};
  for (const RunGroup& group : groups_) {
    std::vector<std::string> row;
    for (const std::string& value : group.values) row.push_back(excerpt(value, max_value));
    if (keys_.empty()) row.push_back(excerpt(group.runs.front()->folder, max_value));
    row.push_back(fmt::format("{}", seeds_of(group)));
    row.push_back(data_of(group));
    for (const Metric metric : metrics_) row.push_back(cell(group, metric));
    row.push_back(minutes_of(group));
    all.push_back(std::move(row));
  }
  return all;
}

std::string Comparison::text() const {
  std::string text = aligned(rows());
  for (const std::string& verdict : verdicts()) text += verdict + "\n";
  return text;
}

std::string Comparison::markdown() const {
  std::string text;
  const auto all = rows();
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> cells;
    for (const std::string& cell : all[i]) {
      std::string escaped;
      for (const char c : for_terminal(cell)) c == '|' ? escaped += "\\|" : escaped += c;
      cells.push_back(std::move(escaped));
    }
    text += fmt::format("| {} |\n", fmt::join(cells, " | "));
    if (i > 0) continue;
    text += "|";
    for (std::size_t k = 0; k < cells.size(); ++k)
      text += k < std::max<std::size_t>(keys_.size(), 1) ? "---|" : "---:|";
    text += "\n";
  }
  for (const std::string& verdict : verdicts()) text += fmt::format("\n- {}", verdict);
  return text + (groups_.size() > 1 ? "\n" : "");
}

std::string Comparison::latex() const {
  const auto all = rows();
  const std::size_t names = std::max<std::size_t>(keys_.size(), 1);
  std::string text = fmt::format("\\begin{{tabular}}{{{}{}}}\n\\toprule\n", std::string(names, 'l'),
                                 std::string(all.front().size() - names, 'r'));
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> cells;
    for (const std::string& cell : all[i]) cells.push_back(latex_text(cell));
    text += fmt::format("{} \\\\\n{}", fmt::join(cells, " & "), i == 0 ? "\\midrule\n" : "");
  }
  text += "\\bottomrule\n\\end{tabular}\n";
  for (const std::string& verdict : verdicts()) text += fmt::format("% {}\n", verdict);
  return text;
}

nlohmann::json Comparison::json() const {
  nlohmann::json record{{"keys", keys_},
                        {"metric", info_of(main_).name},
                        {"groups", nlohmann::json::array()},
                        {"verdicts", verdicts()}};
  for (const RunGroup& group : groups_) {
    nlohmann::json entry{{"config", nlohmann::json::object()}, {"runs", nlohmann::json::array()}};
    for (const std::string& key : keys_)
      entry["config"][key] = key == weights_key ? nlohmann::json(setting(*group.runs.front(), key))
                                                : find_field(key)->get(group.runs.front()->config);
    for (const RunResult* run : group.runs)
      entry["runs"].push_back(
          {{"run", run->folder}, {"seed", run->config.seed}, {"data", run->where}});
    for (std::size_t i = 0; i < metric_table.size(); ++i) {
      const auto metric = static_cast<Metric>(i);
      const Spread s = spread(group, metric);
      if (s.count == 0) continue;
      entry["metrics"][std::string(info_of(metric).name)] = {{"mean", s.mean},
                                                             {"deviation", s.deviation},
                                                             {"low", s.low},
                                                             {"high", s.high},
                                                             {"count", s.count}};
    }
    record["groups"].push_back(std::move(entry));
  }
  return record;
}

}  // namespace heed
