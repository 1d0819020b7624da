#include "data/batches/batcher.h"

#include "autograd/base/error.h"

namespace heed {

Batch make_batch(const Dataset& data, const SampleGroup& samples) {
  return data.batching->batch(data, samples, {}, std::nullopt);
}

std::vector<Batch> evaluation_batches(const Dataset& data, const BatchOptions& options) {
  std::vector<Batch> batches;
  for (const SampleGroup& group : data.batching->evaluation(data, options))
    batches.push_back(data.batching->batch(data, group, options, std::nullopt));
  return batches;
}

BatchStream::BatchStream(const Dataset& data, const BatchOptions& options)
    : data_(&data), options_(options) {
  data.batching->check_trainable(data);
}

const std::vector<SampleGroup>& BatchStream::plan(std::int64_t epoch) {
  if (plan_epoch_ != epoch) {
    plan_ = std::make_shared<const std::vector<SampleGroup>>(
        data_->batching->epoch(*data_, options_, epoch));
    plan_epoch_ = epoch;
    if (plan_->empty())
      throw Error(Exit::failed, "the epoch has no batch: the dataset was emptied while in use");
  }
  return *plan_;
}

Batch BatchStream::next() {
  const auto& groups = plan(position_.epoch);
  Batch batch = data_->batching->batch(*data_, groups[position_.batch], options_, position_.epoch);
  if (++position_.batch == static_cast<std::int64_t>(groups.size())) {
    position_ = {position_.epoch + 1, 0};
  }
  return batch;
}

std::int64_t BatchStream::batches_in(std::int64_t epoch) {
  if (epoch == plan_epoch_) return static_cast<std::int64_t>(plan_->size());
  BatchStream copy = *this;  // planning in a copy preserves the current plan
  return static_cast<std::int64_t>(copy.plan(epoch).size());
}

void BatchStream::seek(Position position) {
  if (position.epoch < 0 || position.batch < 0 ||
      position.batch >= static_cast<std::int64_t>(plan(position.epoch).size())) {
    throw Error(Exit::bad_input, "there is no batch {} in epoch {}: have the data changed?",
                position.batch, position.epoch);
  }
  position_ = position;
}

double BatchStream::epochs_done() {
  if (position_.batch == 0) return static_cast<double>(position_.epoch);  // requires no plan
  return static_cast<double>(position_.epoch) +
         static_cast<double>(position_.batch) / static_cast<double>(plan(position_.epoch).size());
}

Prefetcher::Prefetcher(BatchStream stream)
    : stream_(std::move(stream)), position_(stream_.position()), epochs_(stream_.epochs_done()) {
  begin_next();
}

void Prefetcher::begin_next() {
  // With both policies, the library defers the call if no thread is available: next() makes the
  // batch.
  batch_ =
      std::async(std::launch::async | std::launch::deferred, [this] { return stream_.next(); });
}

Batch Prefetcher::next() {
  Batch batch = batch_.get();
  position_ = stream_.position();
  epochs_ = stream_.epochs_done();
  begin_next();
  return batch;
}

Side Side::part(std::int64_t from, std::int64_t to) const {
  Side part;
  if (offsets.empty()) return part;
  const std::int32_t begin = offsets[from], end = offsets[to];
  part.width = width;
  if (width > 0) {
    part.features.assign(features.begin() + begin * width, features.begin() + end * width);
  } else {
    part.ids.assign(ids.begin() + begin, ids.begin() + end);
  }
  for (std::int64_t i = from; i <= to; ++i) part.offsets.push_back(offsets[i] - begin);
  return part;
}

std::vector<Batch> shard(const Batch& batch, std::int64_t count, TokenCost cost) {
  if (count < 1) throw Error(Exit::failed, "shard: count must be positive");
  const std::int64_t n = batch.sequences();
  const auto rows_before = [](const Side& side, std::int64_t i) {
    return side.offsets.empty() ? 0 : side.offsets[i];
  };
  const auto cost_before = [&](std::int64_t i) {
    return cost.target * rows_before(batch.target, i) + cost.source * rows_before(batch.source, i);
  };
  std::vector<Batch> shards;
  if (n == 0) return shards;
  const double total = cost_before(n), parts = static_cast<double>(count);

  std::int64_t from = 0;
  for (std::int64_t k = 1; k <= count && from < n; ++k) {
    // Shard k ends at the sequence boundary nearest to k/count of the total cost.
    const double end = static_cast<double>(k) * total;
    std::int64_t to = from;
    while (to < n && (cost_before(to) + cost_before(to + 1)) * parts <= 2 * end) ++to;
    if (k == count) to = n;
    if (to == from) continue;
    const std::vector<std::int32_t>& rows = batch.labelled().offsets;
    shards.push_back({batch.source.part(from, to),
                      batch.target.part(from, to),
                      {batch.labels.begin() + rows[from], batch.labels.begin() + rows[to]},
                      {batch.samples.begin() + from, batch.samples.begin() + to},
                      batch.continues});
    from = to;
  }
  return shards;
}

}  // namespace heed
