"""Faults in train/exchange."""
from . import fault

fault("export to Hugging Face exchanges height and width of images that are not square", "train/exchange/huggingface/image.cpp",
      "Json({image.height, image.width})",
      "Json({image.width, image.height})",
      "commands_export", "train")

fault("q8_0 of a GGUF file is chosen by the number of values, not by the length of rows", "train/exchange/gguf/gguf_file.cpp",
      "  return type == GgufType::q8_0 && !shape.empty() && shape.back() % gguf_block == 0",
      "  return type == GgufType::q8_0 && !shape.empty() && elements % gguf_block == 0",
      "train:gguf")

fault("cross-attention is exported to CTranslate2 without its scale", "train/exchange/ctranslate2/ctranslate2.cpp",
      "      if (o_.attention.scale != 0)\n",
      "      if (o_.attention.scale != 0 && attention == self)\n",
      "train:ctranslate2")

fault("on import, rope_theta inside rope_parameters is checked but not used; the base stays 10,000 unless the file also has the old key", "train/exchange/huggingface/gpt.cpp",
      "      base = value;\n",
      "",
      "train:import_folders")

fault("the export of a BERT with segments does not scale the segment vectors, although heed multiplies them by the square root of d_model like the words", "train/exchange/huggingface/bert.cpp",
      """    segments.factor = factor;
""",
      "",
      "train:import_folders")

fault("the name gated-gelu of T5's feed_forward_proj means the exact GELU instead of the tanh formula, on import and on export", "train/exchange/huggingface/t5.cpp",
      """const NamePairs t5_activations{{"geglu_tanh", "gated-gelu"},
""",
      """const NamePairs t5_activations{{"geglu", "gated-gelu"},
""",
      "train:import_folders")

fault("export and import of Llama exchange the names of the projections of keys and values, so a round trip still yields the same bytes", "train/exchange/huggingface/gpt.cpp",
      ".self = {\"self_attn.q_proj\", \"self_attn.k_proj\", \"self_attn.v_proj\", \"self_attn.o_proj\"},",
      ".self = {\"self_attn.q_proj\", \"self_attn.v_proj\", \"self_attn.k_proj\", \"self_attn.o_proj\"},",
      "train:exchange")

fault("export and import of T5 exchange the gate and the other half of the gated feed-forward layer", "train/exchange/huggingface/t5.cpp",
      """                   .gate = dense + "wi_0",
                   .linear1 = dense + (gated ? "wi_1" : "wi"),""",
      """                   .gate = dense + "wi_1",
                   .linear1 = dense + (gated ? "wi_0" : "wi"),""",
      "train:exchange")

fault("export and import of Marian and Blenderbot exchange the norms of self-attention and cross-attention", "train/exchange/huggingface/bart.cpp",
      "names.cross_norm = \"encoder_attn_layer_norm\";",
      """names.norm1 = "encoder_attn_layer_norm";
      names.cross_norm = "self_attn_layer_norm";""",
      "train:exchange")

fault("a GGUF file always says that the base of the rotary positions is 10,000", "train/exchange/gguf/gguf.cpp",
      "add(\"rope.freq_base\", static_cast<float>(o.rotary_base));",
      "add(\"rope.freq_base\", 10000.0F);",
      "train:gguf")

fault("a GGUF file says that the feed-forward layer has four times the width of the model", "train/exchange/gguf/gguf.cpp",
      "add(\"feed_forward_length\", number(o.d_ff));",
      "add(\"feed_forward_length\", number(4 * o.d_model));",
      "train:gguf")

fault("the embeddings of a GGUF file are not scaled, although heed multiplies them by the square root of d_model", "train/exchange/gguf/gguf.cpp",
      """            .own = "embedding.weight",
            .factor = source.embedding_factor()});""",
      "            .own = \"embedding.weight\"});",
      "train:gguf")

