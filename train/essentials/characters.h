#pragma once
/// A vocabulary of characters, and samples of token ids.
#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/real.h"

HEED_BEGIN
namespace reference {

using Ids = std::vector<std::int32_t>;

/// The characters (UTF-8) of some lines, in order of code point, after three special tokens.
class Characters {
 public:
  /// An unknown character, <s> and </s>; decoded as nothing.
  static constexpr std::int32_t unk = 0, bos = 1, eos = 2;

  explicit Characters(std::span<const std::string> lines) {
    for (const std::string& line : lines) {
      for (const std::string_view c : split(line)) ids_.emplace(c, 0);
    }
    for (auto& [character, id] : ids_) {
      id = static_cast<std::int32_t>(pieces_.size());
      pieces_.push_back(character);
    }
  }

  std::int64_t size() const { return static_cast<std::int64_t>(pieces_.size()); }
  Ids encode(std::string_view line) const {
    Ids ids;
    for (const std::string_view c : split(line)) {
      const auto found = ids_.find(std::string(c));
      ids.push_back(found == ids_.end() ? unk : found->second);
    }
    return ids;
  }
  std::string decode(std::span<const std::int32_t> ids) const {
    std::string line;
    for (const std::int32_t id : ids) line += pieces_.at(static_cast<std::size_t>(id));
    return line;
  }

 private:
  /// In UTF-8, all bytes of a character but the first have the form 10xxxxxx.
  static std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> all;
    for (std::size_t begin = 0, end; begin < line.size(); begin = end) {
      end = begin + 1;
      while (end < line.size() && (line[end] & 0xC0) == 0x80) ++end;
      all.push_back(line.substr(begin, end - begin));
    }
    return all;
  }

  std::map<std::string, std::int32_t> ids_;
  std::vector<std::string> pieces_{"", "", ""};
};

/// A source and a target. A sample of a language model has no source, <s> or </s>.
struct Sample {
  Ids source;  ///< x₁ … x_n </s>
  Ids input;   ///< input of the decoder: <s> y₁ … y_m
  Ids labels;  ///< y₁ … y_m </s>
};

inline Sample sample_of(const Characters& vocabulary, std::string_view source,
                        std::string_view target) {
  Sample sample{vocabulary.encode(source), {Characters::bos}, vocabulary.encode(target)};
  sample.source.push_back(Characters::eos);
  sample.input.insert(sample.input.end(), sample.labels.begin(), sample.labels.end());
  sample.labels.push_back(Characters::eos);
  return sample;
}

/// A text in windows of `context` tokens that do not overlap: each label is the token after its
/// input. context > 0.
inline std::vector<Sample> windows_of(const Ids& text, std::int64_t context) {
  std::vector<Sample> samples;
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t begin = 0; begin + 1 < size; begin += context) {
    const std::int64_t end = std::min(begin + context, size - 1);
    samples.push_back({{},
                       {text.begin() + begin, text.begin() + end},
                       {text.begin() + begin + 1, text.begin() + end + 1}});
  }
  return samples;
}

}  // namespace reference
HEED_END
