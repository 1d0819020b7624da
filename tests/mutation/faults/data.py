"""Faults in data/."""
from . import fault

# ---- data ----------------------------------------------------------------------------------------

fault("order: samples are drawn with replacement", "data/batches/batching.cpp",
      "std::swap(items[i - 1], items[random.below(static_cast<std::uint32_t>(i))]);",
      "items[i - 1] = items[random.below(static_cast<std::uint32_t>(i))];",
      "data:batcher")

fault("order: no sample can keep its place", "data/batches/batching.cpp",
      "random.below(static_cast<std::uint32_t>(i))",
      "random.below(static_cast<std::uint32_t>(i - 1))",
      "data:batcher")

fault("order: every epoch has the same order", "data/batches/batching.cpp",
      ".index = static_cast<std::uint64_t>(epoch),",
      ".index = epoch < 0 ? 1u : 0u,",
      "data:batcher")

fault("windows: the end of the text is omitted", "data/batches/batching.cpp",
      "for (std::int64_t at = shift; at < tokens - 1; at += context)",
      "for (std::int64_t at = shift; at < tokens - context; at += context)",
      "data:batcher")

fault("prefetcher: returns the position before the batch", "data/batches/batcher.cpp",
      "position_ = stream_.position();\n  epochs_",
      "epochs_",
      "data:prefetcher")

fault("vocabulary: decoding yields the end token", "data/tokenizers/vocabulary.cpp",
      "if (id != unk && std::cmp_less(id, first_)) continue;",
      "if (id == bos) continue;",
      "data:vocabulary")

fault("words: further special pieces do not count towards vocab_size", "data/tokenizers/vocabulary.cpp",
      "static_cast<std::int64_t>(special_pieces.size() + options.specials.size());",
      "static_cast<std::int64_t>(special_pieces.size());",
      "data:specials")

fault("sentencepiece: a very long word is cut within a character", "data/tokenizers/sentencepiece.cpp",
      "    while (end > 1 && (static_cast<unsigned char>(line[end]) & 0xC0u) == 0x80u) --end;\n",
      "",
      "data:sentencepiece")

fault("piece model: a value just past the texts is accepted", "data/tokenizers/piece_model.cpp",
      "return (node & 0x7FFFFFFFu) < texts.size(); };",
      "return (node & 0x7FFFFFFFu) <= texts.size(); };",
      "data:piece_model")

fault("corpus: the training text includes the validation text", "data/sources/corpus.cpp",
      "text.resize(train_end);",
      "text.resize(valid_end);",
      "data:corpus")

fault("csv: a doubled quotation mark stays doubled", "data/sources/records.cpp",
      "      cell += '\"';\n      at = end + 2;",
      "      cell += \"\\\"\\\"\";\n      at = end + 2;",
      "data:records")

fault("conll: a token # within a sentence is a comment", "data/sources/records.cpp",
      "if (first && is_comment(line_)) continue;",
      "if (is_comment(line_)) continue;",
      "data:records")

fault("folders: the end of the data contains only the last class", "data/sources/corpus.cpp",
      "std::tie(s.place, s.label, s.file)",
      "std::tie(s.label, s.place, s.file)",
      "data:records")

fault("addition: the summand 0 is never drawn", "data/sources/synthetic.cpp",
      "i == 0 && digits > 1 ? 1 : 0;",
      "i == 0 ? 1 : 0;",
      "data:synthetic")

fault("sentencepiece: the rest of a line after an overlong word is lost", "data/tokenizers/sentencepiece.cpp",
      ": line->find(' ', begin + 1);",
      ": line->size();",
      "data:sentencepiece")

fault("tokenizer: a continuous text of one line is learned as a sentence", "data/tokenizers/tokenizer.cpp",
      "      if (text && !lines.back().ends_with('\\n')) lines.back() += '\\n';\n",
      "",
      "data:sentencepiece")

fault("order: after the first chunk, each batch has one sample", "data/batches/batching.cpp",
      "    chunk.clear();\n    filled = 0;\n",
      "    chunk.clear();\n",
      "data:batcher")

