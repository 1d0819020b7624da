#include "train/tasks/model.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "autograd/base/error.h"
#include "nn/options.h"
#include "optim/moments.h"

HEED_BEGIN

namespace {

/// The lowest memory limit of the cgroups of this process, set by a container or a batch system;
/// infinite without a limit.
double group_memory() {
  double limit = std::numeric_limits<double>::infinity();
  std::ifstream groups("/proc/self/cgroup");  // version 2: "0::/a/b"; version 1: "9:memory:/a/b"
  for (std::string line; std::getline(groups, line);) {
    const bool second = line.starts_with("0::"), first = line.find(":memory:") != std::string::npos;
    const std::size_t path = line.find('/');
    if ((!first && !second) || path == std::string::npos) continue;
    const std::filesystem::path top = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* const name = second ? "memory.max" : "memory.limit_in_bytes";
    // Visits every parent up to the root: inside a container the path may be the host's.
    for (std::filesystem::path at = line.substr(path + 1);; at = at.parent_path()) {
      double bytes = 0;  // the file may contain "max", which is not a number
      if (std::ifstream(top / at / name) >> bytes) limit = std::min(limit, bytes);
      if (at.empty()) break;
    }
  }
  return limit;
}

}  // namespace

double machine_memory() {
  struct sysinfo all {};
  ::sysinfo(&all);
  const double unit = all.mem_unit, swap = unit * static_cast<double>(all.totalswap);
  return std::min(unit * static_cast<double>(all.totalram), group_memory()) + swap;
}

MinMemory min_memory(const Config& config, const Model& model) {
  double values = 0;
  for (const NamedTensor& p : model.parameters()) values += static_cast<double>(p.tensor.size());
  const bool sgd = config.optim.name == OptimizerKind::sgd;
  MinMemory e;
  e.program = 12e6;
  e.weights = e.gradients = values * sizeof(float);
  e.moments = values * Moment::bytes_per_value(config.optim.moments) * (sgd ? 1 : 2) +
              (config.train.ema > 0 ? e.weights : 0);
  return e;
}

std::unique_ptr<Model> build_uninitialised(Config config, const VocabularySizes& vocabulary) {
  config.model->init = InitKind::none;
  try {
    return build_model(config, vocabulary);
  } catch (const Error& error) {
    if (error.code != Exit::io) throw;
    throw Error(Exit::io,
                "model: the weights alone do not fit into the memory of this "
                "machine, which has {:.1f} GB ({})",
                machine_memory() / 1e9, error.what());
  }
}

std::unique_ptr<Model> build_to_train(const Config& config, const VocabularySizes& vocabulary) {
  const double needed = min_memory(config, *build_uninitialised(config, vocabulary)).total(),
               available = machine_memory();
  if (needed > available) {
    throw Error(Exit::io,
                "model: weights, gradients and moments alone require {:.1f} "
                "GB of memory, but this machine has {:.1f} GB",
                needed / 1e9, available / 1e9);
  }
  check_mixers(config);
  return build_model(config, vocabulary);
}

HEED_END
