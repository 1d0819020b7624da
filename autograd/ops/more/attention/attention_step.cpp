#include "autograd/kernels/fast/attend.h"
#include "autograd/kernels/rows.h"
#include "autograd/ops/more/attention/keep_largest.h"
#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

AttentionStep::AttentionStep(const AttentionOptions& options, std::int64_t q_columns)
    : options_(options), layout_(options.layout("attention_step", q_columns, false)) {}

void AttentionStep::attend(const real* q, const QueryBlock& query, real* out) {
  const auto n = static_cast<std::int64_t>(rows_.size());
  scores_.resize(static_cast<std::size_t>(layout_.heads * n));
  kernels::attend_scores(q, rows_.data(), n, layout_, options_.scale_for(layout_), scores_.data());
  for (const ScoreTermPtr& term : options_.terms) add(*term, q, query);
  const std::vector<KeyRange> all(layout_.heads, {0, n});
  if (options_.top_k > 0)
    keep_largest(options_.top_k, scores_.data(), layout_.heads, n, {all.data(), 0});
  for (std::int64_t h = 0; h < layout_.heads; ++h) {
    kernels::map_scores(options_.map, scores_.data() + h * n, n);
  }
  kernels::attend_mix(scores_.data(), rows_.data(), n, layout_, out);
}

/// Each head's row of scores_ contains the scores of all stretches, in order; a term receives one
/// stretch at a time.
void AttentionStep::add(const ScoreTerm& term, const real* q, const QueryBlock& query) {
  real* s = scores_.data();
  for (std::int64_t head = 0; head < layout_.heads; ++head) {
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      const KeyRange keys = stretches_.keys(i);
      const std::int64_t count = keys.end - keys.begin;
      term.add({query.sequence, head, layout_.heads, query.first, 1, keys.begin, count,
                q + head * layout_.size, layout_.heads * layout_.size, layout_.size,
                options_.scale_for(layout_)},
               s);
      s += count;
    }
  }
}

HEED_END
