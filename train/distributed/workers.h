#pragma once
/// Runs independent jobs on the ranks of a run and their threads.
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/base/team.h"
#include "train/distributed/packing.h"
#include "train/distributed/world.h"

namespace heed {

/// The threads of this process and, unless `world` is null, the other ranks, which must make the
/// same calls.
struct Workers {
  Team& team;
  World* world = nullptr;

  Workers(Team& of_this_process, World* of_the_run = nullptr)
      : team(of_this_process), world(of_the_run) {}
};

/// True if `local` is true on any rank. Also exchanges the stop signals of the ranks.
inline bool any_rank(World* world, bool local) {
  if (world == nullptr) return local;
  struct Rank {
    bool value;
    int stop;
  };
  for (const Rank& rank : world->all_gather_values(Rank{local, world->stop()})) {
    local |= rank.value;
    world->note_stop(rank.stop);
  }
  return local;
}

/// The results of job(i) for i = 0 … count − 1, on every rank. Rank r computes the results for i =
/// r, r + ranks, …, and receives the others. If any rank is interrupted, all ranks note its stop
/// signal and throw Team::Interrupted.
template <class Result, class Job>
std::vector<Result> results_of(const Workers& workers, std::int64_t count, const Job& job) {
  std::vector<Result> all(static_cast<std::size_t>(count));
  if (workers.world == nullptr) {
    workers.team.run(count, [&](std::int64_t i) { all[i] = job(i); });
    return all;
  }
  World& world = *workers.world;
  const std::int64_t ranks = world.size();
  bool interrupted = false;
  try {
    workers.team.run((count - world.rank() + ranks - 1) / ranks, [&](std::int64_t n) {
      const std::int64_t i = world.rank() + n * ranks;
      all[i] = job(i);
    });
  } catch (const Team::Interrupted&) {
    interrupted = true;
  }
  std::string local;
  pack(local, interrupted);
  pack(local, world.stop());
  for (std::int64_t i = world.rank(); i < count; i += ranks) pack(local, all[i]);
  const World::ExtendedTimeout wait(world);  // a rank may still be running its last job
  const std::vector<std::string> packed = world.all_gather(local);
  for (std::int64_t r = 0; r < ranks; ++r) {
    std::string_view bytes = packed[r];
    bool ended_early = false;
    int stop = 0;
    unpack(bytes, ended_early);
    unpack(bytes, stop);
    interrupted |= ended_early;
    world.note_stop(stop);
    for (std::int64_t i = r; i < count; i += ranks) unpack(bytes, all[i]);
  }
  if (interrupted) throw Team::Interrupted();
  return all;
}

}  // namespace heed
