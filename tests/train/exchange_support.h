#pragma once
/// Helpers for tests of exports.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "autograd/base/error.h"
#include "data/tokenizers/tokenizer.h"
#include "tests/train/onnx_graph.h"
#include "train/config/config.h"
#include "train/exchange/model_map.h"
#include "train/exchange/onnx/model.h"

namespace heed::test {

inline std::map<std::string, TensorView> by_name(const ForeignTensors& tensors) {
  std::map<std::string, TensorView> all;
  for (const TensorView& view : tensors.views()) all.emplace(view.name, view);
  return all;
}

inline Config language_model(const std::string& more) {
  return parse_config(
      "task: lm\ndata: {train: {text: a}}\nmodel: {d_model: 8, heads: 2, d_ff: 5, layers: 2, context: 7" +
          more + "}\n",
      "lm.yaml");
}

inline std::unique_ptr<Tokenizer> tokenizer_of(TokenizerKind kind,
                                               const std::vector<std::string>& lines) {
  TokenizerOptions options;
  options.kind = kind;
  return train_tokenizer(options, lines, 1);
}

/// The bytes of a file with this graph.
inline std::string file_of(const OnnxGraph& graph) {
  std::string bytes;
  graph.write("test", [&](std::span<const std::byte> part) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  });
  return bytes;
}

/// The graphs of a model's ONNX files by name.
inline std::map<std::string, Message> graphs_of(const Config& config,
                                                std::span<const TensorView> views) {
  OnnxWeights weights(views);
  std::map<std::string, Message> graphs;
  for (const OnnxPart& part : onnx_parts(config, weights))
    graphs.emplace(part.name, Message(Message(file_of(part.graph.graph())).text(7)));
  return graphs;
}

/// Every prefix of a file must end with Error(bad_input).
template <class Parse>
void every_prefix_is_refused(const std::string& good, Parse parse) {
  for (std::size_t size = 0; size < good.size(); ++size) {
    try {
      parse(good.substr(0, size));
      BOOST_ERROR("a prefix of " << size << " bytes was read");
    } catch (const Error& error) {
      if (error.code != Exit::bad_input) BOOST_ERROR(error.what());
    }
  }
}

/// A file with a few random bytes, or bytes of large numbers, either has no flaw for its reader or ends
/// with Error(bad_input): any other exception, or a crash, fails the test.
template <class Parse>
void damaged_files_do_no_harm(const std::string& good, Parse parse) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return random() % n; };
  int refused = 0;
  constexpr int files = 20'000;
  for (int i = 0; i < files; ++i) {
    std::string bytes = good;
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      const std::size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.replace(at, 8, std::string(std::min<std::size_t>(8, bytes.size() - at), '\xFF'));
          break;
        case 2:
          bytes.erase(at, 1 + below(8));
          break;
        default:
          bytes.insert(at, 1 + below(8), static_cast<char>(random()));
      }
    }
    try {
      parse(bytes);
    } catch (const Error& error) {
      ++refused;
      if (error.code != Exit::bad_input) BOOST_ERROR(error.what());
    }
  }
  BOOST_TEST(refused > files / 2);
}

}  // namespace heed::test
