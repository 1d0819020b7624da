#pragma once
/// Injects non-finite values.
#include "autograd/tensor.h"

namespace heed::test {

/// While it exists, it counts the results and gradients of this thread's ops in a step (one shard,
/// one thread), and can replace a value in one of them. It does so in every step, so that a
/// repeated step fails in the same place.
class Injector final : public OpObserver {
 public:
  Injector() : before_(std::exchange(active, this)) {}
  ~Injector() override { active = before_; }
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  struct Place {
    bool forward = true;       ///< a result, otherwise a gradient
    std::int64_t number = -1;  ///< index within the step, from 0
    std::int64_t at = 0;       ///< index of the value, modulo the size
    real value = 0;
  };
  Place place;

  std::int64_t results = 0, gradients_seen = 0;  ///< per step, once learn() was called
  /// To be called after a step that was only counted: later steps are then told apart.
  void learn() {
    results = std::exchange(result_count_, 0);
    gradients_seen = std::exchange(gradient_count_, 0);
  }

  void result(const std::type_info&, const Array& y, std::span<const NodeRef>) override {
    if (is_it(result_count_++, results) && place.forward) put(y);
  }
  void gradients(const std::type_info&, std::span<const NodeRef>,
                 std::span<const Grad> dx) override {
    for (const Grad& g : dx) {
      if (g.value() == nullptr) continue;
      if (is_it(gradient_count_++, gradients_seen) && !place.forward) put(*g.value());
    }
  }

 private:
  bool is_it(std::int64_t count, std::int64_t per_step) const {
    return per_step > 0 && count % per_step == place.number;
  }
  void put(const Array& x) const {
    const_cast<real*>(x.data())[place.at % x.size()] = place.value;  // despite const
  }

  std::int64_t result_count_ = 0, gradient_count_ = 0;
  OpObserver* before_;
};

}  // namespace heed::test
