#pragma once
/// A model given as a table: logits as a function of the previous tokens, so that the results of a
/// search can be computed by hand.
#include <functional>
#include <vector>

#include "nn/models/model.h"

namespace heed::test {

class TableDecoding final : public Decoding {
 public:
  using Prefix = std::vector<std::int32_t>;
  /// The logits of a sentence's next token; `tokens` is its output so far, without the prompt.
  using Table = std::function<std::vector<float>(std::int32_t sentence, const Prefix& tokens)>;

  TableDecoding(std::int64_t sentences, Table table) : table_(std::move(table)) {
    for (std::int32_t i = 0; i < sentences; ++i) hypotheses_.push_back({i, {}});
  }

  Array step(std::span<const std::int32_t> tokens) override {
    if (tokens.size() != hypotheses_.size())
      throw Error(Exit::failed, "expected as many tokens as hypotheses");
    widths.push_back(static_cast<std::int64_t>(tokens.size()));
    std::vector<float> all;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (widths.size() > 1) hypotheses_[i].tokens.push_back(tokens[i]);
      const std::vector<float> row = table_(hypotheses_[i].sentence, hypotheses_[i].tokens);
      all.insert(all.end(), row.begin(), row.end());
    }
    const auto rows = static_cast<std::int64_t>(tokens.size());
    return Array({rows, static_cast<std::int64_t>(all.size()) / rows}, all);
  }
  void prefill(std::span<const std::int32_t>) override {
    throw Error(Exit::failed, "a table cannot prefill a prompt");
  }
  void select(std::span<const std::int32_t> parents) override {
    std::vector<Hypothesis> chosen;
    for (const std::int32_t p : parents)
      chosen.push_back(hypotheses_.at(static_cast<std::size_t>(p)));
    hypotheses_ = std::move(chosen);
  }

  std::vector<std::int64_t> widths;  ///< number of live hypotheses at each step

 private:
  struct Hypothesis {
    std::int32_t sentence;
    Prefix tokens;
  };
  Table table_;
  std::vector<Hypothesis> hypotheses_;
};

}  // namespace heed::test
