#pragma once
/// A report of runs as one HTML page: results, curves, outputs, settings.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/sources/picture.h"
#include "train/report/runs/history.h"

namespace heed {

/// What a report shows of the first run besides its records: made from its weights and data, if they
/// are available. Empty parts are left out.
struct ReportExtras {
  /// The picture of a source line; unset if sources are not pictures.
  std::function<std::optional<Picture>(const std::string& source)> picture;
  std::string attention;  ///< elements of HTML: the attention of an example
  std::string model;      ///< layers, parameters, FLOPs and memory, as `heed show` prints them
  std::string profile;    ///< time by op, as `heed bench` prints it
  std::vector<std::string> notes;  ///< why something is missing
  int refresh = 0;                 ///< seconds after which a browser reloads the page; 0: never
};

/// `histories`: at least one, the one to compare with first. Throws as Comparison does.
std::string report_page(const std::vector<History>& histories, const ReportExtras& extras);

/// The charts of that page that compare: the loss, and the metric that judges the runs.
std::vector<Drawing> report_curves(const std::vector<History>& histories);

/// The curves with these names, of all runs, as CSV: run, seed, curve, step, value. Throws
/// Error(usage), listing the existing names, for a name that no run has.
std::string curves_csv(const std::vector<History>& histories,
                       const std::vector<std::string>& names);

}  // namespace heed
