#pragma once
/// Replaces values in the results and gradients of ops, for example by NaN.
#include "autograd/tape/observer.h"
#include "autograd/tensor.h"

namespace heed::test {

/// During its lifetime, counts the results and gradients of this thread's ops. Once the numbers per
/// step are set, also replaces the value at `place` in every step, so that a repeated step fails at
/// the same place. Steps must have one shard and run on one thread.
class Injector final : public OpObserver {
 public:
  struct Place {
    bool forward = true;       ///< true: a result; false: a gradient
    std::int64_t number = -1;  ///< index of the result or gradient within the step
    std::int64_t at = 0;       ///< index of the value, taken modulo the size of the array
    real value = 0;
  };
  Place place;

  std::int64_t results = 0, gradients_seen = 0;  ///< number of each per step, set by learn()
  /// Sets the numbers per step to the counts so far. Must be called after exactly one step.
  void learn() {
    results = std::exchange(result_count_, 0);
    gradients_seen = std::exchange(gradient_count_, 0);
  }

  void result(const std::type_info&, const Array& y, std::span<const NodeRef>) override {
    if (is_place(result_count_++, results) && place.forward) put(y);
  }
  void gradients(const std::type_info&, std::span<const NodeRef>,
                 std::span<const Grad> dx) override {
    for (const Grad& g : dx) {
      if (g.value() == nullptr) continue;
      if (is_place(gradient_count_++, gradients_seen) && !place.forward) put(*g.value());
    }
  }

 private:
  bool is_place(std::int64_t count, std::int64_t per_step) const {
    return per_step > 0 && count % per_step == place.number;
  }
  void put(const Array& x) const {
    const_cast<real*>(x.data())[place.at % x.size()] =
        place.value;  // observers receive const arrays
  }

  std::int64_t result_count_ = 0, gradient_count_ = 0;
};

}  // namespace heed::test
