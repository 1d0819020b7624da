#pragma once
/// The patterns of self-attention that can be set in a config. A new pattern requires a file in
/// autograd/ops/more/attention/ and an include, a value and a row in this file; configs, drawings and the
/// tests follow the row. (In cross-attention, a query always reads all rows of its encoder
/// sequence.)
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/enum_names.h"
#include "autograd/ops/more/attention/bigbird.h"
#include "autograd/ops/more/attention/causal.h"
#include "autograd/ops/more/attention/window.h"
#include "nn/options.h"

namespace heed {

/// topk: like full, but a query reads only the keys with the largest scores
/// (AttentionOptions::top_k). linear: attention without scores
/// (autograd/ops/more/attention/linear_attention.h).
enum class PatternKind : int { full, window, bigbird, topk, linear };

}  // namespace heed

HEED_BEGIN

struct PatternInfo {
  std::string_view name;
  std::string_view help;                      ///< the tokens that a token attends to
  std::array<std::string_view, 4> keys = {};  ///< keys of `model` that only this pattern reads
  bool scores = true;     ///< there are scores, to which positions may add terms
  bool all_maps = false;  ///< supports every map from scores to weights (ScoreMap)
  bool memory = false;    ///< supports the segment memory
  bool swin = false;      ///< supports the windows of Swin
  bool largest = false;   ///< a query reads only the top_k of these keys
  /// Makes the pattern; with `causal`, a query reads no later key. Null: all keys.
  PatternPtr (*make)(const AttentionChoice&, bool causal) = nullptr;
  std::vector<std::string> (*lines)(const AttentionChoice&) = nullptr;  ///< texts of the drawing
  std::string (*size)(const AttentionChoice&) = nullptr;  ///< end of its name in plots: " of 128"
};

/// The patterns, in the order of PatternKind.
inline constexpr std::array pattern_table{
    PatternInfo{.name = "full",
                .help = "all (in a decoder, those up to itself)",
                .all_maps = true,
                .memory = true,
                .swin = true},
    PatternInfo{
        .name = "window",
        .help = "those in a window",
        .keys = {"attention.window"},
        .all_maps = true,
        .memory = true,
        .make = [](const AttentionChoice& a,
                   bool causal) { return window_pattern(a.window - 1, causal ? 0 : a.window - 1); },
        .lines =
            [](const AttentionChoice& a) {
              return std::vector{fmt::format("window size {}", a.window)};
            },
        .size = [](const AttentionChoice& a) { return fmt::format(" of {}", a.window); }},
    PatternInfo{
        .name = "bigbird",
        .help = "those in nearby, global and random blocks",
        .keys = {"attention.block", "attention.global_blocks", "attention.side_blocks",
                 "attention.random_blocks"},
        .make =
            [](const AttentionChoice& a, bool causal) {
              return bigbird_pattern(
                  {a.block, a.global_blocks, a.side_blocks, a.random_blocks, causal});
            },
        .lines =
            [](const AttentionChoice& a) {
              return std::vector{fmt::format("block size {}:", a.block),
                                 fmt::format("{} global, {} adjacent, {} random", a.global_blocks,
                                             a.side_blocks, a.random_blocks)};
            },
        .size = [](const AttentionChoice& a) { return fmt::format(", blocks of {}", a.block); }},
    PatternInfo{.name = "topk",
                .help = "those with the largest scores",
                .keys = {"attention.top_k"},
                .memory = true,
                .swin = true,
                .largest = true,
                .lines =
                    [](const AttentionChoice& a) {
                      return std::vector{fmt::format("keys with the largest scores: {}", a.top_k)};
                    }},
    PatternInfo{.name = "linear",
                .help = "all, without softmax, in linear time",
                .scores = false,
                .lines =
                    [](const AttentionChoice&) {
                      return std::vector<std::string>{"linear, without scores"};
                    }},
};

constexpr auto names_of(PatternKind) { return table_names<PatternKind>(pattern_table); }
constexpr const PatternInfo& info_of(PatternKind kind) {
  return pattern_table.at(static_cast<std::size_t>(kind));
}

/// The pattern of `choice`; with `causal`, a query reads no later key.
inline PatternPtr make_pattern(const AttentionChoice& choice, bool causal) {
  if (const auto make = info_of(choice.pattern).make) return make(choice, causal);
  return causal ? causal_pattern() : full_pattern();
}

HEED_END
