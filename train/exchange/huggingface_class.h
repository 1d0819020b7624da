#pragma once
/// What the classes of transformers have in common (internal to this folder).
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/exchange/huggingface.h"

HEED_BEGIN

using Json = nlohmann::ordered_json;
using MappedTensors = std::vector<MappedTensor>;

/// A model and what its parts are computed from.
struct ModelSource {
  const Config& config;
  const ModelOptions& model;
  VocabularySizes vocabulary;

  double embedding_factor() const;  ///< of embeddings: √d_model if they are scaled, else 1
  std::int64_t kv_heads() const;
  std::int64_t kv_width() const;
};

/// A class of transformers, and the configs whose function it computes.
struct ModelClass {
  const char* name;
  Architecture architecture;
  HuggingFaceModel (*describe)(const ModelSource&);
  std::vector<Requirement> requirements;
};

/// Each appends the classes of a family.
void add_gpt_classes(std::vector<ModelClass>& classes);   // GPT-2, Llama
void add_bart_classes(std::vector<ModelClass>& classes);  // Marian, Blenderbot

/// Full attention with serial blocks, which all classes need, and `more`.
std::vector<Requirement> with_common(std::vector<Requirement> more);
/// The activations without a gate that transformers has.
std::vector<nlohmann::json> ungated_activations();
/// The name in transformers.activations.ACT2FN.
std::string activation_name(const ModelOptions& options);

/// Entries of config.json and generation_config.json of every class for text.
Json common_config(const ModelSource& source, const char* architecture, const char* type);
Json common_generation(const ModelSource& source);

/// The weight and the bias of a linear layer.
void add_linear(MappedTensors& parts, const std::string& foreign, const std::string& own,
                bool transposed = false);
/// The weight of a norm, and its bias if it has one.
void add_norm(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
              const std::string& own);
/// q_proj, k_proj and v_proj, which are rows of heed's in_proj, and `out`.
void add_attention(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
                   const std::string& own, const std::string& out);
/// The table of positions: the trained one, sinusoids, or zeros for a model without positions.
MappedTensor position_table(const ModelSource& source, const std::string& foreign,
                            const std::string& own, std::int64_t rows);

HEED_END
