#include "data/batches/dataset.h"

#include <numeric>

#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(dataset)
using Ids = std::vector<std::int32_t>;

namespace {

const Tokenizer& words() {
  static const auto tokenizer =
      train_tokenizer({.kind = TokenizerKind::words}, std::vector<std::string>{"a a a b b c"}, 1);
  return *tokenizer;  // ids: a 3, b 4, c 5
}

Ids ids(std::span<const std::int32_t> s) { return {s.begin(), s.end()}; }

const Split split{.source = {"a b", "", "c", "a a a", "b", "a b c"},
                  .target = {"b a", "a", "", "b", "b b b b", "c b a"},
                  .text = {}};

}  // namespace

BOOST_AUTO_TEST_CASE(every_line_is_one_sample_in_evaluation) {
  const Dataset data = tokenize(split, words(), words());
  BOOST_TEST(data.size() == 6);
  BOOST_TEST((data.batching == &pairs()));
  BOOST_TEST(ids(data.source[0]) == (Ids{3, 4, Tokenizer::eos}), boost::test_tools::per_element());
  BOOST_TEST(ids(data.source[1]) == (Ids{Tokenizer::eos}), boost::test_tools::per_element());
  BOOST_TEST(ids(data.target[0]) == (Ids{4, 3}), boost::test_tools::per_element());
  BOOST_TEST(data.target[2].empty());
  BOOST_TEST(data.source.longest() == 4);
  BOOST_TEST(data.target.longest() == 4);
  BOOST_TEST((data.source_lines == split.source && data.target_lines == split.target));
  BOOST_TEST(data.skipped_empty == 0);
}

BOOST_AUTO_TEST_CASE(training_skips_and_counts_empty_and_long_lines) {
  const Dataset data =
      tokenize(split, words(), words(), {.training = true, .max_length = 3, .keep_lines = false});
  BOOST_TEST(data.size() == 3);
  BOOST_TEST(data.skipped_empty == 2);
  BOOST_TEST(data.skipped_long == 1);
  BOOST_TEST(ids(data.source[1]) == (Ids{3, 3, 3, 2}),
             boost::test_tools::per_element());  // 3 tokens are accepted
  BOOST_TEST(ids(data.target[2]) == (Ids{5, 4, 3}), boost::test_tools::per_element());
  BOOST_TEST(data.source_lines.empty());
  const Dataset all = tokenize(split, words(), words(), {.training = true});
  BOOST_TEST(all.size() == 4);
  BOOST_TEST(all.skipped_long == 0);
  BOOST_TEST(all.target_lines[2] == "b b b b");
}

BOOST_AUTO_TEST_CASE(max_length_limits_inputs_whose_numbers_of_rows_differ) {
  struct Rows : Inputs {
    bool fixed;
    explicit Rows(bool f) : fixed(f) {}
    std::int64_t rows(std::int64_t input) const override { return fixed ? 9 : 3 + input; }
    bool fixed_rows() const override { return fixed; }
    void push(std::int64_t, const Draw&, Side&) const override {}
    void add_to(Sha256&, std::int64_t) const override {}
  };
  const Split of_inputs{.source = {"x", "y", "z"}, .target = {"a", "b a", "a b c a a"}, .text = {}};
  TokenizeOptions options{.training = true, .max_length = 4};
  options.inputs = std::make_shared<Rows>(false);  // 3, 4 and 5 rows
  const Dataset sounds = tokenize(of_inputs, words(), words(), options);
  BOOST_TEST(sounds.input_of == (std::vector<std::int64_t>{0, 1}),
             boost::test_tools::per_element());
  BOOST_TEST(sounds.skipped_long == 1);
  options.inputs = std::make_shared<Rows>(true);
  const Dataset images = tokenize(of_inputs, words(), words(), options);
  BOOST_REQUIRE(
      (images.input_of == std::vector<std::int64_t>{0, 1}));  // the third target is too long
  BOOST_TEST(images.source_rows(1) == 9);
}

BOOST_AUTO_TEST_CASE(sources_without_targets_have_empty_targets) {
  const Dataset data = tokenize({.source = {"a", "b"}, .target = {}, .text = {}}, words(), words());
  BOOST_TEST(data.size() == 2);
  BOOST_TEST(data.target.size() == 2);
  BOOST_TEST(data.target.longest() == 0);
  expect_error(Exit::failed, {"differ"}, [] {
    tokenize({.source = {"a", "b"}, .target = {"a"}, .text = {}}, words(), words());
  });
}

BOOST_AUTO_TEST_CASE(tokens_are_independent_of_number_of_threads) {
  Split big{.source = sentences(5000, 1), .target = sentences(5000, 2), .text = {}};
  const auto t = train_tokenizer({.kind = TokenizerKind::words}, big.source, 1);
  const Dataset one = tokenize(big, *t, *t, {}, 1);
  for (const int threads : {0, 2, 3, 7}) {
    const Dataset threaded = tokenize(big, *t, *t, {}, threads);
    BOOST_TEST(
        (one.source.ids == threaded.source.ids && one.source.offsets == threaded.source.offsets));
    BOOST_TEST(
        (one.target.ids == threaded.target.ids && one.target.offsets == threaded.target.offsets));
  }
}

BOOST_AUTO_TEST_CASE(error_in_worker_thread_is_rethrown) {
  struct Failing : Tokenizer {
    TokenizerKind kind() const override { return TokenizerKind::words; }
    std::int64_t size() const override { return 3; }
    std::string piece(std::int32_t) const override { return ""; }
    std::optional<std::int32_t> special(std::string_view) const override { return {}; }
    Ids encode(std::string_view line) const override {
      if (line == "4999") throw Error(Exit::failed, "line 4999");
      return {};
    }
    std::string decode(std::span<const std::int32_t>) const override { return ""; }
    std::string content() const override { return ""; }
  };
  Split big;
  for (int i = 0; i < 5000; ++i) big.source.push_back(std::to_string(i));
  expect_error(Exit::failed, {"line 4999"}, [&] { tokenize(big, Failing(), Failing(), {}, 3); });
}

BOOST_AUTO_TEST_CASE(continuous_text_is_encoded_completely) {
  std::string text;
  for (const auto& line : sentences(3000, 3)) text += line + "\n";
  const Split lm{.source = {}, .target = {}, .text = text + "no end"};
  BOOST_TEST(tokenize_text("", words()).stream.empty());
  for (const auto kind :
       {TokenizerKind::characters, TokenizerKind::bytes, TokenizerKind::sentencepiece}) {
    const auto both = make_tokenizers({.kind = kind, .vocab_size = 200}, lm, 1);
    const Dataset data = tokenize_text(lm.text, *both.target, 3);
    BOOST_TEST((data.batching == &windows()));
    BOOST_TEST(data.text_bytes == static_cast<std::int64_t>(lm.text.size()));
    BOOST_TEST(both.target->decode(data.stream) == lm.text);
    BOOST_TEST(data.stream == both.target->encode(lm.text), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
