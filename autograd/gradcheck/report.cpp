#include <algorithm>
#include <cmath>
#include <ostream>

#include "autograd/gradcheck.h"
#include "autograd/gradcheck/diagnosis.h"

HEED_BEGIN

namespace {

std::string where(const ParameterCheck& c, std::int64_t index) {
  return c.directional ? fmt::format("direction {}", index) : index_in(c.shape, index);
}

double relative_error(const GradcheckEntry& entry) {
  const double largest = std::max(std::abs(entry.analytic), std::abs(entry.numeric));
  return largest == 0 ? 0 : std::abs(entry.analytic - entry.numeric) / largest;
}

std::string counted(const ParameterCheck& c) {
  if (c.directional) return fmt::format("{} direction{}", c.checked, c.checked == 1 ? "" : "s");
  if (c.checked == c.entries)
    return fmt::format("{} {}", c.entries, c.entries == 1 ? "entry" : "entries");
  return fmt::format("{} of {} entries", c.checked, c.entries);
}

std::string kinks_of(const ParameterCheck& c) {
  std::string text;
  for (const GradcheckEntry& k : c.kinked) {
    text += fmt::format(
        "    kink at {}: slope {:.6g} on the left, {:.6g} on the right; analytic {:.6g}\n",
        where(c, k.index), k.left, k.right, k.analytic);
  }
  if (c.kinks > static_cast<std::int64_t>(c.kinked.size()))
    text += fmt::format("    … {} kinks in all\n", c.kinks);
  return text;
}

std::string good(const ParameterCheck& c) {
  if (c.status == GradcheckStatus::empty)
    return fmt::format("  {} {}: nothing to check\n", c.name, c.shape);
  if (c.status == GradcheckStatus::declared)
    return fmt::format("  {} {}: not compared, because {} has a straight-through gradient\n",
                       c.name, c.shape, c.declared_by);
  return fmt::format("  {} {}: {}, {}, worst error {:.2g}\n", c.name, c.shape, name_of(c.status),
                     counted(c), c.worst_error) +
         kinks_of(c);
}

std::string bad(const ParameterCheck& c) {
  std::string text = fmt::format("  {} {}: WRONG", c.name, c.shape);
  if (c.checked > 0)
    text +=
        fmt::format(", {} of {} {}", c.wrong, c.checked, c.directional ? "directions" : "entries");
  text += "\n";
  if (!c.cause.empty()) text += fmt::format("    likely cause: {}\n", c.cause);
  const char* what = "worst at";
  for (const GradcheckEntry& e : c.worst) {
    text += fmt::format("    {} {}: analytic {:.9g}, numeric {:.9g}, relative error {:.3g}", what,
                        where(c, e.index), e.analytic, e.numeric, relative_error(e));
    if (e.left != e.right)
      text +=
          fmt::format(" (a kink: slope {:.6g} on the left, {:.6g} on the right)", e.left, e.right);
    text += "\n";
    what = "    also";
  }
  return text + kinks_of(c);
}

}  // namespace

bool GradcheckResult::passed() const {
  return problem.empty() && std::all_of(parameters.begin(), parameters.end(),
                                        [](const ParameterCheck& c) { return passes(c.status); });
}

std::string GradcheckResult::report() const {
  const auto wrong = std::count_if(parameters.begin(), parameters.end(),
                                   [](const ParameterCheck& c) { return !passes(c.status); });
  std::string text;
  if (!problem.empty()) {
    text = fmt::format("gradcheck failed: {}\n", problem);
  } else if (wrong > 0) {
    text = fmt::format("gradcheck failed: {} of {} tensors wrong\n", wrong, parameters.size());
  } else {
    text = "gradcheck passed\n";
  }
  for (const ParameterCheck& c : parameters) {
    if (!passes(c.status)) text += bad(c);
  }
  if (!wrong_op.empty()) text += fmt::format("  wrong op: {}\n", wrong_op);
  for (const ParameterCheck& c : parameters) {
    if (passes(c.status)) text += good(c);
  }
  for (const std::string& note : notes) text += fmt::format("  note: {}\n", note);
  return text +
         fmt::format(
             "  allowed: |analytic - numeric| <= {:g} + {:g} max(|analytic|, |numeric|); seed {}\n",
             abs, rel, seed);
}

std::ostream& operator<<(std::ostream& out, const GradcheckResult& result) {
  return out << result.report();
}

HEED_END
