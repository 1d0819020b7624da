"""Faults in what becomes of a trained model: train/decode, train/metrics, train/views and train/exchange."""
from . import fault

fault("BLEU: the brevity penalty uses the inverse ratio", "train/metrics/bleu.cpp",
      "std::exp(1.0 - reference / hypothesis)",
      "std::exp(1.0 - hypothesis / reference)",
      "train:bleu")

fault("beam: the length does not include the end token", "train/decode/search.cpp",
      "done.hypothesis.tokens.size()) + (ended ? 1 : 0);",
      "done.hypothesis.tokens.size());",
      "training:searching")

fault("sampling: all tokens use the same random number", "train/decode/search.cpp",
      "static_cast<std::uint32_t>(live.hypothesis.tokens.size())});",
      "static_cast<std::uint32_t>(live.sentence)});",
      "training:sampling_tokens")

fault("sampling: every window of a text uses the same random numbers", "train/decode/search.cpp",
      "{(number << 20) + static_cast<std::int64_t>(text.size())},",
      "{number << 20},",
      "training:searching_with_models")

fault("sampling: the random numbers depend on the order by length", "train/decode/search.cpp",
      "keys.push_back(request.numbers.empty() ? place : request.numbers[place]);",
      "keys.push_back(request.numbers.empty() ? i : request.numbers[i]);",
      "training:searching_with_models")

fault("prefix: a sentence begins with its neighbour's prefix", "train/decode/search.cpp",
      "prefixes.push_back(request.prefixes[place]);",
      "prefixes.push_back(request.prefixes[i]);",
      "training:searching_with_models", "commands")

fault("n-best: the worst hypothesis is first", "train/decode/search.cpp",
      "std::greater<>(), &Hypothesis::score",
      "std::less<>(), &Hypothesis::score",
      "training:searching")

fault("beam: another hypothesis replaces a finished one", "train/decode/search.cpp",
      "const std::int64_t places = beam - static_cast<std::int64_t>(finished_[sentence].size());",
      "const std::int64_t places = beam;",
      "training:searching")

fault("text continuation: the window slides one token early", "train/decode/search.cpp",
      "static_cast<std::int64_t>(text.size()) > context) {",
      "static_cast<std::int64_t>(text.size()) >= context) {",
      "training:searching_with_models")

fault("sampling: the last token kept gets the mass excluded by top_p", "train/decode/search.cpp",
      "double at = random.uniform() * kept;",
      "double at = random.uniform() * all;",
      "training:sampling_tokens")

fault("chrF: n-grams longer than the reference are counted", "train/metrics/chrf.cpp",
      "  if (counts.reference == 0) return counts;\n",
      "",
      "train:chrf")

fault("BLEU: Bopomofo is not a separate token", "train/metrics/bleu.cpp",
      "{0x3100, 0x312F}, ",
      "",
      "train:bleu")

fault("bootstrap: the interval contains 90 % of the values", "train/views/report/runs/bootstrap.cpp",
      "values.size() / 40;",
      "values.size() / 20;",
      "train:bootstrap")

fault("rollout: the matrices are multiplied from the first layer to the last",
      "train/views/report/attention/maps.cpp",
      "step.row(i)[k] * all.row(k)[j]",
      "all.row(i)[k] * step.row(k)[j]",
      "training:attention_views")

fault("labels: the record of precision contains the recall", "train/metrics/confusion.cpp",
      "{\"precision\", c.precision()}",
      "{\"precision\", c.recall()}",
      "train:confusion")

fault("report: the confusion map is transposed", "train/views/report/runs/output_charts.cpp",
      "const double count = number_of(predicted, name);",
      "const double count = number_of(predicted_for(record, name), label);",
      "train:output_charts")

fault("chart: the axis of bars does not begin at 0", "train/views/draw/chart.cpp",
      "std::array{0.0, bar.y}",
      "std::array{bar.y, bar.y}",
      "train:chart")

fault("report: scores by length have five groups", "train/views/report/runs/output_charts.cpp",
      "(order.size() + 5) / 6",
      "(order.size() + 4) / 5",
      "train:output_charts")

fault("n-best: neighbouring sentences draw the same samples", "train/decode/search.cpp",
      "key += k << 48;",
      "key += k;",
      "training:searching_with_models")

fault("outputs: those that end with </s> are counted as cut", "train/decode/search.cpp",
      "done.hypothesis.cut = !ended;",
      "done.hypothesis.cut = ended;",
      "commands_belong")

fault("text continuation: min_length begins again in each window", "train/decode/search.cpp",
      "    remaining.min_length -= static_cast<std::int64_t>(text.size() - prompt.size());\n",
      "",
      "training:searching_with_models")

