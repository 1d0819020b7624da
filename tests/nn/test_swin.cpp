// Swin Transformers: attention in windows, compared with the paper's masks on whole images.
#include "nn/models/swin.h"

#include <algorithm>

#include "autograd/gradcheck.h"
#include "autograd/ops/more/attention/mask.h"
#include "nn/models/classifier.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(swin)

namespace {

/// A model of two stages, the first with a shifted second layer. Images have 4 · side × 2 · side
/// patches.
ModelOptions two_stages(std::int64_t side = 2) {
  ModelOptions o = small_options();
  o.kind = ModelKind::swin;
  o.positions = PositionKind::none;
  o.pool = Pool::mean;
  o.d_model = 4;
  o.d_ff = 6;
  o.heads = 2;
  o.dropout = 0;
  o.input_width = 3;
  o.grid_height = 4 * side;
  o.grid_width = 2 * side;
  o.swin = {side, {2, 1}};
  return o;
}

struct Patches {
  std::vector<float> values;
  std::vector<std::int32_t> offsets;
  std::int64_t width;

  Patches(std::int64_t images, const ModelOptions& o) : width(o.input_width) {
    const std::int64_t patches = o.grid_height * o.grid_width;
    const Array random = normal({images * patches, width}, 31);
    values.assign(random.values().begin(), random.values().end());
    for (std::int64_t p = 0; p <= images; ++p)
      offsets.push_back(static_cast<std::int32_t>(p * patches));
  }
  SideView view() const { return {{}, offsets, values, width}; }
};

/// An image of height × width patches, rolled by `shift` towards its origin and cut into windows of
/// side × side patches, as in section 3.2 of the paper.
struct Roll {
  std::int64_t height, width, side, shift;
};

struct Rolled {
  Roll roll;
  std::int64_t y, x;

  Rolled(std::int64_t patch, const Roll& r)
      : roll(r),
        y((patch / r.width - r.shift + r.height) % r.height),
        x((patch % r.width - r.shift + r.width) % r.width) {}

  /// The region of coordinate `at` along a side of `length` patches, as numbered by the published
  /// code: 0 before the last window, 1 in the last window but not wrapped around, 2 wrapped around.
  std::int64_t region(std::int64_t at, std::int64_t length) const {
    return roll.shift == 0 || at < length - roll.side ? 0 : at < length - roll.shift ? 1 : 2;
  }
  bool reads(const Rolled& other) const {
    return y / roll.side == other.y / roll.side && x / roll.side == other.x / roll.side &&
           region(y, roll.height) == region(other.y, roll.height) &&
           region(x, roll.width) == region(other.x, roll.width);
  }
  std::int64_t difference(const Rolled& other) const {
    const std::int64_t side = roll.side;
    return (y % side - other.y % side + side - 1) * (2 * side - 1) + x % side - other.x % side +
           side - 1;
  }
};

/// The relative position bias on whole images, added to the score of each pair of patches that
/// attend to each other.
struct DenseBias final : ScoreTerm {
  Tensor table;
  Roll roll;

  DenseBias(Tensor biases, const Roll& r) : table(std::move(biases)), roll(r) {}
  void add(const ScoreBlock& block, real* s) const override {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      for (std::int64_t j = 0; j < block.keys; ++j) {
        const Rolled query(block.query + i, roll), key(block.key + j, roll);
        if (query.reads(key))
          s[i * block.keys + j] += table.value().row(query.difference(key))[block.head];
      }
    }
  }
};

void take_values(const Parameters& to, const std::string& prefix, const Parameters& from) {
  for (const NamedTensor& target : to) {
    const auto found = std::ranges::find(from, prefix + target.name, &NamedTensor::name);
    BOOST_REQUIRE_MESSAGE(found != from.end(), "no parameter " << prefix + target.name);
    Tensor tensor = target.tensor;
    const Array& values = found->tensor.value();
    BOOST_REQUIRE((tensor.shape() == values.shape()));
    std::copy_n(values.data(), values.size(), tensor.mutable_value().data());
  }
}