fault("a language model exported to CTranslate2 has a table of max_positions instead of context rows for computed positions", "train/exchange/ctranslate2/ctranslate2.cpp",
      "pairs ? o.max_positions : o.context);",
      "o.max_positions);",
      "train:ctranslate2")

fault("CTranslate2 is not told the base of the rotary positions and uses 10,000", "train/exchange/ctranslate2/ctranslate2.cpp",
      """      attribute(self + "rotary_base", static_cast<float>(o_.rotary_base));
""",
      "",
      "train:ctranslate2")

fault("the farthest distance of T5's relative positions is exported to CTranslate2 as the number of buckets", "train/exchange/ctranslate2/ctranslate2.cpp",
      "static_cast<std::int32_t>(o_.t5_distance));",
      "static_cast<std::int32_t>(o_.t5_buckets));",
      "train:ctranslate2")

fault("the positions of a Marian model whose files have none get frequencies in which sines and cosines alternate", "train/exchange/import_weights.cpp",
      "const std::int64_t i = c < sines ? c : c - sines;",
      "const std::int64_t i = c / 2;",
      "train:import_folders")

fault("the layer norms of an ONNX graph have the default epsilon, 1e-5, whatever model.norm_eps is", "train/exchange/onnx/builder.cpp",
      "{{\"axis\", std::int64_t{-1}}, {\"epsilon\", eps}});",
      "{{\"axis\", std::int64_t{-1}}});",
      "train:onnx")

fault("in an ONNX graph, the scores are divided by the square root of the head size whatever model.attention.scale is", "train/exchange/onnx/layers.cpp",
      """  const double scale =
      o_.attention.scale != 0 ? o_.attention.scale : 1 / std::sqrt(static_cast<double>(size_));
  q = b_.mul""",
      """  const double scale = 1 / std::sqrt(static_cast<double>(size_));
  q = b_.mul""",
      "train:onnx")

fault("GGUF: the gate and the other half of the feed-forward layer have each other's names", "train/exchange/gguf/gguf.cpp",
      """                   .gate = "ffn_gate",
                   .linear1 = "ffn_up",""",
      """                   .gate = "ffn_up",
                   .linear1 = "ffn_gate",""",
      "train:gguf")

fault("GGUF: the norms of attention and of the feed-forward layer have each other's names", "train/exchange/gguf/gguf.cpp",
      """  BlockNames names{.norm1 = "attn_norm",
                   .self = {.q = "attn_q", .k = "attn_k", .v = "attn_v", .out = "attn_output"},
                   .last_norm = "ffn_norm",""",
      """  BlockNames names{.norm1 = "ffn_norm",
                   .self = {.q = "attn_q", .k = "attn_k", .v = "attn_v", .out = "attn_output"},
                   .last_norm = "attn_norm",""",
      "train:gguf")

fault("GGUF: computed positions have max_positions rows instead of those of the context", "train/exchange/gguf/gguf.cpp",
      "list.positions(gguf_positions, \"positions.weight\", o.context);",
      "list.positions(gguf_positions, \"positions.weight\", o.max_positions);",
      "train:gguf")

fault("GGUF: a file of q8_0 says that its tensors are float16", "train/exchange/gguf/gguf.cpp",
      "                                            : 7U);",
      "                                            : 1U);",
      "train:gguf")

fault("CTranslate2 computes gelu by the tanh formula", "train/exchange/ctranslate2/ctranslate2.cpp",
      "{\"gelu\", 3}",
      "{\"gelu\", 1}",
      "train:ctranslate2")

fault("CTranslate2 counts the positions of ALiBi from the first key", "train/exchange/ctranslate2/ctranslate2.cpp",
      "attribute(\"alibi_use_positive_positions\", std::int8_t{0});",
      "attribute(\"alibi_use_positive_positions\", std::int8_t{1});",
      "train:ctranslate2")

fault("CTranslate2 appends a second </s> to each source", "train/exchange/ctranslate2/ctranslate2.cpp",
      "{\"add_source_eos\", false}",
      "{\"add_source_eos\", true}",
      "train:ctranslate2")

