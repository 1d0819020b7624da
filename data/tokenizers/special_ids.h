#pragma once
/// The ids of the special pieces that sequences contain.
#include <cstdint>

namespace heed {

/// heed's own vocabularies have the default ids. Vocabularies of other programs have other ids, and
/// may lack some of these pieces (−1).
struct SpecialIds {
  std::int32_t unk = 0;  ///< <unk>: text that no piece represents
  std::int32_t bos = 1;  ///< <s>: begins a sequence that a decoder writes or an encoder labels
  std::int32_t eos = 2;  ///< </s>: ends a sequence

  bool contains(std::int64_t id) const { return id >= 0 && (id == unk || id == bos || id == eos); }
  bool operator==(const SpecialIds&) const = default;
};

}  // namespace heed