/// The output of a block on whole images, where a mask restricts each patch to its window.
Tensor dense_block(const ModelOptions& o, const Parameters& weights, const std::string& name,
                   const Tensor& x, const Roll& roll) {
  Init init(1);
  const TransformerBlock block(o, BlockKind::encoder, init);
  take_values(block.parameters(), name + ".", weights);
  const auto table = std::ranges::find(weights, name + ".positions.weight", &NamedTensor::name);
  const std::vector<ScoreTermPtr> terms{std::make_shared<DenseBias>(table->tensor, roll)};
  std::vector<std::int32_t> offsets;
  for (std::int64_t at = 0; at <= x.shape()[0]; at += roll.height * roll.width)
    offsets.push_back(static_cast<std::int32_t>(at));
  Pass pass;
  Context context{offsets, nullptr, pass};
  context.terms = terms;
  context.pattern = mask_pattern([=](std::int64_t, std::int64_t query, std::int64_t key) {
    return Rolled(query, roll).reads(Rolled(key, roll));
  });
  return block(x, context);
}

Tensor rows(const Tensor& x, const std::vector<std::int32_t>& ids) { return index_select(x, ids); }

}  // namespace

BOOST_AUTO_TEST_CASE(attention_in_windows_equals_masked_attention_on_whole_images) {
  for (const std::int64_t side : {2, 3, 4}) {
    ModelOptions o = two_stages(side);
    o.swin.depths = {3, 1};
    o.attention.kv_heads = side == 3 ? 1 : 0;
    const std::int64_t h = o.grid_height, w = o.grid_width;
    Init init(7);
    const SwinEncoder encoder(o, init);
    randomise(encoder.parameters());
    const Parameters weights = encoder.parameters();
    const Patches patches(2, o);
    Pass pass;
    const Array got = encoder(patches.view(), pass).value();
    BOOST_TEST((got.shape() == Shape{2 * h * w / 4, 8}));

    Linear input(3, 4, init), reduce(16, 8, init, false);
    Norm first(o, init);
    ModelOptions wide = o, four = o;
    wide.d_model = 8;
    wide.d_ff = 12;
    wide.heads = 4;
    wide.attention.kv_heads *= 2;
    four.d_model = 16;
    Norm merged(four, init), last(wide, init);
    take_values(input.parameters(), "input.", weights);
    take_values(first.parameters(), "input_norm.", weights);
    take_values(reduce.parameters(), "stages.1.merge.projection.", weights);
    take_values(merged.parameters(), "stages.1.merge.norm.", weights);
    take_values(last.parameters(), "norm.", weights);
    Tensor x = first(input(rows_of_features(patches.view())), pass);
    x = dense_block(o, weights, "stages.0.layers.0", x, {h, w, side, 0});
    x = dense_block(o, weights, "stages.0.layers.1", x, {h, w, side, side / 2});
    x = dense_block(o, weights, "stages.0.layers.2", x, {h, w, side, 0});
    std::vector<std::int32_t> corners[4];
    for (std::int64_t image = 0; image < 2; ++image) {
      for (std::int64_t y = 0; y < h; y += 2) {
        for (std::int64_t at = 0; at < w; at += 2) {
          const std::int64_t corner = (image * h + y) * w + at;
          const std::int64_t of[] = {corner, corner + w, corner + 1, corner + w + 1};
          for (std::size_t k = 0; k < 4; ++k)
            corners[k].push_back(static_cast<std::int32_t>(of[k]));
        }
      }
    }
    x = concat({rows(x, corners[0]), rows(x, corners[1]), rows(x, corners[2]), rows(x, corners[3])},
               1);
    x = reduce(merged(x, pass));
    x = last(dense_block(wide, weights, "stages.1.layers.0", x, {h / 2, w / 2, side, 0}), pass);
    // The windows of the last stage are as wide as the image, so cutting the image into windows
    // preserves the order of the patches.
    BOOST_TEST(difference(got, x.value()) < 1e-12);
  }
}

