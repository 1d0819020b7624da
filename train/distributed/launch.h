#pragma once
/// Finds the launcher of a distributed run (mpirun, mpiexec or srun) and joins the other ranks.
#include <cstdint>
#include <string>
#include <vector>

#include "train/distributed/world.h"

namespace heed {

/// The launcher that the environment variables identify.
struct Launcher {
  std::string name;  ///< "mpirun", "mpiexec", "srun"; empty: none
  std::string mpi;   ///< MPI implementation of the launcher: "openmpi", "mpich"; empty: none
  std::int64_t processes = 1;  ///< number of started processes
  std::int64_t rank = 0;       ///< rank of this process
};
Launcher find_launcher();

/// The world of this process; null if the process was started alone. The first call joins the
/// world: it loads the library libheed_mpi_*.so and starts MPI. Throws Error(usage) if a launcher
/// has started several processes that cannot reach one another, processes with different commands,
/// or processes of a build without this library.
World* process_world(const std::string& command);
/// The beginning of this rank's messages: "rank 2 on node7: ", or "" on rank 0 and without a world.
std::string rank_prefix();
/// Calls World::leave, if there is a world. Must be the last call that uses it.
void leave_world(int status);

/// The number of threads of a rank: `threads` or, if that is 0, one for each of the rank's
/// processors. Without a world, returns `threads`.
std::int64_t threads_of(std::int64_t threads, const World* world);
/// Describes the world, in lines for the user: "4 ranks on 2 hosts (a: 2, b: 2), 8 threads each",
/// and warnings if a rank is bound to a single processor although its host has more processors than
/// ranks, or if ranks have unequal numbers of shards. Must be called on all ranks.
std::vector<std::string> describe(World& world, std::int64_t threads, std::int64_t shards);

}  // namespace heed
