#include "train/sweep/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "autograd/base/error.h"
#include "autograd/base/random.h"
#include "autograd/io/files.h"
#include "train/config/fields.h"
#include "train/config/yaml.h"

namespace heed {

namespace {

constexpr std::size_t max_runs = 10'000;

/// The value of a config key as YAML on one line.
std::string flow_text(const YamlNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "null";
    case YamlNode::Kind::scalar:
      return node.quoted ? yaml_text(node.text) : node.text;
    case YamlNode::Kind::list:
      for (const YamlNode& item : node.items) parts.push_back(flow_text(item));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case YamlNode::Kind::map:
      for (const YamlEntry& entry : node.entries)
        parts.push_back(fmt::format("{}: {}", entry.key, flow_text(entry.value)));
      return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return "";
}

/// Parses a number of runs or points. Returns false if the text is not an integer from `min` to
/// max_runs.
bool read_count(const std::string& text, std::int64_t min, std::int64_t& value) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && value >= min &&
         value <= static_cast<std::int64_t>(max_runs);
}

void read_entry(const YamlEntry& entry, SweepPlan& plan, Problems& problems) {
  const std::string key = "sweep." + entry.key;
  const YamlNode& value = entry.value;
  if (entry.key == "seeds" || entry.key == "random") {
    const bool seeds = entry.key == "seeds";
    if (!read_count(value.text, seeds ? 1 : 0, seeds ? plan.seeds : plan.random))
      problems.add(value.place, key,
                   fmt::format("expected a whole number from {} to {}", seeds ? 1 : 0, max_runs));
  } else if (entry.key == "halving") {
    if (value.text != "true" && value.text != "false")
      problems.add(value.place, key, "expected true or false");
    plan.halving = value.text == "true";
  } else if (find_field(entry.key) == nullptr && find_section(entry.key) == nullptr) {
    problems.add(entry.place, key, "expected a config key, or seeds, random or halving");
  } else if (value.kind != YamlNode::Kind::list || value.items.empty()) {
    problems.add(value.place, key, "expected a list of values to try, such as [1, 2]");
  } else {
    SweepAxis axis{entry.key, {}};
    for (const YamlNode& item : value.items) axis.values.push_back(flow_text(item));
    plan.axes.push_back(std::move(axis));
  }
}

/// Splits a value at its commas, except those within brackets, braces or quotes.
std::vector<std::string> split_at_commas(const std::string& value) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : value) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  return parts;
}

/// The point with this number: an override for each axis. The last axis varies fastest.
std::vector<std::string> point_of(const SweepPlan& plan, std::size_t number) {
  std::vector<std::string> values(plan.axes.size());
  for (std::size_t i = plan.axes.size(); i > 0; --i) {
    const SweepAxis& axis = plan.axes[i - 1];
    values[i - 1] = fmt::format("{}={}", axis.key, axis.values[number % axis.values.size()]);
    number /= axis.values.size();
  }
  return values;
}

/// The numbers of the points to train, in ascending order.
std::vector<std::size_t> chosen_points(const SweepPlan& plan, std::uint64_t seed) {
  std::size_t all = 1;
  for (const SweepAxis& axis : plan.axes) {
    all *= axis.values.size();
    if (all > max_runs * 100)
      throw Error(Exit::usage,
                  "the grid of the sweep has more than 1,000,000 points: give fewer values");
  }
  std::vector<std::size_t> points(all);
  std::iota(points.begin(), points.end(), std::size_t{0});
  const auto wanted = static_cast<std::size_t>(plan.random);
  if (plan.random == 0 || wanted >= all) return points;
  Random random{RandomKey{.seed = seed, .stream = Stream::check}};
  for (std::size_t i = 0; i < wanted; ++i)
    std::swap(points[i], points[i + random.below(static_cast<std::uint32_t>(all - i))]);
  points.resize(wanted);
  std::ranges::sort(points);
  return points;
}

/// "003-norm=post-seed=2": the overrides without the sections of their keys; characters unsuited to
/// file names become "_".
std::string folder_name(std::size_t number, const std::vector<std::string>& overrides) {
  std::string name = fmt::format("{:03}", number);
  for (const std::string& override : overrides) {
    const std::size_t equals = override.find('='), dot = override.rfind('.', equals);
    name += "-";
    for (const char c : override.substr(dot == std::string::npos ? 0 : dot + 1)) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '=' || c == '.' || c == '_';
      name += plain ? c : '_';
    }
  }
  return name.substr(0, 120);
}

