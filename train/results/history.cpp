#include "train/results/history.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>

#include "autograd/io/files.h"
#include "train/run/run_record.h"

namespace heed {

namespace {

/// Fields of a record that are not drawn as curves.
constexpr std::array<std::string_view, 9> places{"step",   "seconds",        "epoch",
                                                 "tokens", "target_tokens",  "sentences",
                                                 "beam",   "decode_seconds", "cut_outputs"};

using Curves = std::map<std::string, std::vector<Point>>;

void add_points(Curves& curves, const std::string& prefix, const nlohmann::json& record,
                double step) {
  for (const auto& [key, value] : record.items()) {
    if (std::ranges::find(places, key) != places.end()) continue;
    if (value.is_number() || value.is_null())
      curves[prefix + key].push_back({step, value.is_null() ? std::nan("") : value.get<double>()});
    if (key == "gradient_norms" && value.is_object())
      add_points(curves, prefix + key + ".", value, step);
  }
}

/// The lines of train.log about incidents, without those about normal progress.
std::vector<std::string> incidents_of(const RunFolder& run) {
  constexpr std::array signs{
      "  continuing from", "  skipped",    "  warning:",  "  note:",   "damaged",
      "stopping early",    "were skipped", "interrupted", "stopped by"};
  std::vector<std::string> lines;
  if (!path_exists(run.log())) return lines;
  std::istringstream log(read_bytes(run.log()));
  for (std::string line; std::getline(log, line) && !log.eof();) {  // omits an incomplete last line
    if (std::ranges::any_of(signs,
                            [&](const char* sign) { return line.find(sign) != std::string::npos; }))
      lines.push_back(line);
  }
  return lines;
}

}  // namespace

const Curve* History::find(const std::string& name) const {
  const auto found = std::ranges::lower_bound(curves, name, {}, &Curve::name);
  return found != curves.end() && found->name == name ? &*found : nullptr;
}

History read_history(const std::string& folder) {
  const RunFolder run{folder};
  History history;
  std::vector<nlohmann::json> records = read_metrics(run);
  Curves curves;
  for (const nlohmann::json& record : records) {
    const std::string kind = record.value("kind", "");
    history.step = std::max(history.step, record.value("step", std::int64_t{0}));
    history.seconds = std::max(history.seconds, record.value("seconds", 0.0));
    history.target_tokens =
        std::max(history.target_tokens, record.value("target_tokens", std::int64_t{0}));
    if (kind == "train" || kind == "valid")
      add_points(curves, kind + ".", record, record.value("step", 0.0));
  }
  for (auto& [name, points] : curves) history.curves.push_back({name, std::move(points)});
  history.result = result_of(folder, std::move(records));
  history.run = read_run_json(run);
  history.outputs = read_outputs(run);
  history.incidents = incidents_of(run);
  return history;
}

}  // namespace heed
