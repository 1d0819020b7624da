#include "train/config/problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"

namespace heed {
namespace {

/// True if the two dotted paths are equal or one of them is a section that contains the other.
bool related(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}

}  // namespace

Problems::Problems(std::string_view file, std::span<const std::string> overrides)
    : file_(shown(file, 4096)), overrides_(overrides.begin(), overrides.end()) {}

void Problems::add(Place place, std::string key, std::string message) {
  if (!full()) {
    list_.push_back({place, std::move(key), std::move(message)});
  } else {
    ++omitted_;
  }
}

void Problems::warn(Place place, std::string key, std::string message) {
  warnings_.push_back({place, std::move(key), std::move(message)});
}

std::vector<std::string> Problems::warnings() const {
  std::vector<std::string> lines;
  for (const Problem& warning : warnings_) lines.push_back(line(warning));
  return lines;
}

void Problems::mark_invalid(std::string key) {
  if (invalid_.size() < max_problems) invalid_.push_back(std::move(key));
}

bool Problems::about(std::string_view key) const {
  const auto is_about = [&](const std::string& wrong) { return related(key, wrong); };
  return std::ranges::any_of(list_, is_about, &Problem::key) ||
         std::ranges::any_of(invalid_, is_about);
}

std::string Problems::show(Place place) const {
  if (place.source == 0) return fmt::format("{}:{}:{}", file_, place.line, place.column);
  return "command line: " + shown(overrides_.at(static_cast<std::size_t>(place.source - 1)), 100);
}

std::string Problems::line(const Problem& problem) const {
  std::string text = show(problem.place) + ": ";
  // The place of an override shows its text, which begins with its key. The message then adds the
  // key only if the error concerns a different key.
  const bool shown_already = problem.place.source > 0 &&
                             overrides_[problem.place.source - 1].starts_with(problem.key + "=");
  if (!problem.key.empty() && !shown_already) text += shown(problem.key) + ": ";
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
  if (omitted_ > 0) lines.push_back(fmt::format("{}: further errors: {}", file_, omitted_));
  throw Error(Exit::usage, "{}", fmt::join(lines, "\n"));
}

}  // namespace heed
