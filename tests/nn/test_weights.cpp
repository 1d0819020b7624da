// Weight files: saving, strict and partial loading, conversion of types.
#include "nn/weights.h"

#include <cmath>

#include "nn/linear.h"
#include "nn/models/backbone.h"
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"
#include "tests/train/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(weights_in_files)

using test::TempFolder;
using Names = std::vector<std::string>;

namespace {

/// A file with one tensor "a", which contains `values`.
template <class T>
SafetensorsFile file_of(const TempFolder& folder, DType type, const std::vector<T>& values) {
  const std::vector<TensorView> tensors{
      {"a", type, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))}};
  write_safetensors(folder / "a", tensors);
  return SafetensorsFile::read(folder / "a");
}

/// The values of the parameter "a" after it was loaded from a file that contains `values`.
template <class T>
std::vector<double> loaded(DType type, const std::vector<T>& values) {
  const TempFolder folder;
  const Parameters a{{"a", Tensor::variable(Array({static_cast<std::int64_t>(values.size())}))}};
  load_weights(file_of(folder, type, values), a, "w");
  const auto got = a[0].tensor.value().values();
  return {got.begin(), got.end()};
}

Linear linear(std::int64_t in, std::int64_t out, std::uint64_t seed) {
  Init init(seed);
  return {in, out, init};
}

}  // namespace

BOOST_AUTO_TEST_CASE(saved_model_is_restored_bitwise) {
  const TempFolder folder;
  Init init(1), second_init(2);
  const Backbone saved(small_options(), 5, BlockKind::causal, init),
      backbone(small_options(), 5, BlockKind::causal, second_init);
  save_weights(folder / "w", saved.parameters());
  const LoadedWeights names = load_weights(folder / "w", backbone.parameters());
  BOOST_TEST(names.loaded.size() == saved.parameters().size());
  BOOST_TEST((names.missing.empty() && names.extra.empty()));
  for (std::size_t i = 0; i < saved.parameters().size(); ++i) {
    BOOST_TEST(saved.parameters()[i].name == names.loaded[i]);
    BOOST_TEST(
        same_bits(saved.parameters()[i].tensor.value(), backbone.parameters()[i].tensor.value()));
  }
}

BOOST_AUTO_TEST_CASE(saved_metadata_are_as_given_or_default_to_pytorch_format) {
  const TempFolder folder;
  save_weights(folder / "w", linear(2, 3, 1).parameters());
  save_weights(folder / "steps", linear(2, 3, 1).parameters(), {{"steps", "7"}});
  const SafetensorsFile plain = SafetensorsFile::read(folder / "w"),
                        steps = SafetensorsFile::read(folder / "steps");
  BOOST_TEST(plain.metadata().at("format") == "pt");
  BOOST_TEST(steps.metadata().at("steps") == "7");
  BOOST_TEST(steps.metadata().size() == 1u);
}

BOOST_AUTO_TEST_CASE(strict_loading_lists_all_mismatches_and_changes_no_parameter) {
  const TempFolder folder;
  const Tensor w = Tensor::variable(normal({2, 3}, 1)), b = Tensor::variable(normal({3}, 2)),
               c = Tensor::variable(normal({4}, 3));
  save_weights(folder / "w", Parameters{{"w", w}, {"old", b}, {"c", c}});
  const Parameters model{{"w", Tensor::variable(Array::zeros({3, 2}))},
                         {"new", Tensor::variable(Array::zeros({5}))},
                         {"c", Tensor::variable(Array::zeros({4}))}};
  const std::string message =
      test::error_of(Exit::bad_input, [&] { load_weights(folder / "w", model); });
  BOOST_TEST(message ==
             (folder / "w").string() +
                 ": the weights do not fit the model\n"
                 "  missing: new [5]\n"
                 "  shape or type differs: w is F64 [2, 3] in the file, F64 [3, 2] in the model\n"
                 "  extra: old F64 [3]");
  for (const NamedTensor& p : model)
    BOOST_TEST(same_bits(p.tensor.value(), Array::zeros(p.tensor.shape())));
}

BOOST_AUTO_TEST_CASE(partial_loading_copies_common_tensors_and_reports_others) {
  const TempFolder folder;
  const Tensor w = Tensor::variable(normal({2, 3}, 1)), b = Tensor::variable(normal({3}, 2));
  save_weights(folder / "w", Parameters{{"w", w}, {"old", b}});
  const Parameters model{{"new", Tensor::variable(Array::full({5}, 7))},
                         {"w", Tensor::variable(Array::zeros({2, 3}))}};
  const LoadedWeights names = load_weights(folder / "w", model, {.strict = false});
  BOOST_TEST(names.loaded == Names{"w"}, boost::test_tools::per_element());
  BOOST_TEST(names.missing == Names{"new"}, boost::test_tools::per_element());
  BOOST_TEST(names.extra == Names{"old"}, boost::test_tools::per_element());
  BOOST_TEST(same_bits(model[0].tensor.value(), Array::full({5}, 7)));
  BOOST_TEST(same_bits(model[1].tensor.value(), w.value()));
}

