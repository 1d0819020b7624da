/// The keys of the section `model`.
#include "data/inputs/input_info.h"
#include "nn/layers/activations.h"
#include "nn/layers/mixer.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/config/field_rows.h"

namespace heed {

void add_model(Table& table) {
  const Range layers{0, 1000};
  const auto patterns = [](bool PatternInfo::*supports) {
    return names_where(pattern_table, supports);
  };
  constexpr auto functions = names_of(UnaryFunction{});
  const std::vector<std::string> ungated(functions.begin(), functions.begin() + activation_count);
  add(table,
      {
          row(HEED_MODEL_KEY(kind),
              "transformer: each block reads whole sequences. swin: blocks read an image window by "
              "window, and later stages have fewer and wider patches (Swin Transformer); d_model, "
              "heads and d_ff are those of the first stage, and each further stage doubles them.")
              .only("data.input", names_where(input_table(), &InputInfo::grid))
              .only("model.mixer", {"attention"})
              .only("model.attention.pattern", patterns(&PatternInfo::swin))
              .only("model.norm_kind", {"layer", "rms"}),
          row(HEED_MODEL_KEY(swin.window), Range{1, 1000},
              "Side of a window in patches; every second block shifts its windows by half of this.")
              .only("model.kind", {"swin"}),
          row(HEED_MODEL_KEY(swin.depths), Range{1, 1000},
              "Number of blocks of each stage. Between two stages, 2 x 2 patches are merged into "
              "one.")
              .only("model.kind", {"swin"}),
          row(HEED_MODEL_KEY(front_end.kind),
              "linear: the same matrix projects each row; conv: convolutions with a kernel of 3 "
              "and a stride of 2, each of which halves the number of rows of sound and features, "
              "or both sides of an image's grid of patches.")
              .only("data.input", names_where(input_table(), &InputInfo::convolved))
              .only("model.kind", {"transformer"}),
          row(HEED_MODEL_KEY(front_end.layers), Range{1, 8}, "Number of successive convolutions.")
              .only("model.front_end.kind", {"conv"}),
          row(HEED_MODEL_KEY(d_model), Range{1, 65'536},
              "Width of the model, a multiple of heads."),
          row(HEED_MODEL_KEY(heads), Range{1, 1024}, "Number of attention heads."),
          row(HEED_MODEL_KEY(d_ff), Range{1, million},
              "Width of the hidden layer of the feed-forward network."),
          row("model.layers.encoder", HEED_MEMBER(model->encoder_layers), layers,
              "Number of encoder layers."),
          row("model.layers.decoder", HEED_MEMBER(model->decoder_layers), layers,
              "Number of decoder layers."),
          row(HEED_MODEL_KEY(dropout.residual), dropout,
              "Rate for embeddings, for the output of each sublayer and for the pooled row of a "
              "sequence."),
          row(HEED_MODEL_KEY(dropout.attention), dropout, "Rate for attention weights."),
          row(HEED_MODEL_KEY(dropout.activation), dropout,
              "Rate for the hidden layer of the feed-forward network."),
          row(HEED_MODEL_KEY(activation),
              "Activation function of the feed-forward network. swiglu, geglu and geglu_tanh multiply "
              "half of the first layer's outputs by silu, gelu or gelu_tanh of the other half: that "
              "layer then has 2 d_ff outputs."),
          row(HEED_MODEL_KEY(mixer),
              "What mixes the tokens of a sequence in each block: self-attention, a recurrent "
              "layer (bidirectional in an encoder), a gated convolution, or a layer that a plugin "
              "registers."),
          row(HEED_MODEL_KEY(conv_width), Range{1, 1000},
              "Width of the convolution, in tokens: the token itself and those before it; in an "
              "encoder, those around it.")
              .only("model.mixer", {"conv"}),
          row(HEED_MODEL_KEY(positions),
              "How positions are encoded. " + meanings_of(position_schemes()) + "."),
          row(HEED_MODEL_KEY(rotary_pairs),
              "Pairs of a head's values that are rotated. halves: i and i + size/2; adjacent: 2 i "
              "and 2 i + 1."),
          row(HEED_MODEL_KEY(rotary_base), {1.0, 1e12, false, true},
              "Pair i of a head is rotated by the angle position · base^(-2 i / size)."),
          row(HEED_MODEL_KEY(shaw_distance), Range{1, million},
              "Maximum distance with a separate key; greater distances share the key of this "
              "distance."),
          row(HEED_MODEL_KEY(t5_buckets), Range{4, million},
              "Number of buckets of distances, a multiple of 4. In an encoder, each direction has "
              "half of them."),
          row(HEED_MODEL_KEY(t5_distance), Range{1, billion},
              "All distances from this one on share a bucket."),
          row(HEED_MODEL_KEY(attention.pattern),
              "Which tokens of its sequence a token attends to. " + meanings_of(pattern_table) +
                  ".")
              .only("model.mixer", {"attention"}),
          row(HEED_MODEL_KEY(attention.window), Range{1, billion},
              "Number of tokens in the window: the token itself and those before it. In an "
              "encoder, the window also includes as many tokens after it as before it."),
          row(HEED_MODEL_KEY(attention.block), Range{1, million}, "Number of tokens in a block."),
          row(HEED_MODEL_KEY(attention.global_blocks), Range{0, million},
              "Number of global blocks, at the beginning of the sequence: their tokens attend to "
              "every token, and every token attends to them."),
          row(HEED_MODEL_KEY(attention.side_blocks), Range{0, million},
              "Number of blocks that a token attends to on each side of its block."),
          row(HEED_MODEL_KEY(attention.random_blocks), Range{0, million},
              "Number of random blocks that a token attends to. They are drawn with replacement "
              "and are the same in all sequences of equal length."),
          row(HEED_MODEL_KEY(attention.top_k), Range{1, billion},
              "Number of tokens that a token attends to: those with the largest scores."),
          row(HEED_MODEL_KEY(attention.kv_heads), Range{0, 1024},
              "Number of heads of keys and values, a divisor of heads; groups of query heads share "
              "them. 1: multi-query attention; 0: as many as heads."),
          row(HEED_MODEL_KEY(attention.scale), {0.0, 1e6, false, true},
              "Factor of the products of queries and keys. sqrt: 1 over the square root of a "
              "head's width; none: 1."),
          row(HEED_MODEL_KEY(attention.map),
              "How scores become weights. sum: each score divided by the sum of all; hard: 1 for "
              "the largest score and 0 for the others, with softmax's gradient.")
              .only("model.attention.pattern", patterns(&PatternInfo::all_maps)),
          row(HEED_MODEL_KEY(block),
              "serial: attention, then feed-forward, each with its norm and residual; parallel: "
              "both read the same norm, and their sum is added."),
          row(HEED_MODEL_KEY(residual),
              "Add the output of a sublayer to its input; false: the output replaces the input."),
          row(HEED_MODEL_KEY(norm),
              "pre: a norm before each sublayer, inside the residual branch; post: after the "
              "residual sum; none: no norms."),
          row(HEED_MODEL_KEY(final_norm),
              "A norm after the last layer of encoder and decoder. The post-norm models of Vaswani "
              "et al., BERT and Marian have none.")
              .only("model.norm", {"post"}),
          row(HEED_MODEL_KEY(norm_kind),
              "Layer norm or RMS norm of each row; or batch norm of each column over the rows of a "
              "batch.")
              .only("model.norm", {"pre", "post"}),
          row(HEED_MODEL_KEY(norm_eps), {0.0, 1.0, false, true},
              "Added to the variance (rms: to the mean square) of a norm.")
              .only("model.norm", {"pre", "post"}),
          row(HEED_MODEL_KEY(bias),
              "The linear layers of attention and feed-forward have biases. T5 v1.1 and Llama have "
              "none."),
          row(HEED_MODEL_KEY(embedding_norm),
              "A norm after the sum of embeddings and positions, as in BERT.")
              .only("model.norm", {"pre", "post"})
              .only("model.norm_kind", {"layer", "rms"})
              .only("model.kind", {"transformer"}),
          row(HEED_MODEL_KEY(tie_embeddings),
              "Source embedding, target embedding and output projection share one matrix where "
              "they share a vocabulary."),
          row(HEED_MODEL_KEY(tie_output),
              "With tie_embeddings, the output projection shares the matrix too. false: as in T5 "
              "v1.1, only the embeddings share it.")
              .only("model.tie_embeddings", {"true"}),
          row(HEED_MODEL_KEY(scale_embeddings),
              "Multiply embeddings by the square root of d_model."),
          row(HEED_MODEL_KEY(output_bias),
              "The projection to the vocabulary has a bias. auto: if it does not share the matrix of "
              "the embeddings, and `bias` is true."),
          row(HEED_MODEL_KEY(head_transform),
              "A linear layer, the activation and a norm before the projection to the vocabulary, as "
              "in BERT.")
              .only("model.activation", ungated)
              .only("model.norm", {"pre", "post"})
              .only("model.norm_kind", {"layer", "rms"}),
          row(HEED_MODEL_KEY(init), "How weights are initialised."),
          row(HEED_MODEL_KEY(init_std), positive, "Standard deviation of initial weights.")
              .only("model.init", {"normal"}),
          row(HEED_MODEL_KEY(segments), Range{1, 16},
              "Number of segments. Each has a learned vector, which distinguishes the texts of a "
              "line (<s> A </s> B </s>); 1: no such vectors."),
          row(HEED_MODEL_KEY(pool),
              "What represents an input. first: its first row (that of <s> or of the class "
              "token); mean: the mean of its rows."),
          row(HEED_MODEL_KEY(context), Range{1, million},
              "Number of tokens in a window of text, which the model reads at once."),
          row(HEED_MODEL_KEY(memory), Range{0, million},
              "Number of tokens before the window that self-attention also reads, as stored keys "
              "and values (Transformer-XL); each batch continues the previous one.")
              .only("model.mixer", {"attention"})
              .only("model.attention.pattern", patterns(&PatternInfo::memory)),
          row("model.init_from", HEED_MEMBER(train.init_from),
              "A run whose tokenizer this run uses, and whose weights initialise all tensors with "
              "the same names. If the two runs have different labels, the output projection is "
              "initialised as in a new run. A folder of the library transformers is first imported.")
              .in_words("a run folder"),
          row("model.freeze", HEED_MEMBER(train.freeze),
              "Names of the parameters that training does not change (heed show lists the names); "
              "* matches any characters, as in encoder.layers.0.*.")
              .in_words("a name or a list of names"),
          row(HEED_MODEL_KEY(max_positions), Range{1, million},
              "Maximum length of a sequence, in tokens or in rows of a source that is not text."),
      });
  restrict_own_keys(table, "model.", "model.positions", position_schemes());
  restrict_own_keys(table, "model.", "model.attention.pattern", pattern_table);
  find(table, "model.kind").resettable = false;  // a different kind is a different model
  const auto schemes = [](const auto& holds) { return names_where(position_schemes(), holds); };
  Field& positions = find(table, "model.positions");
  positions.conditions.push_back(
      {"model.mixer", {"attention"}, "", schemes(&PositionScheme::by_distance)});
  positions.conditions.push_back({"model.attention.pattern", patterns(&PatternInfo::scores), "",
                                  schemes(&PositionScheme::adds_to_scores)});
  // Absolute positions count from the window's first token, so the tokens of the memory would have
  // the same positions as those of the window.
  find(table, "model.memory").only("model.positions", schemes([](const PositionScheme& scheme) {
                                     return scheme.vectors == nullptr;
                                   }));
  Field& scale = find(table, "model.attention.scale");
  scale.choices = {"sqrt", "none"};
  scale.get = [](const Config& config) -> nlohmann::json {
    const double x = config.model->attention.scale;
    return x == 0 ? nlohmann::json("sqrt") : x == 1 ? nlohmann::json("none") : number_json(x);
  };
  scale.set = [](Config& config, const nlohmann::json& json) {
    config.model->attention.scale = json == "sqrt" ? 0 : json == "none" ? 1 : json.get<double>();
  };
}

}  // namespace heed
