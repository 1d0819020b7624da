#include "train/loop/nonfinite.h"

#include <algorithm>
#include <optional>

#include "autograd/finite_check.h"

HEED_BEGIN

namespace {

/// The sequence that a row belongs to.
std::size_t owner(std::span<const std::int32_t> offsets, std::int64_t row) {
  return static_cast<std::size_t>(std::upper_bound(offsets.begin(), offsets.end(), row) -
                                  offsets.begin() - 1);
}

/// The sample that a row belongs to, if the number of rows matches exactly one side.
std::optional<std::int64_t> sample_of(const Batch& shard, const NonFinite& found) {
  const auto rows_are = [&](const Side& side) {
    return !side.offsets.empty() && found.shape.rows() == side.rows();
  };
  const bool source = rows_are(shard.source), target = rows_are(shard.target);
  if (source == target) return std::nullopt;
  return shard.samples[owner((source ? shard.source : shard.target).offsets, found.row)];
}

std::string samples_of(const Batch& shard) {
  constexpr std::size_t shown = 20;
  const std::size_t n = shard.samples.size();
  const std::span<const std::int64_t> some(shard.samples.data(), std::min(n, shown));
  return fmt::format("samples {}{}", fmt::join(some, ", "),
                     n > shown ? fmt::format(", … ({} in all)", n) : "");
}

}  // namespace

std::string explain_non_finite(const Model& model, std::span<const NamedTensor> parameters,
                               std::span<const Batch> shards, std::int64_t step,
                               const StepOptions& options) {
  if (const auto found = find_non_finite(parameters, "the weight"))
    return fmt::format("  first: {}", found->text());
  double tokens = 0;
  for (const Batch& shard : shards) tokens += static_cast<double>(shard.labels.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].labels.empty()) continue;
    const FiniteCheck check(parameters);
    shard_gradients(model, shards[i], static_cast<std::int64_t>(i), step, tokens, options, nullptr);
    if (!check.found()) continue;
    std::string text = fmt::format("  first: {}\n  in shard {} of {}, {}", check.found()->text(),
                                   i + 1, shards.size(), samples_of(shards[i]));
    if (const auto sample = sample_of(shards[i], *check.found()))
      text += fmt::format("; the row belongs to sample {}", *sample);
    return text;
  }
  return "  every tensor of every shard is finite; only their sum is not";
}

HEED_END
