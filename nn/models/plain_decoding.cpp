#include "nn/models/plain_decoding.h"

#include <algorithm>

#include "autograd/ops.h"
#include "nn/pass.h"

HEED_BEGIN

PlainDecoding::PlainDecoding(const Model& model, std::span<const std::int32_t> source,
                             std::span<const std::int32_t> source_offsets, std::int64_t count)
    : model_(model) {
  for (std::size_t s = 0; s + 1 < source_offsets.size(); ++s) {
    sources_.emplace_back(source.begin() + source_offsets[s],
                          source.begin() + source_offsets[s + 1]);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) hypotheses_.push_back({i, {}});
}

Array PlainDecoding::step(std::span<const std::int32_t> tokens) {
  const NoGrad no_grad;
  std::vector<std::int32_t> source, source_offsets, target, target_offsets{0};
  if (!sources_.empty()) source_offsets.push_back(0);
  for (std::size_t i = 0; i < hypotheses_.size(); ++i) {
    Hypothesis& h = hypotheses_[i];
    h.tokens.push_back(tokens[i]);
    target.insert(target.end(), h.tokens.begin(), h.tokens.end());
    target_offsets.push_back(static_cast<std::int32_t>(target.size()));
    if (sources_.empty()) continue;
    source.insert(source.end(), sources_[h.sentence].begin(), sources_[h.sentence].end());
    source_offsets.push_back(static_cast<std::int32_t>(source.size()));
  }
  Pass pass;
  const Array hidden =
      model_.hidden({source, source_offsets, target, target_offsets}, pass).value();
  Array last({static_cast<std::int64_t>(hypotheses_.size()), hidden.cols()});
  for (std::size_t i = 0; i < hypotheses_.size(); ++i) {
    std::copy_n(hidden.row(target_offsets[i + 1] - 1), hidden.cols(),
                last.row(static_cast<std::int64_t>(i)));
  }
  return affine(Tensor(last), model_.output_weight(), model_.output_bias()).value();
}

void PlainDecoding::select(std::span<const std::int32_t> parents) {
  std::vector<Hypothesis> chosen;
  for (const std::int32_t p : parents) chosen.push_back(hypotheses_[static_cast<std::size_t>(p)]);
  hypotheses_ = std::move(chosen);
}

HEED_END
