#pragma once
/// Reads a model of the Python library transformers: the inverse of export to huggingface. The list of
/// tensors of a class (huggingface.h) is the same for both.
#include <filesystem>
#include <memory>
#include <string>

#include "data/tokenizers/tokenizer.h"
#include "nn/models/model.h"
#include "train/config/config.h"

HEED_BEGIN

struct ImportedModel {
  Config config;
  Tokenizers tokenizers;
  std::unique_ptr<Model> model;
  std::string architecture;  ///< name of the class, such as GPT2LMHeadModel
  std::string note;          ///< what the user should know of the model; usually empty
};

/// Whether the folder contains a config.json and no run.
bool is_huggingface_folder(const std::filesystem::path& folder);

/// The model in the folder: config.json, weights in safetensors, tokenizer files. A key of config.json
/// that heed does not honour is refused by name, as is a tensor that no part of the model uses. Throws
/// Error(bad_input) for these and for damaged files; links are not followed. Writes nothing.
ImportedModel import_huggingface(const std::filesystem::path& folder);

HEED_END
