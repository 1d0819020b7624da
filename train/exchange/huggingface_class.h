#pragma once
/// What the descriptions of models for other programs have in common (internal to train/exchange).
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
  SpecialIds ids;  ///< of the target's vocabulary

  double embedding_factor() const;  ///< of embeddings: √d_model if they are scaled, else 1
  bool output_bias() const;
  std::int64_t kv_heads() const;
  std::int64_t kv_width() const;
};

/// A class of transformers, and the configs whose function it computes.
struct ModelClass {
  const char* name;
  Architecture architecture;
  HuggingFaceModel (*describe)(const ModelSource&);
  std::vector<Requirement> requirements;
  /// What else prevents it, such as a relation of several keys; empty: nothing.
  std::string (*obstacle)(const ModelSource&) = nullptr;
};

/// Each appends the classes of a family.
void add_gpt_classes(std::vector<ModelClass>& classes);   // GPT-2, Llama
void add_bart_classes(std::vector<ModelClass>& classes);  // Marian, Blenderbot
void add_t5_classes(std::vector<ModelClass>& classes);    // T5 v1.1
void add_bert_classes(std::vector<ModelClass>& classes);
void add_image_classes(std::vector<ModelClass>& classes);  // ViT, Swin

/// "model.norm is post (it has pre)" for each requirement that the config does not meet.
std::vector<std::string> obstacles(const std::vector<Requirement>& requirements,
                                   const Config& config);

/// Full attention with serial blocks, which all classes need, and `more`, which precedes it.
std::vector<Requirement> with_common(std::vector<Requirement> more);
/// The obstacle of a class whose output projection has no bias.
std::string output_bias_obstacle(const ModelSource& source);
/// The activations without a gate that transformers has.
std::vector<nlohmann::json> ungated_activations();
/// The name in transformers.activations.ACT2FN.
std::string activation_name(const ModelOptions& options);

/// Entries of config.json and generation_config.json of every class for text.
Json common_config(const ModelSource& source, const char* architecture, const char* type);
Json common_generation(const ModelSource& source);

/// A linear layer with `rows` outputs: heed's tensors `weight` and `bias` or, if `partial`, their
/// rows from `first` on.
struct LinearPart {
  std::string foreign, weight, bias;
  std::int64_t first = 0, rows = 0;
  bool partial = false, transposed = false;
  std::int64_t group = 0, split = 2;  ///< as in MappedTensor
};
/// The bias in a class whose linear layers have none if heed's have none, or are then zeros.
enum class NoBias { absent, zeros };

void add_linear(MappedTensors& parts, const ModelSource& source, const LinearPart& part,
                NoBias no_bias = NoBias::zeros);
/// A linear layer with heed's names own.weight and own.bias.
void add_linear(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
                const std::string& own, std::int64_t rows, NoBias no_bias = NoBias::zeros);
/// The weight of a norm, and its bias if it has one.
void add_norm(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
              const std::string& own);
/// The projections of an attention layer; those of queries, keys and values are rows of heed's
/// in_proj.
struct AttentionNames {
  std::string q = ".q_proj", k = ".k_proj", v = ".v_proj", out = ".out_proj";
};
void add_attention(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
                   const std::string& own, const AttentionNames& names,
                   NoBias no_bias = NoBias::zeros);
/// The two halves of linear1 of a gated activation: the gate, and the values that it multiplies.
void add_gated(MappedTensors& parts, const ModelSource& source, const std::string& gate,
               const std::string& values, const std::string& own, NoBias no_bias);
/// The table of positions: the trained one, sinusoids, or zeros for a model without positions.
MappedTensor position_table(const ModelSource& source, const std::string& foreign,
                            const std::string& own, std::int64_t rows);

HEED_END
