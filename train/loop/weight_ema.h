#pragma once
/// An exponential moving average of the weights (train.ema), which is evaluated in place of the
/// weights and saved in their place in model.safetensors.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/base/team.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// mean += (1 − d) (weight − mean) after each update, with d = min(decay, (1 + n) / (10 + n)) after
/// n updates. The smaller d at the start prevents the initial weights from dominating a short run.
/// Sources: Polyak and Juditsky 1992; for d at the start, TensorFlow's ExponentialMovingAverage.
class WeightEma {
 public:
  WeightEma(double decay, std::vector<NamedTensor> weights)
      : decay_(decay), weights_(std::move(weights)) {
    for (const NamedTensor& w : weights_)
      inactive_.push_back({"weights." + w.name, Tensor(w.tensor.value().clone())});
  }

  void update(std::int64_t updates, Team& team) {
    const auto n = static_cast<double>(updates);
    const auto d = static_cast<real>(std::min(decay_, (1 + n) / (10 + n)));
    team.run(std::ssize(weights_), [&](std::int64_t i) {
      real* const mean = data(inactive_[i]);
      const std::int64_t size = weights_[i].tensor.size();
      kernels::scale(d, mean, mean, size);
      kernels::axpy(1 - d, data(weights_[i]), mean, size);
    });
  }
  /// Exchanges the values of the model's weights and of their means.
  void swap() {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      real* const w = data(weights_[i]);
      std::swap_ranges(w, w + weights_[i].tensor.size(), data(inactive_[i]));
    }
  }
  /// Sets the means to the current weights.
  void restart() {
    for (std::size_t i = 0; i < weights_.size(); ++i)
      std::copy_n(data(weights_[i]), weights_[i].tensor.size(), data(inactive_[i]));
  }
  /// The tensors that the model does not use at present, named "weights.<parameter>": the means or,
  /// after swap(), the weights.
  const std::vector<NamedTensor>& inactive() const { return inactive_; }
  [[deprecated("use inactive")]] const std::vector<NamedTensor>& other() const { return inactive_; }

 private:
  static real* data(NamedTensor& t) { return t.tensor.mutable_value().data(); }

  double decay_;
  std::vector<NamedTensor> weights_, inactive_;
};

/// Swaps the means, if there are any, into the model for the lifetime of this object.
class ScopedEma {
 public:
  explicit ScopedEma(std::optional<WeightEma>& ema) : ema_(ema) {
    if (ema_) ema_->swap();
  }
  ScopedEma(const ScopedEma&) = delete;
  ScopedEma& operator=(const ScopedEma&) = delete;
  ~ScopedEma() {
    if (ema_) ema_->swap();
  }

 private:
  std::optional<WeightEma>& ema_;
};

// ---- former names, for one release ---------------------------------------------------------

using UseMeans [[deprecated("use ScopedEma")]] = ScopedEma;

HEED_END