// The shorter side of an image does not limit the width of its windows.
BOOST_AUTO_TEST_CASE(windows_of_a_wide_image_have_the_configured_width) {
  ModelOptions o = two_stages();
  o.grid_height = 2, o.grid_width = 8;
  o.swin = {7, {1}};
  Init init(3);
  const SwinEncoder encoder(o, init);
  randomise(encoder.parameters());
  const Parameters weights = encoder.parameters();
  const auto table =
      std::ranges::find(weights, "stages.0.layers.0.positions.weight", &NamedTensor::name);
  BOOST_REQUIRE((table != weights.end()));
  BOOST_TEST(table->tensor.value().rows() == 13 * 13);
  const auto first_row = [&](std::int64_t changed) {
    Patches patches(1, o);
    for (std::int64_t k = 0; k < patches.width; ++k)
      patches.values[changed * patches.width + k] += static_cast<float>(k);
    Pass pass;
    return encoder(patches.view(), pass).value().row(0)[0];
  };
  // Column 7 is the first of the second window.
  BOOST_TEST(first_row(6) != first_row(7));
  BOOST_TEST(first_row(8 + 6) != first_row(7));
  BOOST_TEST(first_row(8 + 7) == first_row(7));
}

BOOST_AUTO_TEST_CASE(shifted_windows_at_edges_are_smaller) {
  const Windowed whole = cut_into_windows(4, 4, 2, 0), shifted = cut_into_windows(4, 4, 2, 1);
  BOOST_TEST((whole.grid->offsets == std::vector<std::int32_t>{0, 4, 8, 12, 16}));
  BOOST_TEST((whole.order ==
              std::vector<std::int32_t>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  BOOST_TEST(
      (shifted.grid->offsets == std::vector<std::int32_t>{0, 1, 3, 4, 6, 10, 12, 13, 15, 16}));
  BOOST_TEST((cut_into_windows(1, 14, 7, 3).grid->offsets ==
              std::vector<std::int32_t>{0, 3, 10, 14}));  // the same windows as after a roll by −3
  // An image that fits into one window forms one window, even with a shift. A remainder at the edge
  // forms a smaller window.
  BOOST_TEST(cut_into_windows(4, 3, 4, 2).grid->windows() == 1);
  BOOST_TEST((cut_into_windows(1, 5, 2, 0).grid->offsets == std::vector<std::int32_t>{0, 2, 4, 5}));
}

BOOST_AUTO_TEST_CASE(swin_passes_gradcheck) {
  for (const NormPlace norm : {NormPlace::pre, NormPlace::post}) {
    for (const double dropout : {0.0, 0.3}) {
      ModelOptions o = two_stages();
      o.norm = norm;
      o.dropout = dropout;
      const auto model = make_classifier(o, Labelling::sequences, 0, 5, 1);
      randomise(model->parameters());
      const Patches patches(2, o);
      std::vector<std::int32_t> labels(64, ignored_target);
      labels[0] = 3;
      labels[32] = 1;
      const auto loss = [&] {
        Pass pass{dropout > 0, 5, 17, 2};
        return model->loss({patches.view(), {}, labels}, {0.1, 2.0}, pass);
      };
      BOOST_TEST(gradcheck_parameters(loss, model->parameters()));
    }
  }
}

BOOST_AUTO_TEST_CASE(logits_of_image_do_not_depend_on_batch) {
  const ModelOptions o = two_stages();
  const auto model = make_classifier(o, Labelling::sequences, 0, 5, 1);
  randomise(model->parameters());
  const Patches three(3, o);
  Pass pass;
  const Array together = model->logits({three.view(), {}, {}}, pass).value();
  const std::vector<std::int32_t> one{0, 32};
  for (std::int64_t i = 0; i < 3; ++i) {
    const Array alone =
        model->logits({three.view().part(32 * i, 32 * (i + 1), one), {}, {}}, pass).value();
    BOOST_TEST(difference(alone, together.sliced(i, i + 1)) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(invalid_swin_options_and_image_sizes_are_refused) {
  ModelOptions o = two_stages();
  o.grid_width = 3;
  Init init(1);
  EXPECT_FAIL(SwinEncoder(o, init), "stage 1 cannot merge 8 x 3 patches: both sides must be even");
  o = two_stages();
  o.norm_kind = NormKind::batch;
  EXPECT_FAIL(SwinEncoder(o, init), "expected layer norm or RMS norm");
  o = two_stages();
  EXPECT_FAIL(make_classifier(o, Labelling::rows, 0, 5, 1),
              "swin requires `pool: mean` and one label per image");
  const auto model = make_classifier(o, Labelling::sequences, 0, 5, 1);
  ModelOptions larger = o;
  larger.grid_width = 6;
  Pass pass;
  const Patches wrong_size(1, larger);
  EXPECT_FAIL(model->logits({wrong_size.view(), {}, {}}, pass),
              "expected images of 32 patches, got 48");
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
