/// A SentencePiece model. An accepted model must be saved unchanged, and encode and decode texts.
#include "autograd/io/lines.h"
#include "data/tokenizers/tokenizer.h"
#include "tests/fuzz/target.h"

namespace heed::fuzz {
namespace {

constexpr std::string_view texts[] = {
    "", " ", "ab ba", "The cat\tsat ", "ÄÖ ﬁ Ⅻ 한 ½", "\xFF\x80 a", "aaaaaaaaaaaaaaaaaaaaaaaa"};

void require_works(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  require(tokenizer.size() > Tokenizer::eos, "the special pieces exist");
  require(get(tokenizer.save(scratch() / "again")) == read_file(path),
          "a model is saved unchanged");
  for (const std::string_view text : texts) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    for (const std::int32_t id : ids) {
      require(id >= 0 && id < tokenizer.size(), "ids are in the vocabulary");
      require(id != Tokenizer::bos && id != Tokenizer::eos,
              "the ids of a text contain neither <s> nor </s>");
    }
    tokenizer.decode(ids);
  }
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    tokenizer.piece(id);
    tokenizer.decode({{id}});
  }
}

}  // namespace

void target(std::string_view input) {
  const std::filesystem::path path = put("x.model", input);
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load_tokenizer(path, TokenizerKind::sentencepiece);
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, path.string() + ":");
    throw;
  }
  must_work([&] { require_works(*tokenizer, path); });
}

}  // namespace heed::fuzz
