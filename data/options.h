#pragma once
/// The options of data and tokenizers, as plain values, read from the YAML sections `data` and
/// `tokenizer`.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/enum_names.h"

namespace heed {

/// The content of the files of a split: pairs of lines, a continuous text, or lines of text.
enum class Reads { pairs, text, lines };

/// The files of a split: aligned files (pairs) or text. Several files are concatenated.
struct FilesOptions {
  std::vector<std::string> source = {};
  std::vector<std::string> target = {};
  std::vector<std::string> text = {};
};

/// The format of a file; automatic: its name determines it (data/sources/records.h).
enum class FileFormat { automatic, lines, csv, tsv, jsonl, conll };
constexpr auto names_of(FileFormat) {
  return enum_names<FileFormat>("auto", "lines", "csv", "tsv", "jsonl", "conll");
}

/// The columns of tables that contain the sides of a sample or a text: names or, in files without
/// header, numbers from 1. Empty: the usual names (data/sources/records.h).
struct ColumnOptions {
  std::vector<std::string> source = {};
  std::vector<std::string> target = {};
  std::vector<std::string> text = {};
};

enum class SyntheticKind {
  none,
  copy,
  reverse,
  sort,
  addition,
  dates,
  brackets,
  recall,
  summary,
  mixture,
  captions,
  tones,
  motion,
  grammar
};
constexpr auto names_of(SyntheticKind) {
  return enum_names<SyntheticKind>("none", "copy", "reverse", "sort", "addition", "dates",
                                   "brackets", "recall", "summary", "mixture", "captions", "tones",
                                   "motion", "grammar");
}

/// A generated task. train, valid and test are numbers of pairs; splits share no source line.
struct SyntheticOptions {
  SyntheticKind name = SyntheticKind::none;
  std::vector<std::string> of = {};  ///< mixture: names of tasks; the numbers below apply to each
  std::int64_t train = 50000;
  std::int64_t valid = 1000;
  std::int64_t test = 1000;
  /// The minimum and maximum length of a source line. The unit of length is a symbol (copy,
  /// reverse, sort), a digit of a summand (addition), a digit (tones), a pair of brackets
  /// (brackets), a key with its value (recall), a sentence (summary) or a clause (grammar).
  std::int64_t min_length = 1;
  std::int64_t max_length = 20;
  /// copy, reverse, sort: size of the alphabet (at most 26 + 26 + 10); recall: number of different
  /// keys (at most 26 + 26).
  std::int64_t symbols = 26;
  /// recall: position of the queried key, counted from the end (1: the last key); 0: any position.
  std::int64_t distance = 0;
};

/// The meaning of a source line: text, or the file name or description of an input. The function
/// NAME_input states the properties of a kind (data/inputs/input_info.h).
#define HEED_INPUTS(INPUT) \
  INPUT(text)              \
  INPUT(image)             \
  INPUT(features)          \
  INPUT(video)

#define HEED_ENUMERATOR(name) name,
enum class InputKind { HEED_INPUTS(HEED_ENUMERATOR) };
#undef HEED_ENUMERATOR
const std::vector<std::string_view>& names_of(InputKind);

/// Images as sequences of patches (data/inputs/images.h), and the frames of videos.
struct ImageOptions {
  std::int64_t height = 28, width = 28;  ///< size of the model's input, in pixels
  std::int64_t channels = 1;             ///< 1: grey; 3: red, green, blue
  std::int64_t patch = 4;                ///< side of a patch, in pixels; divides height and width
  std::int64_t shift = 0;                ///< maximum random shift in training, in pixels
  bool crop = false;  ///< true: larger images are cropped; false: they cause an error
  bool flip = false;  ///< training mirrors an image with probability 1/2
  /// The model reads (v − mean) / deviation, with v from 0 to 1.
  double mean = 0.5, deviation = 0.5;
};
/// The number of values in a patch.
constexpr std::int64_t patch_width(const ImageOptions& o) { return o.patch * o.patch * o.channels; }
/// The number of patches in an image.
constexpr std::int64_t patches_of(const ImageOptions& o) {
  return (o.height / o.patch) * (o.width / o.patch);
}

/// Videos as sequences of tubelets (data/inputs/videos.h): patches that extend over several frames.
struct VideoOptions {
  std::int64_t frames = 16;  ///< number of frames in each video
  std::int64_t tubelet = 2;  ///< number of frames in a tubelet; divides `frames`
};

/// Feature rows, or sound as log-mel features (data/inputs/features.h).
struct FeatureOptions {
  std::int64_t width = 80;    ///< number of columns of a .npy file, or number of mel bands
  std::int64_t stack = 1;     ///< number of frames per row
  bool normalise = false;     ///< each column of an input gets mean 0 and standard deviation 1
  std::int64_t rate = 16000;  ///< sampling rate of sound, in Hz
  double window = 25.0;       ///< length of a frame, in ms
  double hop = 10.0;          ///< distance between the starts of consecutive frames, in ms
};
constexpr std::int64_t row_width(const FeatureOptions& o) { return o.width * o.stack; }

/// Several tasks in one model (Raffel et al. 2020, section 3.5.2): the number of samples that an
/// epoch draws from a task is proportional to min(size, limit)^(1 / temperature).
struct MixtureOptions {
  std::vector<std::string> prefixes = {};  ///< one per source file, put before each of its lines
  std::int64_t limit = 0;                  ///< 0: no limit
  double temperature = 1.0;
};

/// Span corruption (Raffel et al. 2020): the encoder reads a line in which <extra_id_0>,
/// <extra_id_1>, … replace spans of tokens; the decoder generates these sentinels, each followed by
/// the tokens of its span.
struct SpanOptions {
  double rate = 0.15;   ///< share of tokens to hide
  double length = 3.0;  ///< mean length of a span
};
/// The number of sentinels, as in T5.
inline constexpr std::int64_t span_marks = 100;

/// Masked language modelling.
struct MaskOptions {
  double rate = 0.15;          ///< share of tokens to predict
  bool whole_words = false;    ///< hide all pieces of a word together
  bool next_sentence = false;  ///< a sample has two lines; predict whether they are consecutive
};

struct DataOptions {
  FilesOptions train = {}, valid = {}, test = {};
  double valid_fraction = 0.0;  ///< share cut from the end of train if `valid` has no files
  double test_fraction = 0.0;   ///< as valid_fraction, for `test`; cut after the share for `valid`
  FileFormat format = FileFormat::automatic;
  ColumnOptions columns = {};
  SyntheticOptions synthetic = {};
  InputKind input = InputKind::text;
  ImageOptions image = {};
  VideoOptions video = {};
  FeatureOptions features = {};
  bool lowercase = false;  ///< convert text to lower case (Unicode simple mapping)
  double cutoff = 0.0;     ///< probability that an input token becomes <unk> in training
  MaskOptions mask = {};
  SpanOptions spans = {};
  MixtureOptions mixture = {};
  /// The maximum number of tokens per side; training skips longer pairs.
  std::int64_t max_length = 128;
};

/// imported: byte-level BPE or WordPiece of another program (data/tokenizers/imported.h).
enum class TokenizerKind { sentencepiece, characters, bytes, words, imported };
constexpr auto names_of(TokenizerKind) {
  return enum_names<TokenizerKind>("sentencepiece", "char", "byte", "word", "imported");
}

/// The algorithm of SentencePiece: a unigram language model (Kudo 2018) or byte-pair encoding
/// (Sennrich et al. 2016).
enum class PieceAlgorithm { unigram, bpe };
constexpr auto names_of(PieceAlgorithm) { return enum_names<PieceAlgorithm>("unigram", "bpe"); }

/// Subword sampling (sentencepiece): training draws the segmentation of each line. Unigram: one of
/// the `nbest` most probable, with probability proportional to p^alpha (Kudo 2018). Byte-pair
/// encoding: each merge step drops each possible merge with probability alpha (Provilkov et al.
/// 2020).
struct SegmentationOptions {
  double alpha = 0.0;  ///< 0: deterministic segmentation
  std::int64_t nbest = 64;
};

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::sentencepiece;
  PieceAlgorithm algorithm = PieceAlgorithm::unigram;  ///< sentencepiece only
  std::int64_t vocab_size = 8000;  ///< sentencepiece, words: maximum size, special pieces included
  /// Further special pieces such as "<pad>", "<mask>", "<extra_id_0>"; their ids begin at 3.
  std::vector<std::string> specials = {};
  SegmentationOptions sample = {};
  bool shared = true;             ///< one vocabulary for source and target
  std::string model = {};         ///< a `.model` or `.vocab` file to load instead of training
  std::string source_model = {};  ///< as `model`, for separate tokenizers
  std::string target_model = {};
};

}  // namespace heed
