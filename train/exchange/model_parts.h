#pragma once
/// The tensors of a Transformer under the names of another program: each format lists the names of a block,
/// and the list of parts follows from them.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizers/special_ids.h"
#include "nn/models/architecture.h"
#include "train/config/config.h"
#include "train/exchange/model_map.h"

HEED_BEGIN

using MappedTensors = std::vector<MappedTensor>;

/// A model and what its parts are computed from.
struct ModelSource {
  const Config& config;
  const ModelOptions& model;
  VocabularySizes vocabulary;
  SpecialIds ids = {};           ///< of the target's vocabulary
  std::int64_t first_label = 0;  ///< id of a classifier's first label there

  double embedding_factor() const;  ///< of embeddings: √d_model if they are scaled, else 1
  bool output_bias() const;
  std::int64_t kv_heads() const;
  std::int64_t kv_width() const;
};

/// A key of the config, and the values with which a class of models computes the same function.
struct Requirement {
  std::string key;
  std::vector<nlohmann::json> values;
};

/// "model.norm is post (it has pre)" for each requirement that the config does not meet.
std::vector<std::string> obstacles(const std::vector<Requirement>& requirements,
                                   const Config& config);
/// `more`, and full attention with serial blocks, which almost all classes need.
std::vector<Requirement> with_common(std::vector<Requirement> more);
/// The activations without a gate that other programs have.
std::vector<nlohmann::json> ungated_activations();

/// The projections of an attention layer, which are rows of heed's in_proj. Without k and v, q is the whole
/// matrix; without v, k is keys and values.
struct AttentionNames {
  std::string q, k = {}, v = {}, out;
};

/// The names in a block, without its prefix. `gate` and `linear1` are the halves of heed's linear1 if the
/// activation has a gate.
struct BlockNames {
  std::string norm1;
  AttentionNames self;
  std::string last_norm, gate = {}, linear1, linear2;
  std::string cross_norm = {};
  AttentionNames cross = {};
};

/// The conventions of a format.
struct PartConventions {
  bool transposed = false;      ///< linear layers are [in, out]
  bool zero_biases = false;     ///< a model without biases is one with biases of zero
  bool reorder_pairs = false;   ///< rotary positions pair other rows than in heed
  bool adjacent_pairs = false;  ///< with reorder_pairs: they are adjacent
  const char *weight = ".weight", *bias = ".bias", *norm_weight = ".weight", *norm_bias = ".bias";
};

/// Lists the parts of a model.
class PartList {
 public:
  explicit PartList(const ModelSource& source, PartConventions conventions = {})
      : source_(source), o_(source.model), is_(conventions) {}

  void add(MappedTensor part) { parts.push_back(std::move(part)); }
  /// A linear layer with `rows` outputs.
  void linear(const std::string& foreign, const std::string& own, std::int64_t rows);
  /// The weight of a norm, and its bias if it has one.
  void norm(const std::string& foreign, const std::string& own);
  /// The norms, projections and linear layers of one block.
  void block(const std::string& foreign, const std::string& own, const BlockNames& names);
  /// Blocks 0 to depth − 1; `{}` in the prefix is the number. `stack`: encoder or decoder.
  void blocks(const std::string& prefix, const std::string& stack, std::int64_t depth,
              const BlockNames& names);
  /// The table of positions: the trained one, sinusoids, or zeros for a model without positions.
  void positions(const std::string& foreign, const std::string& own, std::int64_t rows,
                 std::vector<std::int64_t> shape = {});
  /// The bias of the output layer, or zeros.
  void output_bias(const std::string& foreign, std::vector<std::int64_t> shape = {});

  MappedTensors parts;

 private:
  void attention(const std::string& foreign, const std::string& own, const AttentionNames& names,
                 bool self);
  /// Rows of a linear layer whose weight has the name `own` + "weight"; 0 rows: all.
  void rows(const std::string& foreign, const std::string& own, std::int64_t first,
            std::int64_t count, bool pairs, std::int64_t width);

  const ModelSource& source_;
  const ModelOptions& o_;
  PartConventions is_;
};

HEED_END