fault("CTranslate2: the query and output projections of cross-attention have each other's names", "train/exchange/ctranslate2/ctranslate2.cpp",
      ".q = \"attention/linear_0\", .k = \"attention/linear_1\", .out = \"attention/linear_2\"",
      ".q = \"attention/linear_2\", .k = \"attention/linear_1\", .out = \"attention/linear_0\"",
      "train:ctranslate2")

fault("CTranslate2: the norm of a parallel block has the name of a serial block's, so it is not shared", "train/exchange/ctranslate2/ctranslate2.cpp",
      "parallel ? \"shared_layer_norm\" : \"self_attention/layer_norm\"",
      "\"self_attention/layer_norm\"",
      "train:ctranslate2")

fault("export and import of Marian exchange the numbers of layers of encoder and decoder in config.json", "train/exchange/huggingface/bart.cpp",
      """{"encoder_layers", "model.layers.encoder", marian ? 12 : 2},
                   {"decoder_layers", "model.layers.decoder", marian ? 12 : 24},""",
      """{"encoder_layers", "model.layers.decoder", marian ? 12 : 2},
                   {"decoder_layers", "model.layers.encoder", marian ? 12 : 24},""",
      "train:exchange")

fault("export and import of T5 exchange the number of buckets and the farthest distance in config.json", "train/exchange/huggingface/t5.cpp",
      """{"relative_attention_num_buckets", "model.t5_buckets", 32},
               {"relative_attention_max_distance", "model.t5_distance", 128},""",
      """{"relative_attention_num_buckets", "model.t5_distance", 32},
               {"relative_attention_max_distance", "model.t5_buckets", 128},""",
      "train:exchange")

fault("export and import of BERT exchange the dropout rates of attention and of residual connections in config.json", "train/exchange/huggingface/bert.cpp",
      """{"hidden_dropout_prob", "model.dropout.residual", 0.1},
               {"attention_probs_dropout_prob", "model.dropout.attention", 0.1},""",
      """{"hidden_dropout_prob", "model.dropout.attention", 0.1},
               {"attention_probs_dropout_prob", "model.dropout.residual", 0.1},""",
      "train:exchange")

fault("generation_config.json lacks decode.min_length", "train/exchange/huggingface/model_class.cpp",
      """              {"repetition_penalty", source.config.decode.repetition_penalty},
              {"min_new_tokens", source.config.decode.min_length}});""",
      "              {\"repetition_penalty\", source.config.decode.repetition_penalty}});",
      "train:exchange")

fault("generation_config.json does not exclude <s>, which heed never writes", "train/exchange/huggingface/model_class.cpp",
      "for (const std::int32_t id : {source.ids.unk, source.ids.bos})",
      "for (const std::int32_t id : {source.ids.unk})",
      "train:exchange")

fault("the model card of an export has the metrics of the first test instead of the last", "train/exchange/model_card.cpp",
      "record.at(\"kind\") == \"test\") last = record;",
      """record.at("kind") == "test" && last.is_null())
      last = record;""",
      "train:exchange")

fault("the tokenizer.json of BPE has an <unk> for each unknown character instead of one for a run of them", "train/exchange/tokenizer_json.cpp",
      "{\"fuse_unk\", true}",
      "{\"fuse_unk\", false}",
      "train:exchange")

fault("ONNX: rotary positions pair adjacent values if the model pairs halves, and the other way round", "train/exchange/onnx/layers.h",
      "o_.rotary_pairs == RotaryPairs::halves ? 3 : 4",
      "o_.rotary_pairs == RotaryPairs::halves ? 4 : 3",
      "train:onnx")

fault("ONNX: a window reads one key more than model.attention.window", "train/exchange/onnx/layers.cpp",
      "require(\"Less\", o_.attention.window);",
      "require(\"Less\", o_.attention.window + 1);",
      "train:onnx")

