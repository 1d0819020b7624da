#pragma once
/// Packs results as bytes, for exchanges between ranks of the same program on machines of the same
/// kind.
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "autograd/base/error.h"

namespace heed {

/// A struct that lists its members in `static auto members(auto& self) { return std::tie(…); }`;
/// they are packed one after the other.
template <class T>
concept Packable = requires(T& value) {
  T::members(value);
};

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

template <class T>
void pack(std::string& bytes, const T& value) {
  if constexpr (Packable<T>) {
    std::apply([&](const auto&... member) { (pack(bytes, member), ...); }, T::members(value));
  } else if constexpr (is_vector<T>) {
    pack(bytes, value.size());
    for (const auto& element : value) pack(bytes, element);
  } else {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
}

/// Removes a value from the front of `bytes`. Throws Error(failed) if `bytes` is too short.
template <class T>
void unpack(std::string_view& bytes, T& value) {
  if constexpr (Packable<T>) {
    std::apply([&](auto&... member) { (unpack(bytes, member), ...); }, T::members(value));
  } else if constexpr (is_vector<T>) {
    std::size_t size = 0;
    unpack(bytes, size);
    value.resize(size);
    for (auto& element : value) unpack(bytes, element);
  } else {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes.size() < sizeof(T))
      throw Error(Exit::failed, "the results of another rank are incomplete");
    std::memcpy(&value, bytes.data(), sizeof(T));
    bytes.remove_prefix(sizeof(T));
  }
}

}  // namespace heed
