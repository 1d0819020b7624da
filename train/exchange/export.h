#pragma once
/// Writes a trained model in the format of another program.
#include <filesystem>
#include <string>
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
  Parameters state;     ///< Model::state()
  std::string weights;  ///< which weights of the run, for people
  bool chosen_by_run;   ///< whether these are the weights that the run has evaluated
};

struct ExportFormat {
  const char* name;
  const char* help;
  /// Writes the files into an empty folder. Throws Error(usage), before any file is written, if the
  /// format cannot express the model.
  void (*write)(const ExportedModel& model, const std::filesystem::path& folder);
  /// Reads the folder back and returns what differs from the model.
  std::vector<std::string> (*check)(const ExportedModel& model,
                                    const std::filesystem::path& folder);
  /// A command that reads the folder {} in the other program.
  const char* client;
};

/// All formats, in the order of the help.
const std::vector<ExportFormat>& export_formats();

HEED_END
