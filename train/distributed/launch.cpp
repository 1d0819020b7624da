#include "train/distributed/launch.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "autograd/base/error.h"
#include "autograd/base/team.h"
#include "train/distributed/agreement.h"

namespace heed {

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::int64_t number(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);  // 0 if the text is not a number
}

/// The path of heed's library for this MPI: beside the program, or in the folder in which `cmake
/// --install` puts it; empty if it is missing.
std::filesystem::path library_of(const std::string& mpi) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string file = fmt::format("libheed_mpi_{}.so", mpi);
  for (const std::filesystem::path& folder : {program, program / HEED_LIBRARY_FOLDER}) {
    if (std::filesystem::exists(folder / file)) return folder / file;
  }
  return {};
}

std::string started_by(const Launcher& launcher) {
  return fmt::format("{} has started {} processes", launcher.name, launcher.processes);
}

std::unique_ptr<Transport> start_mpi(const Launcher& launcher) {
  const std::filesystem::path file = library_of(launcher.mpi);
  if (file.empty()) {
    throw Error(Exit::usage,
                "{}, but this build of heed lacks {}: install it (Debian: apt-get install {}), "
                "then build heed again; HEED_WITH_MPI=1 ./heed does both",
                started_by(launcher), launcher.mpi == "mpich" ? "MPICH" : "Open MPI",
                launcher.mpi == "mpich" ? "libmpich-dev" : "libopenmpi-dev");
  }
  // RTLD_GLOBAL, because the plugins of Open MPI look up functions of Open MPI.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw Error(Exit::usage, "cannot load {}", dlerror());
  using Start = Transport*();
  auto* const start = reinterpret_cast<Start*>(dlsym(library, "heed_start_mpi"));
  if (start == nullptr) throw Error(Exit::usage, "{} is not a library of heed", file.string());
  return std::unique_ptr<Transport>(start());
}

std::unique_ptr<World> join() {
  const Launcher launcher = find_launcher();
  if (launcher.processes <= 1) return nullptr;
  const std::string hint =
      launcher.name == "srun"
          ? "start heed with srun --mpi=pmix (srun --mpi=list shows what this Slurm supports)"
          : fmt::format(
                "use the mpirun of the MPI that heed was built with; if no launcher has started "
                "this process, unset {}",
                launcher.mpi == "mpich" ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE");
  if (launcher.mpi.empty()) {
    if (launcher.rank > 0) throw Error(Exit::usage, "");  // rank 0 prints the message
    throw Error(Exit::usage, "{}, but they cannot reach one another: {}", started_by(launcher),
                hint);
  }
  std::unique_ptr<Transport> transport = start_mpi(launcher);
  if (transport->size() != launcher.processes) {
    if (launcher.rank > 0) throw Error(Exit::usage, "");
    throw Error(Exit::usage, "{}, but MPI reports {}: {}", started_by(launcher), transport->size(),
                hint);
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return std::make_unique<World>(std::move(transport), host);
}

std::unique_ptr<World>& current_world() {
  static std::unique_ptr<World> world;
  return world;
}

}  // namespace

Launcher find_launcher() {
  // A batch script also has most of Slurm's variables, but only srun sets those of a step.
  const std::int64_t step = number(variable("SLURM_STEP_NUM_TASKS"));
  const std::int64_t open_mpi = number(variable("OMPI_COMM_WORLD_SIZE")),
                     pmi = number(variable("PMI_SIZE"));
  if (open_mpi > 0)
    return {"mpirun", "openmpi", open_mpi, number(variable("OMPI_COMM_WORLD_RANK"))};
  const std::string pmix_rank = variable("PMIX_RANK");
  const bool hydra = !variable("PMI_FD").empty() || !variable("PMI_PORT").empty();
  // Hydra, MPICH's mpiexec, may start its processes through srun.
  if (step > 0 && !pmix_rank.empty() && !hydra) return {"srun", "openmpi", step, number(pmix_rank)};
  if (pmi > 0) return {step > 0 ? "srun" : "mpiexec", "mpich", pmi, number(variable("PMI_RANK"))};
  if (step > 0) return {"srun", "", step, number(variable("SLURM_PROCID"))};
  return {};
}

World* process_world(const std::string& command) {
  static const bool joined = (current_world() = join()) != nullptr;
  if (!joined) return nullptr;
  require_equal(*current_world(), {{"the command", command}});
  return current_world().get();
}

std::string rank_prefix() {
  const World* const world = current_world().get();
  return world != nullptr && !world->first() ? world->name_of(world->rank()) + ": " : "";
}

void leave_world(int status) {
  if (current_world()) current_world()->leave(status);
}

std::int64_t threads_of(std::int64_t threads, const World* world) {
  return threads > 0 || world == nullptr ? threads : world->processors();
}

std::vector<std::string> describe(World& world, std::int64_t threads, std::int64_t shards) {
  const std::vector<std::int64_t> all_threads = world.all_gather_values(threads),
                                  allowed = world.all_gather_values(available_processors()),
                                  present = world.all_gather_values<std::int64_t>(
                                      sysconf(_SC_NPROCESSORS_ONLN));
  std::map<std::string, std::int64_t> ranks;  // host → number of ranks
  for (const std::string& host : world.hosts()) ++ranks[host];
  std::vector<std::string> hosts;
  for (const auto& [host, n] : ranks) hosts.push_back(fmt::format("{}: {}", host, n));
  const auto [min_threads, max_threads] = std::ranges::minmax(all_threads);
  std::vector<std::string> lines{
      fmt::format("{} ranks on {} host{} ({}), {} thread{} each", world.size(), hosts.size(),
                  hosts.size() == 1 ? "" : "s", fmt::join(hosts, ", "),
                  min_threads == max_threads ? fmt::to_string(min_threads)
                                             : fmt::format("{} to {}", min_threads, max_threads),
                  max_threads == 1 ? "" : "s")};
  for (std::int64_t r = 0; r < world.size(); ++r) {
    // Warn if a rank may use only one processor although its host has more processors than ranks.
    if (allowed[r] > 1 || ranks[world.hosts()[r]] >= present[r]) continue;
    lines.push_back(fmt::format(
        "warning: {} may use 1 of {} processors: the launcher binds it to a core. mpirun "
        "--bind-to none (mpiexec -bind-to none, srun --cpus-per-task N) removes this limit",
        world.name_of(r), present[r]));
    break;
  }
  if (shards % world.size() != 0) {
    lines.push_back(fmt::format(
        "warning: train.shards={} with {} ranks: {}; for a new run, set it to a multiple of the "
        "number of ranks",
        shards, world.size(),
        shards < world.size() ? "some ranks have no work"
                              : "some ranks have more work than others"));
  }
  return lines;
}

}  // namespace heed
