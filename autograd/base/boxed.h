#pragma once
/// A value on the heap, for a member whose type may be incomplete where the member is declared:
/// files that include the declaration need no recompilation when the type changes.
#include <memory>
#include <utility>

namespace heed {

/// A const Boxed gives only const access to its value, and copying a Boxed copies the value. A
/// moved-from Boxed has no value. The header that declares the member also declares `extern
/// template class Boxed<T>;`, and one file where T is complete contains `template class Boxed<T>;`.
template <class T>
class Boxed {
 public:
  Boxed();
  Boxed(const T& value);
  Boxed(const Boxed& other);
  Boxed(Boxed&& other) noexcept;
  Boxed& operator=(Boxed other) noexcept;
  ~Boxed();

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  operator const T&() const { return *value_; }

 private:
  std::unique_ptr<T> value_;
};

// Defined outside the class, because `extern template` does not apply to inline functions.
template <class T>
Boxed<T>::Boxed() : value_(std::make_unique<T>()) {}
template <class T>
Boxed<T>::Boxed(const T& value) : value_(std::make_unique<T>(value)) {}
template <class T>
Boxed<T>::Boxed(const Boxed& other) : value_(std::make_unique<T>(*other)) {}
template <class T>
Boxed<T>::Boxed(Boxed&& other) noexcept : value_(std::move(other.value_)) {}
template <class T>
Boxed<T>& Boxed<T>::operator=(Boxed other) noexcept {
  value_ = std::move(other.value_);
  return *this;
}
template <class T>
Boxed<T>::~Boxed() = default;

}  // namespace heed