fault("order: a position just past the end of an epoch is accepted", "data/batches/batcher.cpp",
      "position.batch >= static_cast<std::int64_t>(plan(position.epoch).size())",
      "position.batch > static_cast<std::int64_t>(plan(position.epoch).size())",
      "data:batcher")

fault("subword sampling: both sides draw the same random numbers", "data/batches/batching.cpp",
      "data.target_lines[i], draw, 1),",
      "data.target_lines[i], draw, 0),",
      "data:batcher")

fault("subword sampling: every epoch draws the same segmentation", "data/batches/batching.cpp",
      "static_cast<std::uint64_t>(*epoch) << 32",
      "static_cast<std::uint64_t>(*epoch) * 0",
      "data:batcher")

fault("images: a crop is reflected about the middle of the whole image", "data/inputs/images.cpp",
      "x = options_.width - 1 - x;",
      "x = item.width - 1 - x;",
      "data:images")

fault("next sentence: a line that does not follow may be the next line", "data/batches/masking.cpp",
      "random.below(n - 1)) % n;",
      "random.below(n)) % n;",
      "data:masking")

fault("dates: only the 11th ends in -th among the days 11 to 13", "data/sources/generated/dates.cpp",
      "11 <= day && day <= 13;",
      "day == 11;",
      "data:dates")

fault("WordPiece counts bytes instead of characters against max_input_chars_per_word, so long words in other scripts become [UNK]", "data/tokenizers/word_model.cpp",
      "if (character_count(word) > longest_) return unknown();",
      "if (word.size() > longest_) return unknown();",
      "data", "commands_received")

fault("CoNLL files that are not CoNLL-U lose all tokens that begin with a digit and contain a hyphen or a period (dates, decimals)", "data/sources/records.cpp",
      "return fields.size() == 10 && '0' <= first[0] && first[0] <= '9' &&",
      "return '0' <= first[0] && first[0] <= '9' &&",
      "data", "commands_data")

fault("next-sentence pairs labelled \"does not follow\" may contain the following line", "data/batches/masking.cpp",
      "    const std::int64_t next = (sample + 1) % n;\n    return (next + 1 + random.below(n - 1)) % n;\n",
      "    return (sample + 1 + random.below(n - 1)) % n;\n",
      "data:masking")

fault("the padding of stacked features counts in their mean and deviation", "data/inputs/features.cpp",
      "    if (options.normalise) normalise(all[i], options.width);\n"
      "    all[i].resize((all[i].size() + width_ - 1) / width_ * width_);\n",
      "    all[i].resize((all[i].size() + width_ - 1) / width_ * width_);\n"
      "    if (options.normalise) normalise(all[i], options.width);\n",
      "data:features")

fault("the limit of a mixture applies after its temperature", "data/batches/batching.cpp",
      "    auto size = static_cast<double>(part.size);\n"
      "    if (data.mixture.limit > 0) size = std::min(size, static_cast<double>(data.mixture.limit));\n"
      "    rates.push_back(size > 0 ? std::pow(size, 1 / data.mixture.temperature) : 0);\n",
      "    const auto size = static_cast<double>(part.size);\n"
      "    double rate = size > 0 ? std::pow(size, 1 / data.mixture.temperature) : 0;\n"
      "    if (data.mixture.limit > 0) rate = std::min(rate, static_cast<double>(data.mixture.limit));\n"
      "    rates.push_back(rate);\n",
      "data:mixtures")

fault("in a CoNLL file a line that begins with '# ' is taken as a comment also within a sentence, so a token '#' separated from its tag by a space disappears", "data/sources/records.cpp",
      "    if (first && is_comment(line_)) continue;\n",
      "    if (is_comment(line_)) continue;\n",
      "data:records")

fault("the padding byte after a RIFF chunk of odd size is not skipped", "data/sources/sound.cpp",
      "    at = begin + size + size % 2;\n",
      "    at = begin + size;\n",
      "data:features")

