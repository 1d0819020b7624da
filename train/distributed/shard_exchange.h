#pragma once
/// Exchanges values of the shards of a step between the ranks. Rank r computes the shards
/// part_of(shards, r, ranks).
#include <span>
#include <vector>

#include "data/batches/batch.h"
#include "nn/segment_memory.h"
#include "train/distributed/parts.h"
#include "train/distributed/world.h"

HEED_BEGIN

/// The bounds of each rank's shards, multiplied by `size`.
inline std::vector<std::int64_t> shard_bounds(std::int64_t shards, const World& world,
                                              std::int64_t size) {
  std::vector<std::int64_t> bounds;
  for (std::int64_t r = 0; r <= world.size(); ++r)
    bounds.push_back(part_of(shards, r, world.size()).begin * size);
  return bounds;
}

/// Copies the values of all shards to every rank. `of_shard` contains one value for each shard, of
/// which each rank must have set those of its shards.
template <class T>
void gather_from_shards(std::span<T> of_shard, World& world) {
  world.all_gather(std::as_writable_bytes(of_shard),
                   shard_bounds(std::ssize(of_shard), world, sizeof(T)));
}

/// Returns the statistics of all shards. `local` contains the same number of values for each of
/// this rank's shards, one shard after the other. Must be called on all ranks that have shards, and
/// only on these.
std::vector<double> statistics_of_shards(std::span<const double> local, std::int64_t shards,
                                         World& world);

/// Copies the lanes of the memory to every rank, from the ranks whose shards have written them.
void share_memory(SegmentMemory& memory, std::span<const Batch> shards, World& world);

HEED_END
