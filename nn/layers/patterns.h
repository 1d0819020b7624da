#pragma once
/// The patterns that a config can choose for self-attention. A new one needs its own file in
/// autograd/ops/attention/ and, here, an include, a value, a name and a case; the tests then
/// include it. (Attention to a memory always reads all of it.)

#include "autograd/base/enum_names.h"
#include "autograd/ops/attention/causal.h"
#include "autograd/ops/attention/window.h"
#include "nn/options.h"

namespace heed {

enum class PatternKind : int { full, window };
constexpr auto names_of(PatternKind) { return enum_names<PatternKind>("full", "window"); }

}  // namespace heed

HEED_BEGIN

/// `causal`: a query reads no later key.
inline PatternPtr make_pattern(const AttentionReach& reach, bool causal) {
  switch (reach.pattern) {
    case PatternKind::full:
      return causal ? causal_pattern() : full_pattern();
    case PatternKind::window:
      return window_pattern(reach.window - 1, causal ? 0 : reach.window - 1);
  }
  fail("[make_pattern] no pattern has the number {}", static_cast<int>(reach.pattern));
}

HEED_END
