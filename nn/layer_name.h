#pragma once
/// The layer that a parameter belongs to, derived from the name of the parameter.
#include <string>
#include <string_view>

namespace heed {

/// "encoder.layers.0.norm1.weight" belongs to "encoder.layers.0", "embedding.weight" to
/// "embedding".
inline std::string layer_of(const std::string& parameter) {
  constexpr std::string_view layers = ".layers.";
  const std::size_t at = parameter.find(layers);
  return parameter.substr(
      0, at == std::string::npos ? parameter.rfind('.') : parameter.find('.', at + layers.size()));
}

}  // namespace heed
