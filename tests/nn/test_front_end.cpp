// Convolutional front ends: their outputs compared with plain loops, gradients of whole models, and
// decoding. Golden values are in test_golden_layers.cpp.
#include "nn/models/front_end.h"

#include "autograd/gradcheck.h"
#include "nn/models/classifier.h"
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(front_end)

namespace {

ModelOptions conv_options(std::int64_t layers, std::int64_t height = 0, std::int64_t width = 0) {
  ModelOptions o = small_options();
  o.input_width = 3;
  o.front_end = {FrontEndKind::conv, layers};
  o.grid_height = height;
  o.grid_width = width;
  o.pool = Pool::mean;
  return o;
}

/// Feature rows of sequences with the given lengths.
struct Source {
  std::vector<std::int32_t> offsets;
  std::vector<float> values;

  explicit Source(const std::vector<std::int32_t>& lengths, std::uint32_t number = 55)
      : offsets(offsets_of(lengths)) {
    const Array random = normal({offsets.back(), 3}, number);
    values.assign(random.values().begin(), random.values().end());
  }
  SideView side() const { return {{}, offsets, values, 3}; }
  Array rows() const { return rows_of_features(side()).value(); }
  Source only(std::size_t i) const {
    Source one({offsets[i + 1] - offsets[i]});
    one.values.assign(values.begin() + 3 * offsets[i], values.begin() + 3 * offsets[i + 1]);
    return one;
  }
};

/// A convolution of stride 2, computed from its definition, followed by GELU. It halves each side,
/// rounding up. The kernel covers 3 rows of a sequence or, with `grid`, 3 × 3 pixels of an image.
Array convolved(const Array& x, std::int64_t height, std::int64_t width, const Linear& layer,
                bool grid) {
  const std::int64_t c = x.cols(), d = layer.weight.shape()[0], h = (height + 1) / 2,
                     w = (width + 1) / 2;
  Array y({h * w, d});
  for (std::int64_t u = 0; u < h; ++u) {
    for (std::int64_t v = 0; v < w; ++v) {
      for (std::int64_t k = 0; k < d; ++k) {
        double sum = layer.bias.value().data()[k];
        for (std::int64_t p = 0; p < (grid ? 3 : 1); ++p) {
          for (std::int64_t q = 0; q < 3; ++q) {
            const std::int64_t i = grid ? 2 * u + p - 1 : 0, j = 2 * v + q - 1;
            if (i < 0 || i >= height || j < 0 || j >= width) continue;
            for (std::int64_t a = 0; a < c; ++a)
              sum += layer.weight.value().row(k)[(3 * p + q) * c + a] * x.row(i * width + j)[a];
          }
        }
        y.row(u * w + v)[k] = sum * (1 + std::erf(sum / std::sqrt(2.0))) / 2;
      }
    }
  }
  return y;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sequence_convolutions_equal_plain_loops) {
  Init init = test_init();
  for (const std::int64_t depth : {1, 2, 3}) {
    const FrontEnd layer(conv_options(depth), init);
    randomise(layer.parameters());
    const Source source({9, 0, 1, 2, 12});
    const Array y = layer(Tensor(source.rows()), source.offsets).value();
    const ComputedOffsets offsets = layer.offsets_after(source.offsets);
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      const std::int64_t n = source.offsets[i + 1] - source.offsets[i];
      BOOST_TEST(offsets[i + 1] - offsets[i] == rows_after(conv_options(depth).front_end, n));
      if (n == 0) continue;
      Array expected = source.rows().sliced(source.offsets[i], source.offsets[i + 1]);
      for (const Linear& one : layer.layers)
        expected = convolved(expected, 1, expected.rows(), one, false);
      BOOST_TEST(difference(y.sliced(offsets[i], offsets[i + 1]), expected) < 1e-12);
    }
  }
}

BOOST_AUTO_TEST_CASE(image_convolutions_equal_plain_loops) {
  Init init = test_init();
  for (const auto& [height, width] : {std::pair(4, 4), {5, 7}, {1, 6}, {6, 1}}) {
    const FrontEnd layer(conv_options(2, height, width), init);
    randomise(layer.parameters());
    const Source source({height * width, height * width});
    const Array y = layer(Tensor(source.rows()), source.offsets).value();
    const ComputedOffsets offsets = layer.offsets_after(source.offsets);
    for (std::size_t i = 0; i < 2; ++i) {
      Array expected = source.only(i).rows();
      expected = convolved(expected, height, width, layer.layers[0], true);
      expected = convolved(expected, (height + 1) / 2, (width + 1) / 2, layer.layers[1], true);
      BOOST_TEST(difference(y.sliced(offsets[i], offsets[i + 1]), expected) < 1e-12);
    }
  }
}

BOOST_AUTO_TEST_CASE(front_end_passes_gradcheck) {
  Init init = test_init();
  for (const auto& [o, lengths] :
       {std::pair(conv_options(2), std::vector<std::int32_t>{5, 0, 1, 4}),
        std::pair(conv_options(1), std::vector<std::int32_t>{3}),
        std::pair(conv_options(2, 3, 5), std::vector<std::int32_t>{15, 15})}) {
    const FrontEnd layer(o, init);
    const std::vector<std::int32_t> offsets = offsets_of(lengths);
    BOOST_TEST(
        gradcheck(layered(layer.parameters(), [=](const Tensor& x) { return layer(x, offsets); }),
                  Tensor(normal({offsets.back(), 3}, 4))));
  }
}

