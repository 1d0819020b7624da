#include "train/loop/rank_start.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "autograd/base/files.h"
#include "autograd/base/sha256.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/reduce.h"
#include "train/config/fields.h"
#include "train/distributed/agreement.h"
#include "train/run/version.h"
#include "train/tasks/task.h"

namespace heed {

namespace {

/// A new folder for the duration of this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "heed-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      throw Error(Exit::io, fmt::format("cannot make a folder in {}",
                                        std::filesystem::temp_directory_path().string()));
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Rank 0's tokenizers on every rank, by way of their files.
Tokenizers share_tokenizers(World& world, const Config& config, const Tokenizers& own) {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> files;
  if (world.first()) files = own.save(folder.path());
  std::size_t count = files.size();
  world.broadcast(count);
  files.resize(count);
  for (const std::filesystem::path& file : files) {
    const std::string name = world.broadcast(file.filename().string());
    const std::string bytes = world.broadcast(world.first() ? read_bytes(file) : "");
    if (!world.first()) write_file_durably(folder.path() / name, bytes);
  }
  return world.first() ? own : load_tokenizers(folder.path(), config);
}

/// Everything that the bits of a run depend on.
std::vector<Fact> facts_of(const Config& config, const ExperimentData& data) {
  std::vector<Fact> facts{{"heed", version},
                          {"the compiler", compiler},
                          {"the compiler's flags", flags},
                          {"BLAS", kernels::blas_name()},
                          {"the vector instructions", kernels::vector_name()},
                          {"data.train", data.sums.train},
                          {"data.valid", data.sums.valid},
                          {"data.test", data.sums.test}};
  for (const Field& field : fields()) {
    if (field.key != "name" && field.key != "threads")
      facts.push_back({field.key, field.print(config)});
  }
  if (config.train.precision == Precision::bf16) {
    const std::string& obstacle = kernels::bf16_obstacle();
    facts.push_back({"bf16", obstacle.empty() ? "available" : obstacle});
  }
  return facts;
}

}  // namespace

ExperimentData load_data_together(World* world, const Config& config, const Tokenizers* own) {
  if (world == nullptr) return load_data(config, own);
  // Rank 0 loads first, because it may have to train the tokenizers.
  std::optional<ExperimentData> data;
  require_all(*world, outcome_of([&] {
    if (world->first()) data = load_data(config, own);
  }));
  const Tokenizers shared = together(world, [&] {
    return share_tokenizers(*world, config, data ? data->tokenizers : Tokenizers());
  });
  return together(world, [&] { return data ? std::move(*data) : load_data(config, &shared); });
}

void require_equal_ranks(World& world, const Config& config, const ExperimentData& data) {
  require_equal(world, facts_of(config, data));
  world.set_timeout(config.distributed.timeout);
}

}  // namespace heed
