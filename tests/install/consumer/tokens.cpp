/// Encodes and decodes a text with a newly trained tokenizer.
#include <cstdio>
#include <string>
#include <vector>

#include <heed/data/tokenizers/tokenizer.h>

int main() {
  const std::vector<std::string> lines{"ein Haus", "ein Baum", "zwei Bäume"};
  const auto tokenizer = heed::train_tokenizer({.kind = heed::TokenizerKind::characters}, lines, 1);
  const std::string text = "zwei Haue";
  const std::vector<std::int32_t> ids = tokenizer->encode(text);
  std::printf("%zu tokens: %s\n", ids.size(), tokenizer->decode(ids).c_str());
  return ids.size() == text.size() && tokenizer->decode(ids) == text ? 0 : 1;
}
