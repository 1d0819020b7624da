#pragma once
/// Finds the launcher of a distributed run (mpirun, mpiexec or srun) and joins the other ranks.
#include <cstdint>
#include <string>
#include <vector>

#include "train/distributed/world.h"

namespace heed {

/// The launcher that the environment variables name.
struct Launcher {
  std::string name;            ///< "mpirun", "mpiexec", "srun"; empty: none
  std::string mpi;             ///< MPI of the launcher: openmpi or mpich; empty: none
  std::int64_t processes = 1;  ///< number of started processes
  std::int64_t rank = 0;       ///< rank of this process
};
Launcher find_launcher();

/// The world of this process; null if it was started alone. The first call joins it: loads the
/// library libheed_mpi_*.so next to the program and starts MPI. Throws Error(usage) if a launcher
/// has started several processes that cannot reach one another, or processes with different
/// commands.
World* process_world(const std::string& command);
/// "rank 2 on node7: " for the messages of ranks other than the first; else "".
std::string rank_prefix();
/// Ends this process together with its world (World::leave); does nothing without a world.
void leave_world(int status);

/// The number of threads of a rank: `threads`, or one for each of its processors if `threads` is 0.
std::int64_t threads_of(std::int64_t threads, const World* world);
/// Returns lines for the user: "4 ranks on 2 hosts (a: 2, b: 2), 8 threads each", and warnings if
/// ranks are bound to too few processors or have unequal numbers of shards.
std::vector<std::string> describe(World& world, std::int64_t threads, std::int64_t shards);

}  // namespace heed