fault("the random horizontal place of a training crop is drawn from the spare rows instead of the spare columns", "data/inputs/images.cpp",
      "    if (spare_x > 0) left = below(spare_x + 1);\n",
      "    if (spare_x > 0) left = below(spare_y + 1);\n",
      "data:images")

fault("the first batch of an epoch counts as a continuation of the last batch of the epoch before", "data/batches/batching.cpp",
      "starts.front() > first;",
      "starts.front() >= first;",
      "data:batcher")

fault("an uncased BERT tokenizer whose file leaves strip_accents open keeps the accents", "data/tokenizers/imported.cpp",
      """                if (step.flag("strip_accents", lowers)) changes.emplace_back(without_accents);
""",
      """                if (step.flag("strip_accents", false)) changes.emplace_back(without_accents);
""",
      "data:imported_tokenizers")

fault("generated sounds are assigned to the splits by their whole line instead of by their digits, so the digits of test sounds also occur in training", "data/sources/synthetic.cpp",
      """      const std::uint64_t key = hash(digits);
      return {tones_of(digits, random.below(1U << 30)), std::move(digits), key};
""",
      """      std::string line = tones_of(digits, random.below(1U << 30));
      return {.source = std::move(line), .target = std::move(digits)};
""",
      "data:features")

fault("in span corruption, the numbers of hidden tokens and of spans are rounded down instead of to the nearest whole number", "data/batches/spans.cpp",
      "return std::max<std::int64_t>(1, std::llround(x));",
      "return std::max<std::int64_t>(1, static_cast<std::int64_t>(x));",
      "data:spans")

fault("the horizontal place of the centre crop is computed from the spare rows instead of the spare columns", "data/inputs/images.cpp",
      "std::int64_t top = spare_y / 2, left = spare_x / 2;",
      "std::int64_t top = spare_y / 2, left = spare_y / 2;",
      "data:images")

fault("with data.image.crop, an image is accepted if only one of its sides is long enough; black fills the rest", "data/inputs/images.cpp",
      "enough = height >= options_.height && width >= options_.width;",
      "enough = height >= options_.height || width >= options_.width;",
      "data:images")

fault("the number of channels of an IDX file of colour images is read from its second dimension instead of the last one", "data/inputs/images.cpp",
      "shape.size() == 4 ? shape[3] : 1;",
      "shape.size() == 4 ? shape[1] : 1;",
      "data:images")

fault("height and width of the videos in an IDX file are exchanged", "data/inputs/videos.cpp",
      "return {shape[1], shape[2], shape[3], 1, {values.begin(), values.end()}};",
      "return {shape[1], shape[3], shape[2], 1, {values.begin(), values.end()}};",
      "data:videos")

fault("the vertical place of a shape in a generated picture is drawn from the columns, so shapes lie outside wide pictures and only in the upper part of tall ones", "data/sources/generated/drawings.cpp",
      "one.top = below(height - one.size + 1);",
      "one.top = below(width - one.size + 1);",
      "data:synthetic")

fault("the first column of a moving square is drawn from the rows, so it never begins in the right part of wide frames", "data/sources/generated/motion.cpp",
      "left = below(width),",
      "left = below(height),",
      "data:synthetic")

fault("the frames of a WAV file with several channels begin one sample instead of one frame apart", "data/sources/sound.cpp",
      "for (std::size_t i = 0; i + frame <= size; i += frame) {",
      "for (std::size_t i = 0; i + frame <= size; i += step) {",
      "data:features")

fault("the samples of every extensible WAV file are read as integers, also those of floats", "data/sources/sound.cpp",
      "f.kind = little_endian(chunk, 24, 2);",
      "f.kind = pcm;",
      "data:features")

fault("data.lowercase also changes the names of image, sound and video files", "data/sources/corpus.cpp",
      """  if (input == InputKind::text)
    for (auto& line : split.source) line = lowercase(line);""",
      """  static_cast<void>(input);
  for (auto& line : split.source) line = lowercase(line);""",
      "data:corpus")

