#pragma once
#include <utility>

namespace heed {

/// Gives a variable, usually a thread_local one, another value for the lifetime of this object.
template <class T>
class ScopedValue {
 public:
  ScopedValue(T& variable, T value)
      : before(std::exchange(variable, std::move(value))), variable_(variable) {}
  ~ScopedValue() { variable_ = before; }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

  const T before;  ///< the value that is restored

 private:
  T& variable_;
};

}  // namespace heed
