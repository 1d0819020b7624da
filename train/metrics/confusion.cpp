#include "train/metrics/confusion.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/io/utf8.h"

namespace heed {

namespace {

double ratio(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

std::int64_t width_of(const std::string& text) {
  std::int64_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++characters)
    at += std::max<std::size_t>(utf8_length(text, at), 1);
  return characters;
}

std::string padded(const std::string& text, std::int64_t width, bool left) {
  const std::string space(
      static_cast<std::size_t>(std::max<std::int64_t>(width - width_of(text), 0)), ' ');
  return left ? text + space : space + text;
}

}  // namespace

double Confusion::Class::precision() const { return ratio(correct, given); }
double Confusion::Class::recall() const { return ratio(correct, occurrences); }
double Confusion::Class::f1() const { return ratio(2 * correct, given + occurrences); }

std::vector<Confusion::Class> Confusion::classes() const {
  std::map<std::int32_t, Class> all;
  for (const auto& [pair, n] : counts_) {
    const auto& [right, given] = pair;
    all[right].occurrences += n;
    all[given].given += n;
    if (right == given) all[right].correct += n;
  }
  std::vector<Class> list;
  for (auto& [label, c] : all) {
    c.label = label;
    list.push_back(c);
  }
  return list;
}

double Confusion::accuracy() const { return ratio(correct_, total_); }

double Confusion::macro_f1() const {
  double sum = 0;
  const std::vector<Class> all = classes();
  for (const Class& c : all) sum += c.f1();
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

nlohmann::json Confusion::json(const Names& names) const {
  nlohmann::json all{{"classes", nlohmann::json::object()},
                     {"confusion", nlohmann::json::object()}};
  for (const Class& c : classes()) {
    all["classes"][names(c.label)] = {{"precision", c.precision()},
                                      {"recall", c.recall()},
                                      {"f1", c.f1()},
                                      {"occurrences", c.occurrences}};
  }
  for (const auto& [pair, n] : counts_) all["confusion"][names(pair.first)][names(pair.second)] = n;
  return all;
}

std::vector<std::string> Confusion::text(const Names& names) const {
  constexpr std::size_t max_columns = 12;
  const std::vector<Class> all = classes();
  std::vector<std::string> labels;
  std::int64_t width = 5;
  for (const Class& c : all) {
    labels.push_back(names(c.label));
    width = std::max(width, width_of(labels.back()));
  }
  std::vector<std::string> lines{
      fmt::format("{}  precision  recall      F1  occurrences", padded("label", width, true))};
  for (std::size_t i = 0; i < all.size(); ++i) {
    lines.push_back(fmt::format("{}  {:9.4f}  {:6.4f}  {:6.4f}  {:11}",
                                padded(labels[i], width, true), all[i].precision(), all[i].recall(),
                                all[i].f1(), all[i].occurrences));
  }
  if (all.size() > max_columns) return lines;
  lines.emplace_back("true label (rows) and predicted label (columns):");
  const std::int64_t column = std::max<std::int64_t>(width, 6);
  std::string heading = padded("", width, true);
  for (const std::string& label : labels) heading += "  " + padded(label, column, false);
  lines.push_back(heading);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string line = padded(labels[i], width, true);
    for (const Class& given : all) {
      const auto found = counts_.find({all[i].label, given.label});
      const std::int64_t n = found == counts_.end() ? 0 : found->second;
      line += "  " + padded(std::to_string(n), column, false);
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace heed
