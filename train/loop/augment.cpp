#include "train/loop/augment.h"

#include "autograd/base/random.h"
#include "data/tokenizers/tokenizer.h"

HEED_BEGIN

namespace {

template <class T>
void repeat(std::vector<T>& items) {
  const std::size_t n = items.size();
  items.resize(2 * n);
  std::copy_n(items.begin(), n, items.begin() + static_cast<std::ptrdiff_t>(n));
}

void repeat(Side& side) {
  if (side.offsets.empty()) return;
  const std::size_t sequences = side.offsets.size();
  const std::int32_t rows = side.offsets.back();
  repeat(side.ids);
  repeat(side.features);
  for (std::size_t i = 1; i < sequences; ++i) side.offsets.push_back(rows + side.offsets[i]);
}

void cut(Side& side, double probability, Random& random) {
  for (std::int32_t& id : side.ids)
    if (id > Tokenizer::eos && random.uniform() < probability) id = Tokenizer::unk;
}

}  // namespace

std::optional<Batch> augmented(const Batch& shard, std::int64_t number, std::int64_t step,
                               const StepOptions& options) {
  if (options.cutoff == 0 && options.rdrop == 0) return std::nullopt;
  Batch batch = shard;
  if (options.rdrop > 0) {
    repeat(batch.source);
    repeat(batch.target);
    repeat(batch.samples);
  }
  if (options.cutoff > 0) {
    Random random({.seed = options.seed,
                   .stream = Stream::cutoff,
                   .index = static_cast<std::uint64_t>(step),
                   .part = static_cast<std::uint32_t>(number)});
    cut(batch.source, options.cutoff, random);
    cut(batch.target, options.cutoff, random);
  }
  return batch;
}

HEED_END
