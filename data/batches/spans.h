#pragma once
/// Span corruption: Raffel et al., "Exploring the limits of transfer learning with a unified
/// text-to-text transformer", JMLR 2020, section 3.1.4.
#include <vector>

#include "data/batches/batching.h"
#include "data/options.h"

namespace heed {

struct HiddenSpans {
  SpanOptions options;
  std::int32_t first_mark = 0;  ///< id of <extra_id_0>; the ids of the further sentinels follow
};

/// Returns, for each token of a line, whether it is hidden. Of n ≥ 2 tokens, h = min(max(1,
/// round(rate n)), n − 1) are hidden, in min(max(1, round(h / length)), n − h) spans. Hidden and
/// visible tokens are cut into the same number of parts; all ways to cut are equally likely. A line
/// begins with visible tokens. The method is that of T5's random_spans_noise_mask.
std::vector<bool> hidden_tokens(std::int64_t tokens, const SpanOptions& options, Random& random);

/// Samples are lines (Dataset::source, without specials, of at least two tokens). The encoder reads
/// the visible tokens, with <extra_id_0>, <extra_id_1>, … in place of hidden spans, then </s>. The
/// decoder generates <extra_id_0>, the first span, <extra_id_1>, …, then </s>. Each epoch hides
/// different tokens; an evaluation always hides the same tokens.
const Batching& hidden_spans();

}  // namespace heed