/// Reads the config. Every run reads it again, so it must be a regular file.
std::string text_of(const std::string& path) {
  try {
    return read_bytes(path, yaml_max_bytes);
  } catch (const Error& error) {
    throw Error(error.code == Exit::io ? Exit::io : Exit::usage, "cannot read the config: {}",
                error.what());
  }
}

/// Throws Error(usage) for a plan that varies nothing or has contradictory settings.
void check(const SweepPlan& plan, const Config& config, const std::string& path) {
  if (plan.axes.empty() && plan.seeds == 1)
    throw Error(Exit::usage,
                "nothing to vary: give values to try, such as optim.lr=1e-3,3e-3, or "
                "--seeds, or a section sweep in {}",
                path);
  const auto varies = [&](const char* key) {
    return std::ranges::find(plan.axes, key, &SweepAxis::key) != plan.axes.end();
  };
  if (plan.seeds > 1 && varies("seed"))
    throw Error(Exit::usage,
                "--seeds (or sweep.seeds) sets seed, so seed cannot also "
                "have a list of values: give one of the two");
  if (plan.halving && varies("train.steps"))
    throw Error(Exit::usage,
                "--halving sets train.steps in each round, so train.steps cannot have "
                "several values");
  if (plan.halving && config.train.steps <= 0)
    throw Error(Exit::usage, "--halving divides train.steps, which the config does not set");
}

}  // namespace

SweepPlan read_sweep(const std::string& path) {
  Problems problems(path, {});
  const std::optional<YamlNode> tree = parse_yaml(text_of(path), 0, problems);
  SweepPlan plan;
  const YamlEntry* const section =
      tree && tree->kind == YamlNode::Kind::map ? tree->find("sweep") : nullptr;
  if (section != nullptr && section->value.kind != YamlNode::Kind::map)
    problems.add(section->place, "sweep",
                 "expected keys and lists of values, such as optim.lr: [1e-3, 3e-3]");
  else if (section != nullptr)
    for (const YamlEntry& entry : section->value.entries) read_entry(entry, plan, problems);
  problems.raise();
  return plan;
}

void add_arguments(SweepPlan& plan, std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const std::vector<std::string> values = equals == std::string::npos
                                                ? std::vector<std::string>{}
                                                : split_at_commas(argument.substr(equals + 1));
    std::erase_if(plan.axes, [&](const SweepAxis& axis) { return axis.key == key; });
    if (values.size() < 2) {
      plan.overrides.push_back(argument);
    } else {
      plan.axes.push_back({key, values});
    }
  }
}

std::vector<SweepMember> members_of(const SweepPlan& plan, const std::string& config) {
  const Config shared = read_config(config, plan.overrides);
  check(plan, shared, config);
  const std::uint64_t seed = shared.seed;
  std::vector<SweepMember> members;
  std::map<std::string, std::string> names;  // names of runs by their settings
  const std::vector<std::size_t> points = chosen_points(plan, seed);
  if (points.size() * static_cast<std::size_t>(plan.seeds) > max_runs)
    throw Error(Exit::usage,
                "the sweep has {} runs, but the maximum is {}; --random N trains only N points",
                points.size() * static_cast<std::size_t>(plan.seeds), max_runs);
  for (const std::size_t number : points) {
    for (std::int64_t s = 0; s < plan.seeds; ++s) {
      std::vector<std::string> varied = point_of(plan, number);
      if (plan.seeds > 1)
        varied.push_back(fmt::format("seed={}", seed + static_cast<std::uint64_t>(s)));
      SweepMember member{folder_name(members.size() + 1, varied), number, plan.overrides};
      member.overrides.insert(member.overrides.end(), varied.begin(), varied.end());
      std::string settings;
      try {
        settings = config_json(read_config(config, member.overrides)).dump();
      } catch (const Error& error) {
        throw Error(error.code, "run {} of the sweep: {}", member.name, error.what());
      }
      const auto [same, is_new] = names.emplace(std::move(settings), member.name);
      if (!is_new)
        throw Error(Exit::usage, "runs {} and {} of the sweep are the same: give each value once",
                    same->second, member.name);
      members.push_back(std::move(member));
    }
  }
  return members;
}

}  // namespace heed
