#include "autograd/tape/finite_check.h"

HEED_BEGIN

std::string NonFinite::text() const {
  return fmt::format("{}: shape {}, {} at row {}, column {}", tensor, shape, unsigned_nan(value),
                     row, col);
}

std::optional<NonFinite> find_non_finite(const Array& x, const std::string& tensor) {
  if (!x.defined()) return std::nullopt;
  const std::span<const real> values = x.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const auto at = static_cast<std::int64_t>(i);
    return NonFinite{tensor, x.shape(), at / x.cols(), at % x.cols(), values[i]};
  }
  return std::nullopt;
}

std::optional<NonFinite> find_non_finite(std::span<const NamedTensor> tensors,
                                         const std::string& what) {
  for (const NamedTensor& t : tensors) {
    if (auto found = find_non_finite(t.tensor.value(), fmt::format("{} {}", what, t.name)))
      return found;
  }
  return std::nullopt;
}

FiniteCheck::FiniteCheck(std::span<const NamedTensor> parameters) {
  for (const NamedTensor& p : parameters) names_.emplace(p.tensor.node().get(), p.name);
}

std::string FiniteCheck::place(std::span<const NodeRef> inputs) {
  for (const NodeRef& input : inputs) {
    const auto name = names_.find(input.get());
    if (name == names_.end()) continue;
    last_name_ = name->second;
    return fmt::format(" at {}", last_name_);
  }
  return last_name_.empty() ? "" : fmt::format(" after {}", last_name_);
}

void FiniteCheck::result(const std::type_info& op, const Array& y,
                         std::span<const NodeRef> inputs) {
  OpObserver::result(op, y, inputs);
  if (found_) return;
  const std::string where = place(inputs);
  found_ = find_non_finite(y, fmt::format("the result of {}{}", op_name(op), where));
}

void FiniteCheck::gradients(const std::type_info& op, std::span<const NodeRef> inputs,
                            std::span<const Grad> dx) {
  OpObserver::gradients(op, inputs, dx);
  if (found_) return;
  const std::string where = place(inputs);
  for (std::size_t i = 0; i < dx.size() && !found_; ++i) {
    if (dx[i].value() == nullptr) continue;
    const auto name = names_.find(inputs[i].get());
    found_ = find_non_finite(*dx[i].value(), name != names_.end()
                                                 ? fmt::format("the gradient of {}", name->second)
                                                 : fmt::format("the gradient of input {} of {}{}",
                                                               i, op_name(op), where));
  }
}

HEED_END