BOOST_AUTO_TEST_CASE(partial_loading_with_wrong_shape_or_no_common_name_is_refused) {
  const TempFolder folder;
  const LoadOptions partial{.strict = false};
  const Tensor w = Tensor::variable(normal({2, 3}, 1)), b = Tensor::variable(normal({3}, 2));
  save_weights(folder / "w", Parameters{{"w", w}, {"b", b}, {"old", b}});
  const std::string shape = test::error_of(Exit::bad_input, [&] {
    load_weights(folder / "w", Parameters{{"w", b}, {"b", b}, {"new", w}}, partial);
  });
  BOOST_TEST(
      shape.ends_with("fit the model\n  shape or type differs: w is F64 [2, 3] in the file, "
                      "F64 [3] in the model"));
  const std::string names = test::error_of(Exit::bad_input, [&] {
    load_weights(folder / "w", Parameters{{"layer.w", w}}, partial);
  });
  BOOST_TEST(test::contains(names, "missing: layer.w [2, 3]\n  extra: b F64 [3]\n"));
}

BOOST_AUTO_TEST_CASE(long_list_of_mismatches_is_truncated) {
  const TempFolder folder;
  Parameters many;
  for (int i = 0; i < 103; ++i)
    many.push_back({"p" + std::to_string(i), Tensor::variable(Array::zeros({1}))});
  save_weights(folder / "w", linear(2, 3, 1).parameters());
  const std::string message =
      test::error_of(Exit::bad_input, [&] { load_weights(folder / "w", many); });
  BOOST_TEST(test::contains(message, "missing: p99 [1]\n  … and 3 more\n  extra: bias F64 [3]"));
}

BOOST_AUTO_TEST_CASE(duplicate_names_and_undefined_tensors_are_refused) {
  const TempFolder folder;
  const Tensor w = Tensor::variable(normal({2}, 1));
  const Parameters twice{{"w", w}, {"w", w}}, undefined{{"b", Tensor()}};
  EXPECT_FAIL(save_weights(folder / "w", twice), "duplicate or reserved tensor name w");
  EXPECT_FAIL(save_weights(folder / "w", undefined),
              "[save_weights] b is an undefined tensor: leave it out of parameters()");
  BOOST_TEST(folder.entries() == 0);
  save_weights(folder / "w", Parameters{{"w", w}});
  EXPECT_FAIL(load_weights(folder / "w", twice), "[load_weights] two parameters are named w");
  EXPECT_FAIL(load_weights(folder / "w", undefined), "[load_weights] b is an undefined tensor");
}

BOOST_AUTO_TEST_CASE(missing_file_or_folder_is_refused) {
  const TempFolder folder;
  const Parameters w{{"w", Tensor::variable(normal({2}, 1))}};
  HEED_CHECK_ERROR(Exit::bad_input, "none: no such file", load_weights(folder / "none", w));
  HEED_CHECK_ERROR(Exit::io, "/no/", save_weights(folder / "no/w", w));
}

