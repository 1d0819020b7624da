#include "train/distributed/shard_exchange.h"

#include <algorithm>

HEED_BEGIN

std::vector<double> statistics_of_shards(std::span<const double> local, std::int64_t shards,
                                         World& world) {
  const Part local_part = part_of(shards, world.rank(), world.size());
  const std::int64_t each = std::ssize(local) / local_part.size();
  std::vector<double> all(static_cast<std::size_t>(each * shards));
  std::ranges::copy(local, all.begin() + local_part.begin * each);
  std::vector<Sent> sent;
  std::vector<Received> received;
  for (std::int64_t r = 0; r < world.size(); ++r) {
    const Part remote_part = part_of(shards, r, world.size());
    if (r == world.rank() || remote_part.size() == 0) continue;
    sent.push_back({r, std::as_bytes(local)});
    received.push_back({r, std::as_writable_bytes(std::span(all).subspan(
                               static_cast<std::size_t>(remote_part.begin * each),
                               static_cast<std::size_t>(remote_part.size() * each)))});
  }
  world.exchange(sent, received);
  return all;
}

void share_memory(SegmentMemory& memory, std::span<const Batch> shards, World& world) {
  std::vector<std::int64_t> bounds;  // bounds of each rank's lanes, in bytes
  for (const std::int64_t bound : shard_bounds(std::ssize(shards), world, 1)) {
    std::int64_t lanes = 0;
    for (const Batch& shard : shards.first(static_cast<std::size_t>(bound)))
      lanes += shard.sequences();
    bounds.push_back(lanes * memory.length() * memory.width() *
                     static_cast<std::int64_t>(sizeof(real)));
  }
  for (Array layer : memory.arrays())
    world.all_gather(std::as_writable_bytes(layer.values()), bounds);
}

HEED_END