fault("labels: macro F1 omits labels that only outputs contain", "train/metrics/confusion.cpp",
      "for (const Class& c : all) sum += c.f1();\n  return all.empty() ? 0 : sum / static_cast<double>(all.size());",
      "double n = 0;\n  for (const Class& c : all) {\n    sum += c.f1();\n    n += c.occurrences > 0 ? 1 : 0;\n  }\n"
      "  return n == 0 ? 0 : sum / n;",
      "train:confusion")

fault("plots: the axes of a map are named the wrong way round", "train/views/report/plots.cpp",
      "height + 14, columns, height / 2, rows,",
      "height + 14, rows, height / 2, columns,",
      "train:plots")

fault("profile: the calls are those of all steps", "train/views/report/step_profile.cpp",
      "t.calls / std::max<std::int64_t>(added_, 1)",
      "t.calls",
      "train:counting")

fault("the random keys of sampled translations come from the wrong lines: a line's sample depends on the lengths of its neighbours", "train/decode/search.cpp",
      "keys.push_back(request.numbers.empty() ? place : request.numbers[place]);",
      "keys.push_back(request.numbers.empty() ? place : request.numbers[i]);",
      "train", "commands_tasks")

fault("export to Hugging Face exchanges height and width of images that are not square", "train/exchange/huggingface/image.cpp",
      "Json({image.height, image.width})",
      "Json({image.width, image.height})",
      "commands_export", "train")

fault("the report's expected calibration error weights all ten bins equally instead of by their samples", "train/views/report/runs/output_charts.cpp",
      "error += std::abs(g.right - g.probability) / static_cast<double>(outputs.size());",
      "error += std::abs(g.right - g.probability) / g.count / groups;",
      "train", "commands_tasks")

fault("q8_0 of a GGUF file is chosen by the number of values, not by the length of rows", "train/exchange/gguf/gguf_file.cpp",
      "  return type == GgufType::q8_0 && !shape.empty() && shape.back() % gguf_block == 0",
      "  return type == GgufType::q8_0 && !shape.empty() && elements % gguf_block == 0",
      "train")

fault("cross-attention is exported to CTranslate2 without its scale", "train/exchange/ctranslate2/ctranslate2.cpp",
      "      if (o_.attention.scale != 0)\n",
      "      if (o_.attention.scale != 0 && attention == self)\n",
      "train")

fault("for orders for which the reference line is too short, the n-grams of the output line are counted in the precision", "train/metrics/chrf.cpp",
      "  if (counts.reference == 0) return counts;\n"
      "  counts.hypothesis = static_cast<std::int64_t>(ngrams(hypothesis));\n",
      "  counts.hypothesis = static_cast<std::int64_t>(ngrams(hypothesis));\n"
      "  if (counts.reference == 0) return counts;\n",
      "train:chrf")

fault("on import, rope_theta inside rope_parameters is checked but not used; the base stays 10,000 unless the file also has the old key", "train/exchange/huggingface/gpt.cpp",
      "      base = value;\n",
      "",
      "train")

fault("the interval that a report calls 95 % leaves out 5 % of the bootstrap values at each end", "train/views/report/runs/bootstrap.cpp",
      "  const std::size_t cut = values.size() / 40;  // 2.5 % at each end\n",
      "  const std::size_t cut = values.size() / 20;  // 5 % of the values\n",
      "train")

fault("the repetition penalty is applied once for each occurrence of a token in the output instead of once for each token", "train/decode/search.cpp",
      """  std::vector<std::int32_t> tokens = so_far.tokens;
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const std::int32_t t : tokens)
""",
      """  for (const std::int32_t t : so_far.tokens)
""",
      "training:searching")

fault("the export of a BERT with segments does not scale the segment vectors, although heed multiplies them by the square root of d_model like the words", "train/exchange/huggingface/bert.cpp",
      """    segments.factor = factor;
""",
      "",
      "train:import_folders")

fault("the p-value of the paired bootstrap compares the differences themselves, not their deviation from the mean, with the observed difference", "train/views/report/runs/bootstrap.cpp",
      """  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += (second[i] - first[i]) / static_cast<double>(n);
  std::size_t as_large = 0;
  for (std::size_t i = 0; i < n; ++i)
    as_large += std::abs(second[i] - first[i] - mean) >= std::abs(difference) ? 1 : 0;
""",
      """  std::size_t as_large = 0;
  for (std::size_t i = 0; i < n; ++i)
    as_large += std::abs(second[i] - first[i]) >= std::abs(difference) ? 1 : 0;
""",
      "train:bootstrap")

fault("ROUGE-1 and ROUGE-2 count every occurrence of a matching n-gram of the output, however rarely the reference contains it", "train/metrics/rouge.cpp",
      """common += std::min(count, found->second);
""",
      """common += count;
""",
      "train:rouge")

fault("sampling with top_p leaves out the token with which the sum of probabilities reaches top_p", "train/decode/search.cpp",
      """(n == 0 || kept < options_.top_p * all)) kept += weight[n++];
""",
      """(n == 0 || kept + weight[n] <= options_.top_p * all)) kept += weight[n++];
""",
      "training:sampling_tokens")

