#pragma once
/// How this process was started: alone, or as a rank by mpirun, mpiexec or srun.
#include <cstdint>
#include <string>
#include <vector>

#include "train/distributed/world.h"

namespace heed {

/// The launcher that the environment tells of.
struct Launcher {
  std::string name;            ///< "mpirun", "mpiexec", "srun"; empty: none
  std::string mpi;             ///< which MPI it belongs to: openmpi or mpich; empty: none
  std::int64_t processes = 1;  ///< that it has started
  std::int64_t rank = 0;       ///< of this one
};
Launcher find_launcher();

/// The world of this process; null if it was started alone. The first call joins it: loads the library
/// libheed_mpi_*.so next to the program and starts MPI. Throws Error(usage) if a launcher has started
/// several processes that cannot reach one another, or with different commands of heed.
World* process_world(const std::string& command);
/// "rank 2 on node7: " for the messages of ranks other than the first; else "".
std::string rank_prefix();
/// Ends this process as one of its world, if it has one (World::leave).
void leave_world(int status);

/// The threads of a rank: those of the config, or (0) one for each of its processors.
std::int64_t threads_of(std::int64_t threads, const World* world);
/// Lines for the user: "4 ranks on 2 hosts (a: 2, b: 2), 8 threads each", and warnings if ranks are
/// bound to too few processors or have unequal numbers of shards.
std::vector<std::string> describe(World& world, std::int64_t threads, std::int64_t shards);

}  // namespace heed
