#include "train/exchange/onnx/config.h"

#include <algorithm>

#include "autograd/base/error.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/exchange/huggingface/model_class.h"

HEED_BEGIN

namespace {

/// The names of keys and values in a cache depend on the type of the model, their shapes do not.
const char* class_for_client(const Config& config) {
  const bool images = config.data.input == InputKind::image;
  switch (info_of(config.task).architecture) {
    case Architecture::decoder:
      return "GPT2LMHeadModel";
    case Architecture::encoder_decoder:
      return "BlenderbotForConditionalGeneration";
    case Architecture::encoder:
      return "BertForTokenClassification";
    case Architecture::encoder_of_tokens:
      return "BertForMaskedLM";
    case Architecture::encoder_of_sequences:
      break;
  }
  if (!images) return "BertForTokenClassification";
  return config.model->kind == ModelKind::swin ? "SwinForImageClassification"
                                               : "ViTForImageClassification";
}

/// An encoder of images and a decoder of text are two models there.
void divide(Json& config) {
  config["decoder"] = config;
  config["decoder"].update({{"model_type", "trocr"}, {"is_decoder", true}});
  config["encoder"] = {{"model_type", "vit"}};
  config["model_type"] = "vision-encoder-decoder";
  config["architectures"] = {"VisionEncoderDecoderModel"};
}

}  // namespace

HuggingFaceModel onnx_config(const Config& config, const VocabularySizes& vocabulary,
                             const SpecialIds& ids) {
  try {
    return huggingface_model(config, vocabulary, ids);
  } catch (const Error& error) {
    if (error.code != Exit::usage) throw;
  }
  const ModelSource source{config, *config.model, vocabulary, ids};
  HuggingFaceModel model = described(
      *std::ranges::find(model_classes(), class_for_client(config), &ModelClass::name), source);
  if (info_of(config.task).architecture == Architecture::encoder_of_sequences &&
      config.data.input != InputKind::image)
    model.config["architectures"] = {model.architecture = "BertForSequenceClassification"};
  if (info_of(config.task).architecture == Architecture::encoder_decoder &&
      config.data.input == InputKind::image)
    divide(model.config);
  return model;
}

HEED_END
