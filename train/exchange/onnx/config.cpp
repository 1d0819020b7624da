#include "train/exchange/onnx/config.h"

#include <algorithm>

#include "autograd/base/error.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/exchange/huggingface_class.h"

HEED_BEGIN

namespace {

/// Names of keys and values in the cache depend on the type of the model, their shapes do not.
HuggingFaceModel language_model_config(const ModelSource& source) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out{"GPT2LMHeadModel",
                       common_config(source, "GPT2LMHeadModel", "gpt2"),
                       common_generation(source),
                       {}};
  out.config.update({{"n_positions", o.context},
                     {"n_embd", o.d_model},
                     {"n_layer", o.decoder_layers},
                     {"n_head", o.heads}});
  out.generation_config["max_length"] = o.context;
  return out;
}

HuggingFaceModel pairs_config(const ModelSource& source) {
  const ModelOptions& o = source.model;
  const bool images = source.config.data.input == InputKind::image;
  const char* const name = images ? "VisionEncoderDecoderModel" : "BartForConditionalGeneration";
  HuggingFaceModel out{name,
                       common_config(source, name, images ? "vision-encoder-decoder" : "bart"),
                       common_generation(source),
                       {}};
  const Json sizes{{"d_model", o.d_model},
                   {"encoder_layers", o.encoder_layers},
                   {"decoder_layers", o.decoder_layers},
                   {"encoder_attention_heads", o.heads},
                   {"decoder_attention_heads", o.heads}};
  out.config.update({{"is_encoder_decoder", true},
                     {"decoder_start_token_id", source.ids.bos},
                     {"forced_eos_token_id", nullptr}});
  if (images) {
    out.config["decoder"] = sizes;
    out.config["decoder"].update({{"model_type", "trocr"}, {"is_decoder", true}});
    out.config["encoder"] = {{"model_type", "vit"}};
  } else {
    out.config.update(sizes);
  }
  out.generation_config.update({{"max_new_tokens", source.config.decode.max_length},
                                {"decoder_start_token_id", source.ids.bos},
                                {"forced_eos_token_id", nullptr}});
  return out;
}

HuggingFaceModel labels_config(const ModelSource& source) {
  const InputKind input = source.config.data.input;
  const char *type = "bert", *name = "BertForMaskedLM";
  if (source.config.task == TaskKind::classify)
    name = "BertForSequenceClassification";
  else if (source.config.task == TaskKind::tag)
    name = "BertForTokenClassification";
  if (input == InputKind::image) {
    const bool swin = source.model.kind == ModelKind::swin;
    type = swin ? "swin" : "vit";
    name = swin ? "SwinForImageClassification" : "ViTForImageClassification";
  }
  HuggingFaceModel out{name, common_config(source, name, type), {}, {}};
  out.config.erase("use_cache");
  return out;
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
  const Architecture architecture = info_of(config.task).architecture;
  if (architecture == Architecture::decoder) return language_model_config(source);
  if (architecture == Architecture::encoder_decoder) return pairs_config(source);
  return labels_config(source);
}

HEED_END
