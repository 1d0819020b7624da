#pragma once
/// A report of runs as one HTML page: results, curves, outputs, settings.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/sources/image.h"
#include "train/results/history.h"
#include "train/views/draw/svg.h"

namespace heed {

/// Optional parts of a report, computed from the weights, data or config of the first run. Empty
/// parts are omitted.
struct ReportExtras {
  /// Returns the image of a source line, or nullopt if it cannot be read. Empty if the sources are
  /// not images.
  std::function<std::optional<Image>(const std::string& source)> image;
  std::string sample;     ///< texts that a language model generates, as HTML
  std::string attention;  ///< attention weights of an example, as HTML
  std::string model;      ///< layers, parameters, FLOPs and memory, in the form of `heed show`
  std::string profile;    ///< time of each op, in the form of `heed bench`
  std::vector<std::string> notes;  ///< reasons for missing parts
  int refresh = 0;  ///< interval between reloads by the browser, in seconds; 0: no reload
};

/// The report as an HTML page. `histories` contains at least one run; further runs are compared
/// with the first. Throws the errors of Comparison.
std::string report_page(const std::vector<History>& histories, const ReportExtras& extras);

/// The main charts of the page: the loss and, if the page reports another metric, that metric.
/// Charts without values are omitted.
std::vector<Drawing> report_curves(const std::vector<History>& histories);

/// The curves `names` of all runs as CSV: run, seed, curve, step, value. Throws Error(usage) if the
/// runs have no curves or, listing the existing curves, if one of `names` is not a curve of any
/// run.
std::string curves_csv(const std::vector<History>& histories,
                       const std::vector<std::string>& names);

}  // namespace heed
