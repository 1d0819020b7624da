#pragma once
/// Sources that are not text: each gives rows of numbers, where a line gives token ids.
#include <cstdint>

#include "autograd/base/sha256.h"
#include "data/batches/batch.h"
#include "data/batches/draw.h"

namespace heed {

class Inputs {
 public:
  virtual ~Inputs() = default;
  /// Rows of an input in a batch.
  virtual std::int64_t rows(std::int64_t input) const = 0;
  /// Appends an input as a sequence. `draw` determines how training varies it.
  virtual void push(std::int64_t input, const Draw& draw, Side& side) const = 0;
  /// Adds what training reads of an input to a checksum.
  virtual void add_to(Sha256& sum, std::int64_t input) const = 0;
};

}  // namespace heed
