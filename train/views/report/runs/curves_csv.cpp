#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "train/views/report/runs/report_page.h"

namespace heed {

std::string curves_csv(const std::vector<History>& histories,
                       const std::vector<std::string>& names) {
  std::set<std::string> known;
  for (const History& h : histories)
    for (const Curve& curve : h.curves) known.insert(curve.name);
  std::string text = "run,seed,curve,step,value\n";
  if (known.empty()) throw Error(Exit::usage, "--csv: the runs have no curves yet");
  for (const std::string& name : names) {
    if (!known.contains(name))
      throw Error(Exit::usage, "--csv {}: no run has such a curve; available: {}", name,
                  fmt::join(known, ", "));
    for (const History& h : histories) {
      const Curve* const curve = h.find(name);
      if (curve == nullptr) continue;
      for (const Point& p : curve->points)
        text += fmt::format("{},{},{},{},{}\n", csv_cell(h.result.folder), h.result.config.seed,
                            csv_cell(name), p.x, p.y);
    }
  }
  return text;
}

}  // namespace heed
