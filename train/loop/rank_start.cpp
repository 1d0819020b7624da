#include "train/loop/rank_start.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "autograd/io/files.h"
#include "autograd/io/sha256.h"
#include "autograd/io/temporary_folder.h"
#include "autograd/kernels/fast/reduce.h"
#include "autograd/kernels/gemm.h"
#include "train/config/fields.h"
#include "train/config/plugins.h"
#include "train/run/run_record.h"
#include "train/tasks/task.h"

namespace heed {

namespace {

/// The name and the content of a tokenizer file.
struct NamedBytes {
  std::string name, bytes;
};

std::vector<NamedBytes> files_of(const Tokenizers& tokenizers) {
  const TemporaryFolder folder;
  std::vector<NamedBytes> files;
  for (const std::filesystem::path& file : tokenizers.save(folder.path()))
    files.push_back({file.filename().string(), read_bytes(file)});
  return files;
}

Tokenizers tokenizers_of(const std::vector<NamedBytes>& files, const Config& config) {
  const TemporaryFolder folder;
  for (const auto& [name, bytes] : files) write_file_durably(folder.path() / name, bytes);
  return load_tokenizers(folder.path(), config);
}

/// All facts about the program, the machine and the config that affect the exact (bitwise) results.
std::vector<Fact> facts_of(const Config& config) {
  std::vector<Fact> facts{{"the program (SHA-256)", sha256_file("/proc/self/exe")},
                          {"BLAS", kernels::blas_name()},
                          {"the vector instruction set", kernels::vector_name()}};
  for (const Plugin& plugin : plugins_of(config.plugins))
    facts.push_back({fmt::format("plugin {} (SHA-256)", plugin.file), plugin.sum});
  if (!config.train.distill.teacher.empty())
    facts.push_back({"train.distill.teacher (SHA-256 of its weights)", teacher_sum(config)});
  for (const Field& field : fields()) {
    if (field.key != "name" && field.key != "threads" && !field.key.starts_with("distributed."))
      facts.push_back({field.key, field.print(config)});
  }
  if (const std::string unit = bf16_unit_of(config); !unit.empty()) facts.push_back({"bf16", unit});
  return facts;
}

}  // namespace

ExperimentData load_data_together(World* world, const Config& config, const Tokenizers* given) {
  if (world == nullptr) return load_data(config, given);
  world->set_timeout(config.distributed.timeout);
  // Rank 0 loads first, because it may train the tokenizers.
  const World::ExtendedTimeout wait(*world);
  std::optional<ExperimentData> data;
  std::vector<NamedBytes> files;
  require_all(*world, outcome_of([&] {
    if (!world->first()) return;
    data = load_data(config, given);
    files = files_of(data->tokenizers);
  }));
  std::size_t count = files.size();
  world->broadcast(count);
  files.resize(count);
  for (NamedBytes& file : files) {
    file.name = world->broadcast(file.name);
    file.bytes = world->broadcast(file.bytes);
  }
  return together(world, [&] {
    if (data) return std::move(*data);
    const Tokenizers shared = tokenizers_of(files, config);
    return load_data(config, &shared);
  });
}

void require_equal_ranks(World& world, const Config& config, std::vector<Fact> facts) {
  const std::vector<Fact> config_facts = together(&world, [&] { return facts_of(config); });
  facts.insert(facts.end(), config_facts.begin(), config_facts.end());
  require_equal(world, facts);
}

void require_equal_ranks(World& world, const Config& config, const ExperimentData& data) {
  require_equal_ranks(world, config,
                      {{"the SHA-256 of the tokens of data.train", data.sums.train},
                       {"the SHA-256 of the tokens of data.valid", data.sums.valid},
                       {"the SHA-256 of the tokens of data.test", data.sums.test}});
}

}  // namespace heed
