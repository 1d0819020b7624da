#pragma once
/// Faults for the tests of what happens when numbers go wrong.
#include "autograd/tensor.h"

namespace heed::test {

/// While one lives, it counts what this thread's ops compute in a step (one shard, one thread), and
/// can put a value into one of their results or gradients, in every step alike, so that a step that
/// is repeated goes wrong in the same place.
class Injector final : public OpObserver {
 public:
  Injector() : before_(std::exchange(active, this)) {}
  ~Injector() override { active = before_; }
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  struct Place {
    bool forward = true;       ///< a result; else a gradient
    std::int64_t number = -1;  ///< which of the step's, from 0
    std::int64_t at = 0;       ///< which value of it, modulo its size
    real value = 0;
  };
  Place place;

  std::int64_t results = 0, gradients_seen = 0;  ///< of a step, once learn() was called
  /// After a step that was only counted: from now on steps are told apart.
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
    const_cast<real*>(x.data())[place.at % x.size()] = place.value;  // a fault asks nobody
  }

  std::int64_t result_count_ = 0, gradient_count_ = 0;
  OpObserver* before_;
};

}  // namespace heed::test
