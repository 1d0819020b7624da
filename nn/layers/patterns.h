#pragma once
/// The patterns of self-attention that can be set in a config. A new pattern requires a file in
/// autograd/ops/more/attention/ and an include, a value, a name and a case in this file; the tests then
/// cover it. (In cross-attention, a query always reads all rows of its encoder sequence.)

#include "autograd/base/enum_names.h"
#include "autograd/ops/more/attention/bigbird.h"
#include "autograd/ops/more/attention/causal.h"
#include "autograd/ops/more/attention/window.h"
#include "nn/options.h"

namespace heed {

/// topk: like full, but a query reads only the keys with the largest scores
/// (AttentionOptions::top_k). linear: attention without scores
/// (autograd/ops/more/attention/linear_attention.h).
enum class PatternKind : int { full, window, bigbird, topk, linear };
constexpr auto names_of(PatternKind) {
  return enum_names<PatternKind>("full", "window", "bigbird", "topk", "linear");
}

}  // namespace heed

HEED_BEGIN

/// The pattern of `choice`; with `causal`, a query reads no later key.
inline PatternPtr make_pattern(const AttentionChoice& choice, bool causal) {
  switch (choice.pattern) {
    case PatternKind::full:
    case PatternKind::topk:
    case PatternKind::linear:
      return causal ? causal_pattern() : full_pattern();
    case PatternKind::window:
      return window_pattern(choice.window - 1, causal ? 0 : choice.window - 1);
    case PatternKind::bigbird:
      return bigbird_pattern({.block = choice.block,
                              .global_blocks = choice.global_blocks,
                              .side_blocks = choice.side_blocks,
                              .random_blocks = choice.random_blocks,
                              .causal = causal});
  }
  fail("[make_pattern] no pattern has the number {}", static_cast<int>(choice.pattern));
}

HEED_END
