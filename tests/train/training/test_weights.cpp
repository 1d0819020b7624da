#include "nn/weights.h"

#include "tests/train/support.h"
#include "tests/train/training.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(weights)

namespace {

/// Writes these tensors to a file and returns the file as read.
SafetensorsFile file_of(const TempFolder& folder, std::vector<TensorView> views) {
  write_safetensors(folder / "w.safetensors", views);
  return SafetensorsFile::read(folder / "w.safetensors");
}

void overwrite(const Model& model, float value) {
  for (NamedTensor& p : model.parameters()) {
    for (float& v : p.tensor.mutable_value().values()) v = value;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(weights_are_restored_bitwise) {
  const TempFolder folder;
  const std::unique_ptr<Generative> model = small_seq2seq();
  const Bits before = bits_of(model->parameters());
  const SafetensorsFile file = file_of(folder, tensor_views(model->parameters()));
  BOOST_TEST(file.tensors().size() == model->parameters().size());
  for (const NamedTensor& p : model->parameters()) {
    const TensorView* const view = file.find(p.name);
    BOOST_REQUIRE(view != nullptr);
    BOOST_TEST((view->dtype == DType::f32));
  }
  overwrite(*model, 7);
  load_weights(file, model->parameters(), "w");
  BOOST_TEST(same_bits(bits_of(model->parameters()), before));
}

BOOST_AUTO_TEST_CASE(loading_sets_tied_weights) {
  const TempFolder folder;
  const std::unique_ptr<Generative> model = small_seq2seq(), saved = small_seq2seq(0, 2);
  const SafetensorsFile file = file_of(folder, tensor_views(saved->parameters()));
  load_weights(file, model->parameters(), "w");
  const auto loaded = model->output().weight.value().values(),
             expected = saved->output().weight.value().values();
  BOOST_TEST(std::equal(loaded.begin(), loaded.end(), expected.begin(), expected.end()));
}

BOOST_AUTO_TEST_CASE(float64_weights_are_rounded_to_float32) {
  const TempFolder folder;
  const std::vector<double> values{0.1, -2.5, 1e-3};
  const SafetensorsFile file =
      file_of(folder, {{"a", DType::f64, {3}, std::as_bytes(std::span(values))}});
  const std::vector<NamedTensor> parameters{{"a", Tensor::variable(Array::zeros({3}))}};
  load_weights(file, parameters, "w");
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(parameters[0].tensor.value().data()[i] == static_cast<float>(values[i]));
}

BOOST_AUTO_TEST_CASE(all_mismatches_are_named_and_no_weight_is_changed) {
  const TempFolder folder;
  const std::unique_ptr<Generative> model = small_seq2seq();
  std::vector<TensorView> views = tensor_views(model->parameters());
  const std::vector<float> values(1000);
  const auto bytes = [&](std::size_t n) { return std::as_bytes(std::span(values).first(n)); };
  const auto named = [&](const std::string& name) {
    return std::find_if(views.begin(), views.end(),
                        [&](const TensorView& v) { return v.name == name; });
  };
  views.erase(named("encoder.norm.bias"));
  views.erase(named("decoder.layers.1.linear2.weight"));
  *named("decoder.norm.weight") = {"decoder.norm.weight", DType::f32, {7}, bytes(7)};
  *named("encoder.layers.0.linear1.weight") = {
      "encoder.layers.0.linear1.weight", DType::f32, {12, 20}, bytes(240)};
  *named("encoder.layers.0.norm1.bias") = {
      "encoder.layers.0.norm1.bias", DType::i32, {12}, bytes(12)};
  views.push_back({"decoder.layers.2.norm1.bias", DType::f32, {12}, bytes(12)});
  const SafetensorsFile file = file_of(folder, views);
  overwrite(*model, 7);
  const Bits before = bits_of(model->parameters());
  const std::string message =
      error_of(Exit::bad_input, [&] { load_weights(file, model->parameters(), "some/file"); });
  for (const char* part :
       {"some/file", "missing: encoder.norm.bias", "missing: decoder.layers.1.linear2.weight",
        "decoder.norm.weight is F32 [7] in the file, F32 [12] in the model",
        "encoder.layers.0.linear1.weight is F32 [12, 20] in the file, F32 [20, 12] in the model",
        "encoder.layers.0.norm1.bias is I32 [12] in the file, F32 [12] in the model",
        "extra: decoder.layers.2.norm1.bias F32 [12]"}) {
    BOOST_TEST(contains(message, part), "no \"" << part << "\" in: " << message);
  }
  BOOST_TEST(std::count(message.begin(), message.end(), '\n') == 6);  // no further lines
  BOOST_TEST(same_bits(bits_of(model->parameters()), before));
}

BOOST_AUTO_TEST_CASE(weights_of_another_kind_of_model_are_refused) {
  const TempFolder folder;
  const std::unique_ptr<Generative> model = small_seq2seq(), lm = small_lm();
  const SafetensorsFile file = file_of(folder, tensor_views(lm->parameters()));
  const std::string message =
      error_of(Exit::bad_input, [&] { load_weights(file, model->parameters(), "w"); });
  BOOST_TEST(contains(message, "missing: encoder.layers.0.self_attn.in_proj_weight [36, 12]"));
}

BOOST_AUTO_TEST_SUITE_END()