fault("the name gated-gelu of T5's feed_forward_proj means the exact GELU instead of the tanh formula, on import and on export", "train/exchange/huggingface/t5.cpp",
      """const NamePairs t5_activations{{"geglu_tanh", "gated-gelu"},
""",
      """const NamePairs t5_activations{{"geglu", "gated-gelu"},
""",
      "train")

fault("export and import of Llama exchange the names of the projections of keys and values, so a round trip still yields the same bytes", "train/exchange/huggingface/gpt.cpp",
      ".self = {\"self_attn.q_proj\", \"self_attn.k_proj\", \"self_attn.v_proj\", \"self_attn.o_proj\"},",
      ".self = {\"self_attn.q_proj\", \"self_attn.v_proj\", \"self_attn.k_proj\", \"self_attn.o_proj\"},",
      "train")

fault("export and import of T5 exchange the gate and the other half of the gated feed-forward layer", "train/exchange/huggingface/t5.cpp",
      """                   .gate = dense + "wi_0",
                   .linear1 = dense + (gated ? "wi_1" : "wi"),""",
      """                   .gate = dense + "wi_1",
                   .linear1 = dense + (gated ? "wi_0" : "wi"),""",
      "train")

fault("export and import of Marian and Blenderbot exchange the norms of self-attention and cross-attention", "train/exchange/huggingface/bart.cpp",
      "names.cross_norm = \"encoder_attn_layer_norm\";",
      """names.norm1 = "encoder_attn_layer_norm";
      names.cross_norm = "self_attn_layer_norm";""",
      "train")

fault("a GGUF file always says that the base of the rotary positions is 10,000", "train/exchange/gguf/gguf.cpp",
      "add(\"rope.freq_base\", static_cast<float>(o.rotary_base));",
      "add(\"rope.freq_base\", 10000.0F);",
      "train")

fault("a GGUF file says that the feed-forward layer has four times the width of the model", "train/exchange/gguf/gguf.cpp",
      "add(\"feed_forward_length\", number(o.d_ff));",
      "add(\"feed_forward_length\", number(4 * o.d_model));",
      "train")

fault("the embeddings of a GGUF file are not scaled, although heed multiplies them by the square root of d_model", "train/exchange/gguf/gguf.cpp",
      """            .own = "embedding.weight",
            .factor = source.embedding_factor()});""",
      "            .own = \"embedding.weight\"});",
      "train")

fault("a language model exported to CTranslate2 has a table of max_positions instead of context rows for computed positions", "train/exchange/ctranslate2/ctranslate2.cpp",
      "pairs ? o.max_positions : o.context);",
      "o.max_positions);",
      "train")

fault("CTranslate2 is not told the base of the rotary positions and uses 10,000", "train/exchange/ctranslate2/ctranslate2.cpp",
      """      attribute(self + "rotary_base", static_cast<float>(o_.rotary_base));
""",
      "",
      "train")

fault("the farthest distance of T5's relative positions is exported to CTranslate2 as the number of buckets", "train/exchange/ctranslate2/ctranslate2.cpp",
      "static_cast<std::int32_t>(o_.t5_distance));",
      "static_cast<std::int32_t>(o_.t5_buckets));",
      "train")

fault("the positions of a Marian model whose files have none get frequencies in which sines and cosines alternate", "train/exchange/import_weights.cpp",
      "const std::int64_t i = c < sines ? c : c - sines;",
      "const std::int64_t i = c / 2;",
      "train")

fault("the layer norms of an ONNX graph have the default epsilon, 1e-5, whatever model.norm_eps is", "train/exchange/onnx/builder.cpp",
      "{{\"axis\", std::int64_t{-1}}, {\"epsilon\", eps}});",
      "{{\"axis\", std::int64_t{-1}}});",
      "train")

fault("in an ONNX graph, the scores are divided by the square root of the head size whatever model.attention.scale is", "train/exchange/onnx/layers.cpp",
      """  const double scale =
      o_.attention.scale != 0 ? o_.attention.scale : 1 / std::sqrt(static_cast<double>(size_));
  q = b_.mul""",
      """  const double scale = 1 / std::sqrt(static_cast<double>(size_));
  q = b_.mul""",
      "train")

fault("top_p counts the probabilities before the temperature", "train/decode/search.cpp",
      """  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  double kept = 0;
  std::size_t n = 0;
  while (n < weight.size() && (n == 0 || kept < options_.top_p * all)) kept += weight[n++];
""",
      """  const auto plain = [&](std::int32_t t) { return std::exp(double{z[t]} - double{z[order[0]]}); };
  double all = 0, share = 0, kept = 0;
  for (const std::int32_t t : order) all += plain(t);
  std::size_t n = 0;
  while (n < weight.size() && (n == 0 || share < options_.top_p * all)) {
    share += plain(order[n]);
    kept += weight[n++];
  }
""",
      "training")
