#include <boost/test/unit_test.hpp>

#include "tests/train/import_support.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(import_images)

/// A classifier of transformers has no special ids; its labels may contain spaces or share a name.
BOOST_AUTO_TEST_CASE(labels_without_special_ids_begin_at_row_three) {
  const TempFolder folder;
  const Exported vit(image_yaml(vit_keys));
  vit.write(folder / "a");
  rewrite_tensors(folder / "a" / "model.safetensors", [](std::vector<TensorView>& views) {
    for (const std::string kind : {"weight", "bias"}) {
      TensorView& view = tensor_named(views, "classifier." + kind);
      view.bytes = view.bytes.subspan(view.bytes.size() / 2);  // three of six rows
      view.shape[0] = 3;
    }
  });
  nlohmann::json config = json_of(folder / "a" / "config.json");
  config["id2label"] = {{"0", "crane"}, {"1", "tabby cat"}, {"2", "</s>"}};
  put(folder / "a" / "config.json", config.dump());
  BOOST_TEST(import_huggingface(folder / "a").tokenizers.target->piece(5) == "</s>_2");
  config["id2label"]["2"] = "crane";
  put(folder / "a" / "config.json", config.dump());
  const ImportedModel imported = import_huggingface(folder / "a");
  const Tokenizer& labels = *imported.tokenizers.target;
  BOOST_TEST(labels.size() == 6);
  BOOST_TEST(labels.piece(3) == "crane");
  BOOST_TEST(labels.piece(4) == "tabby_cat");
  BOOST_TEST(labels.piece(5) == "crane_2");
  const Parameters before = vit.model->state(), after = imported.model->state();
  for (std::size_t p = 0; p < before.size(); ++p) {
    const Array &expected = before[p].tensor.value(), &found = after[p].tensor.value();
    const bool output = before[p].name.starts_with("output.");
    const std::int64_t first = output ? expected.size() / 2 : 0;
    BOOST_TEST((std::equal(expected.data() + first, expected.data() + expected.size(),
                           found.data() + first)),
               before[p].name);
    for (std::int64_t i = 0; i < first; ++i)
      BOOST_TEST(found.data()[i] == (before[p].name == "output.bias" ? real{-1e4} : real{0}));
  }
  nlohmann::json processor = json_of(folder / "a" / "preprocessor_config.json");
  processor["image_mean"] = {0.5, 0.5, 0.4};
  put(folder / "a" / "preprocessor_config.json", processor.dump());
  HEED_CHECK_ERROR(Exit::bad_input, "\"image_mean\" is [0.5,0.5,0.4]; heed reads pixels as",
                   import_huggingface(folder / "a"));
  std::filesystem::remove(folder / "a" / "preprocessor_config.json");
  const ImportedModel without = import_huggingface(folder / "a");
  BOOST_TEST(without.note.find(
                 "preprocessor_config.json is missing: pixels are read as (v / 255 - 0.5) / 0.5") !=
             std::string::npos);
  BOOST_TEST(without.config.data.image.mean == 0.5);
  BOOST_TEST(without.config.data.image.deviation == 0.5);
  config["id2label"].erase("1");
  put(folder / "a" / "config.json", config.dump());
  HEED_CHECK_ERROR(Exit::bad_input, "\"id2label\" has no name for label 1",
                   import_huggingface(folder / "a"));
}

/// The class token and the bias of the patches are two tensors in transformers and one in heed.
BOOST_AUTO_TEST_CASE(position_0_takes_up_what_the_class_token_exceeds_the_bias) {
  const TempFolder folder;
  const Exported vit(image_yaml(vit_keys));
  vit.write(folder / "a");
  const Folder weights = folder / "a" / "model.safetensors";
  const std::string bytes = bytes_of(weights);
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "x");
  std::vector<TensorView> views = file.tensors();
  const std::vector<float> token{1, 2, 3, 4, -5, 6, 7, 0.5};
  TensorView& view = tensor_named(views, "vit.embeddings.cls_token");
  view.bytes = std::as_bytes(std::span(token));
  write_safetensors(weights, views);
  const ImportedModel imported = import_huggingface(folder / "a");
  const auto values = [](const Model& model, const char* name) {
    const Parameters all = model.state();
    return Array(std::ranges::find(all, name, &NamedTensor::name)->tensor.value());
  };
  const Array bias = values(*vit.model, "input.bias"),
              before = values(*vit.model, "positions.weight"),
              after = values(*imported.model, "positions.weight");
  BOOST_TEST(
      (std::equal(bias.data(), bias.data() + 8, values(*imported.model, "input.bias").data())));
  for (std::int64_t i = 0; i < 8; ++i)
    BOOST_TEST(after.data()[i] ==
               before.data()[i] + (token[static_cast<std::size_t>(i)] - bias.data()[i]));
  BOOST_TEST((std::equal(before.data() + 8, before.data() + before.size(), after.data() + 8)));
  view.shape = {8};
  write_safetensors(weights, views);
  HEED_CHECK_ERROR(Exit::bad_input,
                   "vit.embeddings.cls_token is F32 [8]; expected floating-point numbers",
                   import_huggingface(folder / "a"));
}

BOOST_AUTO_TEST_CASE(windows_that_do_not_divide_the_sides_of_a_stage_are_refused) {
  const TempFolder folder;
  Exported(image_yaml(swin_keys)).write(folder / "a");
  nlohmann::json config = json_of(folder / "a" / "config.json");
  config["window_size"] = 3;
  put(folder / "a" / "config.json", config.dump());
  HEED_CHECK_ERROR(Exit::bad_input, "model.swin.window is 3 (it needs a divisor of 4",
                   import_huggingface(folder / "a"));
  config["window_size"] = 2;
  config["num_heads"] = {2, 2};
  put(folder / "a" / "config.json", config.dump());
  HEED_CHECK_ERROR(Exit::bad_input, "\"num_heads\" is [2,2]; heed has [2,4] here",
                   import_huggingface(folder / "a"));
}

BOOST_AUTO_TEST_CASE(processors_of_images_that_heed_does_not_have_are_refused) {
  const TempFolder folder;
  Exported(image_yaml(vit_keys)).write(folder / "a");
  const Folder file = folder / "a" / "preprocessor_config.json";
  const nlohmann::json own = json_of(file);
  for (const auto& [key, value] :
       std::map<std::string, nlohmann::json>{{"image_processor_type", "CLIPImageProcessor"},
                                             {"do_grayscale", true},
                                             {"do_flip_channel_order", true},
                                             {"offset", true}}) {
    nlohmann::json other = own;
    other[key] = value;
    put(file, other.dump());
    HEED_CHECK_ERROR(Exit::bad_input,
                     "\"" + key + "\" is " + value.dump() + ", which heed does not know",
                     import_huggingface(folder / "a"));
  }
  nlohmann::json other = own;
  other["image_std"] = {0.5, 0.5};
  put(file, other.dump());
  HEED_CHECK_ERROR(Exit::bad_input, "\"image_std\" is [0.5,0.5]", import_huggingface(folder / "a"));
  std::filesystem::remove(file);
  other = own;
  other["image_mean"] = std::vector<double>(own["image_mean"].size(), 0.25);
  put(folder / "a" / "processor_config.json", nlohmann::json{{"image_processor", other}}.dump());
  BOOST_TEST(import_huggingface(folder / "a").config.data.image.mean == 0.25);
}

BOOST_AUTO_TEST_SUITE_END()
