#include "train/views/report/gradcheck_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/terminal/table.h"

HEED_BEGIN

namespace {

std::string counted(const GradcheckRow& row) {
  std::string text = row.checked == row.entries ? fmt::format("all {}", row.entries)
                                                : fmt::format("{}", row.checked);
  if (row.directions > 0) text += fmt::format(" + {} directions", row.directions);
  return text;
}

}  // namespace

void GradcheckTable::add(const GradcheckResult& result) {
  if (!result.problem.empty()) problem = result.problem;
  if (wrong_op.empty()) wrong_op = result.wrong_op;
  for (const ParameterCheck& c : result.parameters) {
    const auto same = [&](const GradcheckRow& row) { return row.name == c.name; };
    auto row = std::find_if(rows.begin(), rows.end(), same);
    if (row == rows.end()) {
      row = rows.insert(rows.end(), GradcheckRow());
      row->name = c.name;
      row->shape = fmt::format("{}", c.shape);
      row->entries = c.entries;
    }
    (c.directional ? row->directions : row->checked) += c.checked;
    row->kinks += c.kinks;
    row->largest = std::max(row->largest, c.largest);
    row->worst_error = std::max(row->worst_error, c.worst_error);
    row->status = std::max(row->status, c.status);
    if (row->cause.empty()) row->cause = c.cause;
  }
}

bool GradcheckTable::passed() const {
  const auto looked_at = [](const GradcheckRow& row) { return row.checked + row.directions > 0; };
  return problem.empty() && std::any_of(rows.begin(), rows.end(), looked_at) &&
         std::all_of(rows.begin(), rows.end(),
                     [](const GradcheckRow& row) { return passes(row.status); });
}

std::string GradcheckTable::text() const {
  std::vector<std::vector<std::string>> lines{
      {"parameter", "shape", "entries checked", "worst error", "  result"}};
  for (const GradcheckRow& row : rows) {
    lines.push_back({row.name, row.shape, counted(row), fmt::format("{:>11.2g}", row.worst_error),
                     fmt::format("{:>8}", passes(row.status) ? name_of(row.status) : "WRONG")});
    if (!row.cause.empty()) lines.push_back({"    " + row.cause});
  }
  std::string t = aligned(lines);
  if (!wrong_op.empty()) t += fmt::format("wrong op: {}\n", wrong_op);
  const auto wrong = std::count_if(rows.begin(), rows.end(),
                                   [](const GradcheckRow& r) { return !passes(r.status); });
  if (!problem.empty()) return t + fmt::format("failed: {}\n", problem);
  if (wrong > 0)
    return t + fmt::format("failed: the gradient is wrong for {} of {} parameters\n", wrong,
                           rows.size());
  if (!passed()) return t + "failed: nothing was checked\n";
  return t + fmt::format("all {} parameters have the right gradient\n", rows.size());
}

nlohmann::json GradcheckTable::json() const {
  nlohmann::json parameters = nlohmann::json::array();
  for (const GradcheckRow& row : rows) {
    parameters.push_back({{"name", row.name},
                          {"shape", row.shape},
                          {"entries", row.entries},
                          {"checked", row.checked},
                          {"directions", row.directions},
                          {"kinks", row.kinks},
                          {"largest", row.largest},
                          {"worst_error", row.worst_error},  // null if infinite
                          {"status", name_of(row.status)},
                          {"passed", passes(row.status)},
                          {"cause", row.cause}});
  }
  return {{"passed", passed()},
          {"problem", problem},
          {"wrong_op", wrong_op},
          {"parameters", parameters}};
}

HEED_END