BOOST_AUTO_TEST_CASE(sequences_with_front_end_do_not_affect_each_other) {
  ModelOptions o = conv_options(2);
  o.positions = PositionKind::learned;
  o.max_positions = 3;
  const auto model = make_classifier(o, Labelling::sequences, 0, 4, 1);
  randomise(model->parameters());
  Source source({9, 3, 12});
  Pass pass;
  const auto logits = [&](const Source& s) {
    return model->logits({s.side(), {}, {}}, pass).value();
  };
  const Array together = logits(source);
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(difference(together.sliced(i, i + 1), logits(source.only(i))) < 1e-12);
  source.values[3 * 9] += 1;  // first row of the second sequence
  const Array changed = logits(source);
  BOOST_TEST(difference(changed.sliced(0, 1), together.sliced(0, 1)) == 0);
  BOOST_TEST(difference(changed.sliced(1, 2), together.sliced(1, 2)) > 1e-6);
  BOOST_TEST(difference(changed.sliced(2, 3), together.sliced(2, 3)) == 0);
  // Positions count the rows after the front end: 12 rows become 3, 13 become 4.
  const Source longer({13});
  BOOST_CHECK_EXCEPTION(logits(longer), std::exception, [](const std::exception& e) {
    return std::string(e.what()).find("a sequence of 4 rows") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(models_with_front_end_pass_gradcheck) {
  const Source source({6, 1, 4}), images({12, 12, 12}, 56);
  for (const bool grid : {false, true}) {
    const ModelOptions o = grid ? conv_options(1, 3, 4) : conv_options(2);
    const Source& read = grid ? images : source;
    const Pairs pairs({1, 1, 1}, {3, 1, 2}, 7);
    const auto seq2seq = make_seq2seq(o, 0, 7, true, 1);
    randomise(seq2seq->parameters());
    // With `recompute`, blocks run again in backward, after the offsets of the encoder output have
    // been destroyed.
    for (const bool recompute : {false, true}) {
      BOOST_TEST(gradcheck_parameters(
          [&] {
            Pass pass;
            pass.recompute = recompute;
            ModelInput input = pairs.input();
            input.source = read.side();
            return seq2seq->loss(input, {0.1, 6.0}, pass);
          },
          seq2seq->parameters()));
    }
    const auto classifier = make_classifier(o, Labelling::sequences, 0, 5, 1);
    randomise(classifier->parameters());
    std::vector<std::int32_t> labels(static_cast<std::size_t>(read.offsets.back()), -100);
    for (std::int32_t s = 0; s < 3; ++s) labels[read.offsets[s]] = s + 1;
    BOOST_TEST(gradcheck_parameters(
        [&] {
          Pass pass;
          return classifier->loss({read.side(), {}, labels}, {0.1, 3.0}, pass);
        },
        classifier->parameters()));
  }
}

BOOST_AUTO_TEST_CASE(decoding_after_front_end_equals_whole_forward_pass) {
  const ModelOptions o = conv_options(2);
  const auto model = make_seq2seq(o, 0, 7, true, 1);
  randomise(model->parameters());
  // Enough rows that the sources are encoded in several parts (encode_in_parts).
  const Source source({3000, 5, 1, 1500});
  const auto cached = model->decode(source.side(), 4),
             plain = model->decode(source.side(), 4, false);
  std::vector<std::size_t> sources{0, 1, 2, 3};
  std::vector<std::vector<std::int32_t>> read(4);
  for (std::uint32_t step = 0; step < 4; ++step) {
    const std::vector<std::int32_t> tokens = random_ids(4, 7, 90 + step);
    const Array a = cached->step(tokens), b = plain->step(tokens);
    BOOST_TEST(difference(a, b) < 1e-10);
    for (std::size_t i = 0; i < 4; ++i) {
      read[i].push_back(tokens[i]);
      const Source single = source.only(sources[i]);
      const std::vector<std::int32_t> ends{0, static_cast<std::int32_t>(step) + 1};
      Pass pass;
      const Array whole = model->logits({single.side(), {read[i], ends}}, pass).value();
      BOOST_TEST(difference(a.sliced(i, i + 1), whole.sliced(step, step + 1)) < 1e-10);
    }
    if (step != 0) continue;
    const std::vector<std::int32_t> parents{3, 1, 1, 0};
    cached->select(parents);
    plain->select(parents);
    sources = {3, 1, 1, 0};
    read = {read[3], read[1], read[1], read[0]};
  }
}

BOOST_AUTO_TEST_CASE(front_end_with_first_row_pooling_or_row_labels_is_refused) {
  ModelOptions o = conv_options(1);
  BOOST_CHECK_THROW(make_classifier(o, Labelling::rows, 0, 4, 1), std::exception);
  o.pool = Pool::first;
  BOOST_CHECK_THROW(make_classifier(o, Labelling::sequences, 0, 4, 1), std::exception);
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
