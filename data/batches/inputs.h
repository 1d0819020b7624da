#pragma once
/// Sources that are not text: each input is a sequence of rows of numbers in place of token ids.
#include <cstdint>

#include "autograd/io/sha256.h"
#include "data/batches/batch.h"
#include "data/batches/draw.h"

namespace heed {

class Inputs {
 public:
  virtual ~Inputs() = default;
  /// The number of rows that an input has in a batch.
  virtual std::int64_t rows(std::int64_t input) const = 0;
  /// Whether all inputs have the same number of rows, which data.max_length then does not limit.
  virtual bool fixed_rows() const { return false; }
  /// Appends an input as a sequence. `draw` determines its augmentation in training.
  virtual void push(std::int64_t input, const Draw& draw, Side& side) const = 0;
  /// Adds the values of an input to a checksum.
  virtual void add_to(Sha256& sum, std::int64_t input) const = 0;
};

}  // namespace heed
