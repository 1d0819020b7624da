/// A folder of transformers: for each file a byte for its name, then its bytes up to "\n----\n".
#include <array>

#include "data/tokenizers/imported.h"
#include "nn/parameters.h"
#include "tests/fuzz/target.h"
#include "train/exchange/huggingface/model.h"
#include "train/exchange/import.h"
#include "train/tasks/data.h"

namespace heed::fuzz {
namespace {

constexpr std::array names{
    "config.json",          "model.safetensors", "tokenizer.json",
    "vocab.json",           "merges.txt",        "model.safetensors.index.json",
    "a.safetensors",        "spiece.model",      "tokenizer.model",
    "source.spm",           "target.spm",        "vocab.txt",
    "tokenizer_config.json"};

/// What was imported must be a model of the class again, and its tokenizer must encode.
void require_works(const ImportedModel& imported, const std::filesystem::path& folder) {
  const Tokenizer& tokenizer = *imported.tokenizers.target;
  for (const auto& each : {imported.tokenizers.source, imported.tokenizers.target}) {
    const std::vector<std::int32_t> ids = each->encode("It's 1 é\n\xFF!");
    for (const std::int32_t id : ids)
      require(id >= 0 && id < tokenizer.size(), "ids are in the vocabulary");
    tokenizer.decode(ids);
  }
  const HuggingFaceModel model =
      huggingface_model(imported.config, sizes_of(imported.tokenizers), tokenizer.special_ids());
  require(model.architecture == imported.architecture, "the class is that of the folder");
  const Parameters state = imported.model->state();
  require(!ForeignTensors(model.parts, state).views().empty(), "the model has tensors");
  require(!path_exists(folder / "config.yaml"), "importing writes nothing");
}

}  // namespace

void target(std::string_view input) {
  Bytes bytes(input);
  const std::filesystem::path folder = scratch() / "folder";
  remove_tree(folder);
  create_folders(folder);
  while (!bytes.empty()) {
    const std::string name = names[bytes.byte() % names.size()];
    put(std::filesystem::path("folder") / name, bytes.until("\n----\n"));
  }
  std::optional<ImportedModel> imported;
  try {
    imported = import_huggingface(folder);
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, folder.string());
    throw;
  }
  must_work([&] { require_works(*imported, folder); });
}

}  // namespace heed::fuzz
