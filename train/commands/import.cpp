#include "train/exchange/import.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/commands/command_line.h"
#include "train/commands/derived_run.h"
#include "train/run/run_record.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

struct ImportCommand : NewRunArguments {
  std::string folder;
  bool json = false;
};

int import_command(const ImportCommand& options) {
  const DerivedRun run{options.folder, {options.to}, options.overwrite, options.command};
  check_destination(run);
  const nlohmann::json record = import_run(run);
  const std::string name = record.at("class"), task = record.at("task");
  report_derived_run(run, record,
                     fmt::format("{}: task {}, {} parameters, {} tokens\n", name, task,
                                 record.at("parameters").get<std::int64_t>(),
                                 record.at("tokens").get<std::int64_t>()),
                     options.json);
  return 0;
}

}  // namespace

nlohmann::json import_run(const DerivedRun& run) {
  const ImportedModel imported = import_huggingface(without_last_slash(run.from));
  if (!imported.note.empty()) print_message(imported.note);
  const Parameters state = imported.model->state();
  std::int64_t parameters = 0;
  for (const NamedTensor& p : imported.model->parameters()) parameters += p.tensor.value().size();
  const nlohmann::json record{{"kind", "imported"},
                              {"from", run.from},
                              {"class", imported.architecture},
                              {"task", name_of(imported.config.task)},
                              {"parameters", parameters},
                              {"tokens", imported.tokenizers.target->size()}};
  write_derived_run(run, {0, imported.tokenizers}, imported.config, record, [&](FileWriter& file) {
    write_safetensors(file, tensor_views(state), {{"format", "pt"}});
  });
  return record;
}

void add_import(CommandLine& line) {
  const auto [command, options] = add_command<ImportCommand>(
      line, "import", Needs::model, "make a run of a model of transformers", import_command);
  options->command = line.typed;
  add_argument(command, "FOLDER", options->folder,
               "folder of the library transformers, with config.json")
      ->required();
  add_new_run(command, *options, "the new run folder")->required();
  add_json(command, options->json, "a record of the import");
  command->footer(
      "The folder contains config.json, model.safetensors (one file, or several with their index;\n"
      "float32, float16 or bfloat16) and the tokenizer: tokenizer.json, a SentencePiece model (Marian:\n"
      "source.spm, target.spm, vocab.json), vocab.json and merges.txt, or vocab.txt. Classes:\n"
      "GPT2LMHeadModel, LlamaForCausalLM (also Mistral and Qwen2), MarianMTModel,\n"
      "BlenderbotForConditionalGeneration, T5ForConditionalGeneration (v1.1), BertForMaskedLM,\n"
      "ViTForImageClassification, SwinForImageClassification. A key of config.json that heed does\n"
      "not honour is refused by name. The new run is read like any other by generate, eval, score,\n"
      "attention, trace, quantize and export; model.init_from trains from it, or from the folder\n"
      "itself. docs/EXPORT.md has the details.\n"
      "Example:\n"
      "  heed import gpt2 --run runs/gpt2\n"
      "  heed generate runs/gpt2 --prompt 'The meaning of'");
}

}  // namespace heed
