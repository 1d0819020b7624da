#include "autograd/gradcheck/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/base/random.h"

HEED_BEGIN

namespace gradcheck_detail {

GradcheckOptions one_direction(GradcheckOptions options) {
  options.directions = 1;
  options.on_parameter = nullptr;
  options.allow_unlisted = true;
  options.stop_at_first = true;
  return options;
}

std::string first_wrong(const GradcheckResult& result) {
  for (const ParameterCheck& c : result.parameters) {
    // Many kinks along a direction may shift its slope by slightly more than the tolerance.
    const bool slight = c.cause.starts_with("unknown: all single entries") && c.worst_error < 1e-3;
    if (c.status != GradcheckStatus::wrong || slight) continue;
    return fmt::format("the gradient of {} is wrong{}{}", c.name, c.cause.empty() ? "" : ": ",
                       c.cause);
  }
  return {};
}

Array changed_by_a_tenth(const Array& x, std::uint64_t seed) {
  Array y = x.clone();
  Random random({seed, Stream::check, 4, 0});
  for (real& v : y.values()) {
    const double u = 2 * random.uniform() - 1;
    v = static_cast<real>(v == 0 ? 1e-3 * u : v * (1 + 0.1 * u));
  }
  return y;
}

OtherValues::OtherValues(const std::vector<NamedTensor>& variables, std::uint64_t seed) {
  for (const NamedTensor& p : variables) {
    if (!p.tensor.defined()) continue;
    values_.push_back(p.tensor.value());
    before_.push_back(p.tensor.value().clone());
    const Array changed = changed_by_a_tenth(before_.back(), ++seed);
    std::ranges::copy(changed.values(), values_.back().data());
  }
}

OtherValues::~OtherValues() {
  for (std::size_t i = values_.size(); i-- > 0;)  // in reverse order, for a variable listed twice
    std::copy_n(before_[i].data(), before_[i].size(), values_[i].data());
}

Gradients weighted_gradients(const Tensor& y, std::uint64_t seed) {
  if (!y.needs_grad()) return {};
  Array cotangent(y.shape());
  Random random({seed, Stream::check, 0, 1});
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const real u = static_cast<real>(0.5 + random.uniform());
    cotangent.data()[i] = std::isfinite(y.value().data()[i]) ? u : 0;
  }
  return backward(y, cotangent);
}

bool all_finite(const Array& x) {
  return std::ranges::all_of(x.values(), [](real v) { return std::isfinite(v); });
}

double largest_finite(const Array& a) {
  double size = 0;
  for (const real v : a.values())
    size = std::isfinite(v) ? std::max(size, std::abs(static_cast<double>(v))) : size;
  return size;
}

bool agrees(const Array& a, const Array& b, double scale) {
  scale = std::max(scale, largest_finite(b));
  const double allowed = 1e4 * std::numeric_limits<real>::epsilon() * scale;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double p = a.data()[i], q = b.data()[i];
    if (!(std::abs(p - q) <= allowed) && (std::isfinite(p) || std::isfinite(q))) return false;
  }
  return true;
}

}  // namespace gradcheck_detail

HEED_END
