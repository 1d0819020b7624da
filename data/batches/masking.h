#pragma once
/// Masked language modelling (Devlin et al., "BERT", 2019): a model reads lines with hidden tokens
/// and predicts these tokens.
#include <cstdint>
#include <vector>

#include "data/batches/batching.h"
#include "data/options.h"

namespace heed {

/// The parameters of masking. The hidden tokens of a line are a function of seed, epoch and sample;
/// an evaluation always hides the same tokens.
struct Masking {
  MaskOptions options;
  std::int32_t mask = 0;        ///< the id of <mask>
  std::int32_t first = 0;       ///< the first id that is not a special piece
  std::int32_t vocabulary = 0;  ///< random tokens are drawn from [first, vocabulary)
  std::vector<bool> continues;  ///< by id: whether the piece continues a word; empty: none does
  /// By sample: whether the next sample is the next line of its document.
  std::vector<bool> followed;
};

/// Samples are lines, "<s> A </s>". The model predicts a share (options.rate) of the tokens of a
/// sample, but at least one. Each of these is replaced by <mask> with probability 0.8 and by a
/// random token with probability 0.1; otherwise it is unchanged. Requires Dataset::masking. With
/// options.next_sentence, a sample is "<s> A </s> B </s>". If the next line belongs to the same
/// document, B is that line with probability 1/2; otherwise B is a random line other than the next
/// one. The label of <s> is <s> if B is the next line, else </s>.
const Batching& masked_lines();

}  // namespace heed