BOOST_AUTO_TEST_CASE(values_of_all_float_types_are_converted_to_real) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> f64 = loaded<double>(DType::f64, {0.1, -1e300}),
                            f32 = loaded<float>(DType::f32, {0.1f, -3e38f});
  BOOST_TEST(f64 == (std::vector<double>{0.1, -1e300}), boost::test_tools::per_element());
  BOOST_TEST(f32 == (std::vector<double>{0.1f, -3e38f}), boost::test_tools::per_element());
  // 1, −2, the maximum, the smallest positive normal and subnormal numbers, −0, ±∞, 1/3.
  const std::vector<double> f16 = loaded<std::uint16_t>(
      DType::f16, {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x7c00, 0xfc00, 0x3555});
  BOOST_TEST(f16 == (std::vector<double>{1, -2, 65504, 0x1p-14, 0x1p-24, 0, inf, -inf, 0x1.554p-2}),
             boost::test_tools::per_element());
  BOOST_TEST(std::signbit(f16[5]));
  BOOST_TEST(std::isnan(loaded<std::uint16_t>(DType::f16, {0x7e00})[0]));
  const std::vector<double> bf16 = loaded<std::uint16_t>(DType::bf16, {0x3f80, 0xc000, 0x3eab});
  BOOST_TEST(bf16 == (std::vector<double>{1, -2, 0x1.56p-2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(quantised_weights_are_restored_within_half_a_scale) {
  const TempFolder folder;
  const Linear saved = linear(40, 50, 1), into = linear(40, 50, 2);
  const Tensor cube = Tensor::variable(normal({3, 4, 5}, 3)),
               cube_into = Tensor::variable(Array::zeros({3, 4, 5}));
  const QuantisedWeights quantised(Parameters{{"w", saved.weight}, {"b", saved.bias}, {"c", cube}});
  write_safetensors(folder / "q", quantised.views());
  const SafetensorsFile file = SafetensorsFile::read(folder / "q");
  BOOST_TEST(file.find("w")->description() == "I8 [50, 40]");
  BOOST_TEST(file.find("w.scale")->description() == "F32 [50]");
  BOOST_TEST(file.find("c.scale")->description() == "F32 [3]");
  BOOST_TEST((is_scale(file, "w.scale") && !is_scale(file, "b.scale") && !is_scale(file, "w")));
  BOOST_TEST(file.tensors().size() == 5u);
  const LoadedWeights names =
      load_weights(file, Parameters{{"w", into.weight}, {"c", cube_into}, {"b", into.bias}}, "q");
  BOOST_TEST((names.quantised && names.extra.empty()));  // although the last one has no scales
  BOOST_TEST(same_bits(into.bias.value(), saved.bias.value()));
  const auto within = [&](const char* name, const Tensor& before, const Tensor& after) {
    const auto scales = file.find(std::string(name) + ".scale")->values<float>();
    const auto numbers = file.find(name)->values<std::int8_t>();
    const std::int64_t cols = before.size() / std::ssize(scales);
    for (std::int64_t i = 0; i < before.size(); ++i) {
      const double scale = scales[i / cols], x = after.value().data()[i];
      BOOST_TEST(x == scale * numbers[i]);
      BOOST_TEST(std::abs(x - before.value().data()[i]) <= 0.50001 * scale);
    }
  };
  within("w", saved.weight, into.weight);
  within("c", cube, cube_into);
  const QuantisedWeights again(Parameters{{"w", into.weight}});
  BOOST_TEST(std::ranges::equal(again.views()[0].bytes, file.find("w")->bytes));
  BOOST_TEST(std::ranges::equal(again.views()[1].bytes, file.find("w.scale")->bytes));
}

BOOST_AUTO_TEST_CASE(mismatched_quantised_weights_are_refused) {
  const TempFolder folder;
  const std::vector<std::int8_t> q(6, 1);
  const std::vector<float> scales(3, 1);
  const Parameters w{{"w", Tensor::variable(Array::zeros({2, 3}))}};
  const auto message = [&](std::vector<std::int64_t> shape, const char* name, DType type,
                           std::int64_t count) {
    const std::vector<TensorView> tensors{
        {"w", DType::i8, std::move(shape), std::as_bytes(std::span(q))},
        {name, type, {count}, std::as_bytes(std::span(scales)).first(count * size_of(type))}};
    write_safetensors(folder / "q", tensors);
    return test::error_of(Exit::bad_input,
                          [&] { load_weights(folder / "q", w, {.strict = false}); });
  };
  const std::string no_scales =
      "w is I8 [2, 3] in the file, F64 [2, 3] in the model, and w.scale is "
      "missing or is not F32 [2]";
  BOOST_TEST(test::contains(message({2, 3}, "w.scales", DType::f32, 2), no_scales));
  BOOST_TEST(test::contains(message({2, 3}, "w.scale", DType::f32, 3), no_scales));
  BOOST_TEST(test::contains(message({2, 3}, "w.scale", DType::f16, 2), no_scales));
  BOOST_TEST(message({3, 2}, "w.scale", DType::f32, 3)
                 .ends_with("w is I8 [3, 2] in the file, F64 [2, 3] in the model"));
  BOOST_TEST(same_bits(w[0].tensor.value(), Array::zeros({2, 3})));
}

BOOST_AUTO_TEST_CASE(quantising_nonfinite_or_huge_weights_is_refused) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), 1e39, 0x1p127}) {
    Array x = Array::zeros({3, 2});
    x.row(1)[1] = value;
    const Parameters w{{"layer.w", Tensor::variable(x)}};
    HEED_CHECK_ERROR(Exit::non_finite, "layer.w: row 1 has a weight that is not finite",
                     QuantisedWeights{w});
  }
}

BOOST_AUTO_TEST_CASE(integer_tensors_are_refused_as_weights) {
  const TempFolder folder;
  const SafetensorsFile file = file_of<std::int32_t>(folder, DType::i32, {1, 2});
  const Parameters a{{"a", Tensor::variable(Array::zeros({2}))}};
  HEED_CHECK_ERROR(Exit::bad_input, "a is I32 [2] in the file, F64 [2] in the model",
                   load_weights(file, a, "w", {.strict = false}));
  std::vector<real> two(2), three(3);
  EXPECT_FAIL(copy_values(file.tensors()[0], two),
              "[copy_values] cannot copy tensor a (I32 [2]) to 2 values");
  const SafetensorsFile reals = file_of<float>(folder, DType::f32, {1, 2});
  EXPECT_FAIL(copy_values(reals.tensors()[0], three), "tensor a (F32 [2]) to 3 values");
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
