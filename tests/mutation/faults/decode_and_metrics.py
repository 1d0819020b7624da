"""Faults in train/decode and train/metrics."""
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

fault("labels: the record of precision contains the recall", "train/metrics/confusion.cpp",
      "{\"precision\", c.precision()}",
      "{\"precision\", c.recall()}",
      "train:confusion")

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

fault("the random keys of sampled translations come from the wrong lines: a line's sample depends on the lengths of its neighbours", "train/decode/search.cpp",
      "keys.push_back(request.numbers.empty() ? place : request.numbers[place]);",
      "keys.push_back(request.numbers.empty() ? place : request.numbers[i]);",
      "training:searching_with_models")

fault("for orders for which the reference line is too short, the n-grams of the output line are counted in the precision", "train/metrics/chrf.cpp",
      "  if (counts.reference == 0) return counts;\n"
      "  counts.hypothesis = static_cast<std::int64_t>(ngrams(hypothesis));\n",
      "  counts.hypothesis = static_cast<std::int64_t>(ngrams(hypothesis));\n"
      "  if (counts.reference == 0) return counts;\n",
      "train:chrf")

fault("the repetition penalty is applied once for each occurrence of a token in the output instead of once for each token", "train/decode/search.cpp",
      """  std::vector<std::int32_t> tokens = so_far.tokens;
  tokens.insert(tokens.end(), earlier_.begin(), earlier_.end());
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const std::int32_t t : tokens)
""",
      """  for (const std::int32_t t : so_far.tokens)
""",
      "training:searching")

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
      "training:sampling_tokens")

fault("n-best continuation: the random numbers of an empty prompt are not those of continue_text", "train/decode/search.cpp",
      "{(number << 20) + std::ssize(prompt)}",
      "{(number << 20) + std::ssize(fed)}",
      "training:searching_with_models")

fault("n-best continuation: an empty prompt is replaced by <s> instead of </s>", "train/decode/search.cpp",
      """  if (fed.empty()) fed.push_back(frozen.special.eos);
  const std::int64_t context""",
      """  if (fed.empty()) fed.push_back(frozen.special.bos);
  const std::int64_t context""",
      "training:searching_with_models")

fault("text continuation: an empty prompt is replaced by <s> instead of </s>", "train/decode/search.cpp",
      """    if (fed.empty()) fed.push_back(frozen.special.eos);
    const std::int64_t room""",
      """    if (fed.empty()) fed.push_back(frozen.special.bos);
    const std::int64_t room""",
      "training:searching_with_models")

fault("n-best continuation: a prompt and continuation that exactly fill the context are refused", "train/decode/search.cpp",
      "std::ssize(fed) + limit > context + 1)",
      "std::ssize(fed) + limit > context)",
      "training:searching_with_models")

fault("sampling: the log-probability of a sampled token is that among the tokens that top_k and top_p keep, at the temperature", "train/decode/search.cpp",
      """  into.push_back({live.hypothesis.log_prob + double{z[token]} -
                      double{kernels::log_sum_exp_row(z, logits.cols())},
                  static_cast<std::int32_t>(row), token});""",
      """  into.push_back({live.hypothesis.log_prob + std::log(weight[chosen] / kept),
                  static_cast<std::int32_t>(row), token});""",
      "training:sampling_tokens")

fault("beam search reports tokens of hypotheses that it may still drop", "train/decode/search.cpp",
      "if (on_token_ && beam == 1 && !ended)",
      "if (on_token_ && !ended)",
      "training:searching")

fault("sampling reports its tokens only if decode.beam is 1", "train/decode/search.cpp",
      "if (on_token_ && beam == 1 && !ended)",
      "if (on_token_ && options_.beam == 1 && !ended)",
      "training:searching")

fault("decode.batch_sequences limits the lines of a batch instead of the hypotheses", "train/decode/search.cpp",
      "std::max<std::int64_t>(options.batch_sequences / beam, 1)",
      "std::max<std::int64_t>(options.batch_sequences, 1)",
      "training:searching_with_models")

fault("batches of a beam search have at least 32 lines instead of 32 hypotheses, so few lines keep one thread busy", "train/decode/search.cpp",
      "std::max<std::int64_t>(32 / beam, 1)",
      "32",
      "training:searching_with_models")

fault("decode.beam, which has no effect on sampling, makes the batches of sampling smaller", "train/decode/search.cpp",
      """  const std::int64_t beam = options.sample ? 1 : std::max<std::int64_t>(options.beam, 1);
  const std::int64_t min_lines""",
      """  const std::int64_t beam = std::max<std::int64_t>(options.beam, 1);
  const std::int64_t min_lines""",
      "training:searching_with_models")

fault("metrics: U+001F is no white space, unlike in Python and sacreBLEU", "train/metrics/words.cpp",
      "first <= 0x1F)",
      "first <= 0x1E)",
      "train:bleu")

fault("the table of labels is aligned by bytes instead of characters", "train/metrics/confusion.cpp",
      "at += std::max<std::size_t>(utf8_length(text, at), 1);",
      "++at;",
      "train:confusion")

fault("the confusion matrix of 12 labels is not printed", "train/metrics/confusion.cpp",
      "if (all.size() > max_columns) return lines;",
      "if (all.size() >= max_columns) return lines;",
      "train:confusion")