fault("ONNX: ALiBi raises the scores of distant keys", "train/exchange/onnx/layers.cpp",
      "slopes.push_back(-Alibi::slope(head, o_.heads));",
      "slopes.push_back(Alibi::slope(head, o_.heads));",
      "train:onnx")

fault("ONNX: the biases u and v of Transformer-XL are exchanged in the scores of distances", "train/exchange/onnx/layers.cpp",
      "b_.sub(b_.weight(positions + \".v\"), b_.weight(positions + \".u\"))",
      "b_.sub(b_.weight(positions + \".u\"), b_.weight(positions + \".v\"))",
      "train:onnx")

fault("ONNX: the gate of a gated activation is the second half of the layer", "train/exchange/onnx/builder.cpp",
      "return mul(unary(name_of(*gate), halves[0]), halves[1]);",
      "return mul(unary(name_of(*gate), halves[1]), halves[0]);",
      "train:onnx")

fault("ONNX: the positions of a prompt count the padding before it", "train/exchange/onnx/layers.cpp",
      "keys = b_.sub(b_.op(\"CumSum\", {mask, b_.integer(1)}), b_.integer(1));",
      "keys = b_.unsqueeze(b_.range(b_.size(mask, 1)), {0});",
      "train:onnx")

fault("ONNX: cross-attention reads the padding of the source", "train/exchange/onnx/layers.cpp",
      "attend(q, s.encoded(name, layer), plain, s.encoder_visible, \"\")",
      "attend(q, s.encoded(name, layer), plain, \"\", \"\")",
      "train:onnx")

fault("ONNX: the </s> between two texts belongs to the second segment", "train/exchange/onnx/model.cpp",
      "const OnnxValue before = b_.sub(b_.op(\"CumSum\", {ends, b_.integer(1)}), ends);",
      "const OnnxValue before = b_.op(\"CumSum\", {ends, b_.integer(1)});",
      "train:onnx")

fault("ONNX: the mean over the rows of a text includes those of the padding", "train/exchange/onnx/model.cpp",
      "{b_.op(\"Div\", {b_.sum(b_.mul(rows, read), 1), b_.sum(read, 1)}),",
      "{b_.op(\"Div\", {b_.sum(rows, 1), b_.sum(read, 1)}),",
      "train:onnx")

fault("ONNX: convolutions over sound read the rows of the padding", "train/exchange/onnx/model.cpp",
      """      rows = b_.mul(rows, b_.unsqueeze(b_.cast(mask, DType::f32), {2}));
""",
      "",
      "train:onnx")

fault("ONNX: the four patches that Swin merges are in the order of lines instead of columns", "train/exchange/onnx/swin.cpp",
      "{std::pair(0, 0), {1, 0}, {0, 1}, {1, 1}}",
      "{std::pair(0, 0), {0, 1}, {1, 0}, {1, 1}}",
      "train:onnx")

fault("ONNX: the windows of Swin are never shifted", "train/exchange/onnx/swin.cpp",
      "number % 2 == 0 ? 0 : side / 2",
      "0",
      "train:onnx")

fault("ONNX: rows of int8 embeddings are looked up without their scales", "train/exchange/onnx/builder.cpp",
      "return mul(cast(rows, DType::f32), unsqueeze(scales, {-1}));",
      "return cast(rows, DType::f32);",
      "train:onnx")

fault("ONNX: the channels of a patch are stored one after the other instead of interleaved", "train/exchange/onnx/model.cpp",
      "b_.transpose(grid, {0, 2, 4, 3, 5, 1})",
      "b_.transpose(grid, {0, 2, 4, 1, 3, 5})",
      "train:onnx")

fault("the tokenizer.json of an exported encoder gives the second text of a pair the segment of the first", "train/exchange/tokenizer_json.cpp",
      "text(\"B\", 1), token(end, 1)};",
      "text(\"B\", 0), token(end, 0)};",
      "train:exchange")
