#include "train/config_problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/error.h"
#include "train/yaml_raw.h"

namespace heed {
namespace {

/// True if one of the two dotted paths is the other or a section that holds it.
bool related(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}

/// Edits (insert, delete, replace, swap of neighbours) that turn a into b: the "optimal string
/// alignment" distance, after Damerau (1964).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  for (std::size_t j = 0; j < width; ++j) cost[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    cost[i * width] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t replace = cost[(i - 1) * width + j - 1] + (a[i - 1] != b[j - 1]);
      const std::size_t insert = cost[i * width + j - 1] + 1;
      const std::size_t remove = cost[(i - 1) * width + j] + 1;
      std::size_t best = std::min({replace, insert, remove});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        best = std::min(best, cost[(i - 2) * width + j - 2] + 1);
      }
      cost[i * width + j] = best;
    }
  }
  return cost.back();
}

}  // namespace

Problems::Problems(std::string_view file, std::span<const std::string> overrides)
    : file_(shown(file, 4096)), overrides_(overrides.begin(), overrides.end()) {}

void Problems::add(Place place, std::string key, std::string message) {
  if (!full()) {
    list_.push_back({place, std::move(key), std::move(message)});
  } else {
    ++left_out_;
  }
}

void Problems::taint(std::string key) {
  if (tainted_.size() < most) tainted_.push_back(std::move(key));
}

bool Problems::about(std::string_view key) const {
  const auto is_about = [&](const std::string& other) { return related(key, other); };
  return std::ranges::any_of(list_, is_about, &Problem::key) ||
         std::ranges::any_of(tainted_, is_about);
}

std::string Problems::show(Place place) const {
  if (place.source == 0) return fmt::format("{}:{}:{}", file_, place.line, place.column);
  return "command line: " + shown(overrides_.at(static_cast<std::size_t>(place.source - 1)), 100);
}

std::string Problems::line(const Problem& problem) const {
  std::string text = show(problem.place) + ": ";
  // An override names its key already; say it again only if the trouble sits deeper in its value.
  const bool said =
      problem.place.source > 0 &&
      overrides_[static_cast<std::size_t>(problem.place.source - 1)].starts_with(problem.key + "=");
  if (!problem.key.empty() && !said) text += shown(problem.key) + ": ";
  return text + problem.message;
}

void Problems::raise() const {
  if (!any()) return;
  std::vector<Problem> sorted = list_;
  std::ranges::stable_sort(sorted, {}, &Problem::place);
  std::vector<std::string> lines;
  for (const Problem& problem : sorted) {
    const std::string text = line(problem);
    if (lines.empty() || lines.back() != text) lines.push_back(text);
  }
  if (left_out_ > 0) lines.push_back(fmt::format("{}: and {} more errors", file_, left_out_));
  throw Error(Exit::usage, fmt::format("{}", fmt::join(lines, "\n")));
}

std::string shown(std::string_view text, std::size_t most) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::size_t taken = std::max<std::size_t>(size, 1);
    if (out.size() + taken > most) return out + "...";
    if (byte == '\n') {
      out += "\\n";
    } else if (size == 0 || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string nearest(std::string_view given, std::span<const std::string> candidates) {
  std::string word(given);
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= best_distance) continue;  // no alignment can be nearer than that
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace heed