fault("with whole words and next sentences, a piece that continues a word at the beginning of the second line joins the last word of the first line, and the </s> between them is hidden too", "data/batches/masking.cpp",
      "if (continues && !all.empty() && all.back().end == i)",
      "if (continues && !all.empty())",
      "data:masking")

fault("the random tokens of masked language modelling never include the last piece of the vocabulary", "data/batches/masking.cpp",
      "static_cast<std::uint32_t>(masking.vocabulary - masking.first)",
      "static_cast<std::uint32_t>(masking.vocabulary - masking.first - 1)",
      "data:masking")

fault("data.max_length also leaves out images and videos, whose number of rows is fixed", "data/batches/dataset.cpp",
      "std::max(options.inputs && options.inputs->fixed_rows() ? 0 : length, targets.length(i));",
      "std::max(length, targets.length(i));",
      "data:dataset")

fault("a sampled segmentation of exactly data.max_length tokens is replaced by the deterministic one", "data/batches/batching.cpp",
      "if (std::ssize(ids) > segmentation.max_length)",
      "if (std::ssize(ids) >= segmentation.max_length)",
      "data:batcher")

fault("of several added tokens at one place of a text, the first of the list is found instead of the longest", "data/tokenizers/imported.cpp",
      """      if (at < first.first ||
          (at == first.first && first.second && token.text.size() > first.second->text.size()))
""",
      """      if (at < first.first)
""",
      "data:imported_tokenizers")

fault("ignore_merges has no effect: a word that is a piece is still made from bytes by merges", "data/tokenizers/word_model.cpp",
      "      for (const auto& [piece, id] : ids) whole_.emplace(bytes_of(piece), id);",
      "      whole_.clear();",
      "data:imported_tokenizers")

fault("a run of unknown bytes becomes one unknown piece whatever fuse_unk says", "data/tokenizers/word_model.cpp",
      "fuses_unknown_ = model.flag(\"fuse_unk\", false);",
      """model.flag("fuse_unk", false);
    fuses_unknown_ = true;""",
      "data:imported_tokenizers")

fault("a Split step with the behavior Removed yields the matches instead of the parts between them", "data/tokenizers/imported.cpp",
      "if (keeps || !matched) words(word);",
      "if (keeps || matched) words(word);",
      "data:imported_tokenizers")

fault("the normaliser of BERT removes control characters although clean_text is false", "data/tokenizers/imported.cpp",
      "if (step.flag(\"clean_text\", true)) changes.emplace_back(without_controls);",
      """step.flag("clean_text", true);
                changes.emplace_back(without_controls);""",
      "data:imported_tokenizers")

fault("without data.columns, a side is read from whichever of its two usual columns comes first in the file instead of from the preferred one", "data/sources/records.cpp",
      """  const auto found = std::ranges::find_first_of(value.columns, names);
  if (found == value.columns.end()) refuse_columns(value, names);
""",
      """  const auto found = std::ranges::find_first_of(names, value.columns);
  if (found == names.end()) refuse_columns(value, names);
""",
      "data:records")

fault("a wildcard also matches names that begin with a dot, and folders of classes include hidden files and folders", "data/sources/matching.cpp",
      """    if (fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) found.push_back(folder / name);
""",
      """    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) found.push_back(folder / name);
""",
      "data:corpus")

fault("the random token that replaces a hidden token is drawn from the first ids, special pieces included, and never from the last ids of the vocabulary", "data/batches/masking.cpp",
      """    return masking.first + static_cast<std::int32_t>(random.below(
""",
      """    return static_cast<std::int32_t>(random.below(
""",
      "data:masking")

fault("training skips pairs of exactly data.max_length tokens instead of only longer ones", "data/batches/dataset.cpp",
      """      if (options.max_length > 0 && longer > options.max_length) {
""",
      """      if (options.max_length > 0 && longer >= options.max_length) {
""",
      "data:dataset")
