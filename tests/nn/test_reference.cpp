// The models of nn/models compared with their definition, the reference Transformer.
#include <map>

#include "nn/reference/transformer.h"
#include "tests/nn/reference_models.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(reference_models)

namespace {

constexpr std::int64_t vocabulary = 11;
constexpr real smoothing = real(0.1);

/// Compares two losses and the gradients of the parameters with equal names.
void check_equal(const Tensor& loss, const Parameters& parameters, const Tensor& definition,
                 const Parameters& defined) {
  BOOST_TEST(difference(loss.value(), definition.value()) < 1e-10);
  const Gradients a = backward(loss), b = backward(definition);
  std::map<std::string, Tensor> by_name;
  for (const NamedTensor& p : defined) by_name.emplace(p.name, p.tensor);
  for (const NamedTensor& p : parameters) {
    BOOST_TEST_CONTEXT(p.name) {
      const Array g = b[by_name.at(p.name)];
      BOOST_TEST(difference(a[p.tensor], g) < 1e-10);
      BOOST_TEST(std::ranges::any_of(g.values(), [](real x) { return x != 0; }));
    }
  }
}

std::span<const std::int32_t> sequence(const std::vector<std::int32_t>& ids,
                                       const std::vector<std::int32_t>& offsets, std::size_t i) {
  return std::span(ids).subspan(offsets[i], offsets[i + 1] - offsets[i]);
}

constexpr reference::Sizes shallow{12, 3, 20, 1, 1}, deep{12, 2, 7, 3, 2};
const std::vector<std::int32_t> source_lengths{3, 1, 9, 2}, target_lengths{5, 2, 1, 8};

}  // namespace

BOOST_AUTO_TEST_CASE(encoder_decoder_has_the_loss_and_gradients_of_its_definition) {
  for (const reference::Sizes& sizes : {shallow, deep}) {
    Init init(3);
    const reference::EncoderDecoder definition(sizes, vocabulary, init);
    randomise(definition.parameters());
    const auto model = make_seq2seq(options_of(sizes), vocabulary, vocabulary, true, 1);
    copy_by_name(definition.parameters(), model->parameters());
    const Pairs pairs(source_lengths, target_lengths, vocabulary);
    const double labels = static_cast<double>(pairs.target_out.size());

    Tensor sum_of_losses(Array::scalar(0));
    for (std::size_t i = 0; i < source_lengths.size(); ++i) {
      const Tensor logits =
          definition.decode(definition.encode(sequence(pairs.source, pairs.source_offsets, i)),
                            sequence(pairs.target_in, pairs.target_offsets, i));
      sum_of_losses =
          sum_of_losses + cross_entropy(logits, sequence(pairs.target_out, pairs.target_offsets, i),
                                        smoothing, labels);
    }
    Pass pass;
    const Tensor loss =
        model->loss(pairs.input(), {.label_smoothing = smoothing, .divisor = labels}, pass);
    check_equal(loss, model->parameters(), sum_of_losses, definition.parameters());
  }
}

BOOST_AUTO_TEST_CASE(language_model_has_the_loss_and_gradients_of_its_definition) {
  for (const reference::Sizes& sizes : {shallow, deep}) {
    Init init(4);
    const reference::LanguageModel definition(sizes, vocabulary, init);
    randomise(definition.parameters());
    const auto model = make_language_model(options_of(sizes), vocabulary, 1);
    copy_by_name(definition.parameters(), model->parameters());
    const Pairs pairs(source_lengths, target_lengths, vocabulary);
    const double labels = static_cast<double>(pairs.target_out.size());

    Tensor sum_of_losses(Array::scalar(0));
    for (std::size_t i = 0; i < target_lengths.size(); ++i) {
      const Tensor logits = definition.logits(sequence(pairs.target_in, pairs.target_offsets, i));
      sum_of_losses =
          sum_of_losses + cross_entropy(logits, sequence(pairs.target_out, pairs.target_offsets, i),
                                        smoothing, labels);
    }
    Pass pass;
    const ModelInput input{{}, {pairs.target_in, pairs.target_offsets}, pairs.target_out};
    const Tensor loss = model->loss(input, {.label_smoothing = smoothing, .divisor = labels}, pass);
    check_equal(loss, model->parameters(), sum_of_losses, definition.parameters());
  }
}

BOOST_AUTO_TEST_CASE(weights_after_100_steps_are_those_of_the_definition) {
  check_100_steps(deep, 1e-9);
}

BOOST_AUTO_TEST_CASE(random_initial_values_of_a_layer_are_those_of_its_definition) {
  const reference::Sizes sizes{12, 3, 20, 1, 1};
  Init a(7), b(7);
  const reference::EncoderLayer definition(sizes, a);
  const TransformerBlock block(options_of(sizes), BlockKind::encoder, b);
  const Parameters all = block.parameters(), defined = definition.parameters();
  BOOST_REQUIRE(all.size() == defined.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    BOOST_TEST(all[i].name == defined[i].name);
    BOOST_TEST(difference(all[i].tensor.value(), defined[i].tensor.value()) == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
