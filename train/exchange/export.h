#pragma once
/// Writes a trained model in the format of another program.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "nn/parameters.h"
#include "train/config/config.h"
#include "train/run/run_folder.h"

HEED_BEGIN

/// A trained model and where it is from.
struct ExportedModel {
  RunFolder run;
  const Config& config;
  const Tokenizers& tokenizers;
  Parameters state;       ///< Model::state()
  std::string weights;    ///< which weights of the run, for people
  bool chosen_by_run;     ///< whether these are the weights that the run has evaluated
  std::string precision;  ///< of the numbers: one of ExportFormat::precisions
  std::filesystem::path runtime =
      {};  ///< --runtime: where npm has installed the programs of a page
};

struct ExportFormat {
  const char* name;
  const char* help;
  std::string_view extension;  ///< of a format that is one file, such as .gguf; empty: a folder
  bool alone;                  ///< its files have names of other formats, such as config.json
  std::vector<std::string> precisions;  ///< the first is the default
  /// Writes the file, or files into an existing folder. Throws Error(usage), before any file is
  /// written, if the format cannot express the model.
  void (*write)(const ExportedModel& model, const std::filesystem::path& target);
  /// Reads the target back and returns what differs from the model.
  std::vector<std::string> (*check)(const ExportedModel& model,
                                    const std::filesystem::path& target);
  /// Whether an existing file or a folder that is not empty is an export of this format.
  bool (*is_export)(const std::filesystem::path& target);
  /// A command that reads the target {} in the other program.
  const char* client;
  const char* runtime = nullptr;  ///< packages of npm that it contains, from ExportedModel::runtime
};

/// A path as one word of a shell, for a command that heed prints.
std::string shell_word(const std::string& path);

/// All formats, in the order of the help. Those that are a folder may be written into one folder.
const std::vector<ExportFormat>& export_formats();

ExportFormat huggingface_format();
ExportFormat gguf_format();
ExportFormat ctranslate2_format();
ExportFormat onnx_format();
ExportFormat page_format();

HEED_END
