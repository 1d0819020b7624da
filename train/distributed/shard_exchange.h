#pragma once
/// What belongs to the shards of a step, each of which one rank has: part_of(shards, rank, ranks).
#include <span>
#include <vector>

#include "data/batches/batch.h"
#include "nn/segment_memory.h"
#include "train/distributed/parts.h"
#include "train/distributed/world.h"

HEED_BEGIN

/// The bounds of each rank's shards, times `size`.
inline std::vector<std::int64_t> shard_bounds(std::int64_t shards, const World& world,
                                              std::int64_t size) {
  std::vector<std::int64_t> bounds;
  for (std::int64_t r = 0; r <= world.size(); ++r)
    bounds.push_back(part_of(shards, r, world.size()).begin * size);
  return bounds;
}

/// Each rank has set the values of its shards, one for each; afterwards every rank has all.
template <class T>
void gather_from_shards(std::span<T> of_shard, World& world) {
  world.all_gather(std::as_writable_bytes(of_shard),
                   shard_bounds(std::ssize(of_shard), world, sizeof(T)));
}

/// `own`: equally many numbers from each of this rank's shards, end to end. Returns those of all shards.
/// Called by the ranks that have shards.
std::vector<double> statistics_of_shards(std::span<const double> local, std::int64_t shards,
                                         World& world);

/// Gives every rank the lanes that the others' shards have written.
void share_memory(SegmentMemory& memory, std::span<const Batch> shards, World& world);

HEED_END
