#pragma once
/// The data and the tokenizers, as plain values. Read from the YAML sections `data` and
/// `tokenizer`.
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/base/enum_names.h"

namespace heed {

/// What the files of a split hold: pairs of lines, a continuous text, or lines of text.
enum class Reads { pairs, text, lines };

/// One split: aligned files (pairs), or text. Several files are concatenated.
struct FilesOptions {
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

/// A built-in task; counts are numbers of pairs. Splits share no source line.
struct SyntheticOptions {
  SyntheticKind name = SyntheticKind::none;
  std::vector<std::string> of = {};  ///< mixture: names of other kinds; each has the counts below
  std::int64_t train = 50000;
  std::int64_t valid = 1000;
  std::int64_t test = 1000;
  /// copy, reverse, sort: symbols; addition: digits of a summand; brackets: pairs of brackets;
  /// recall: keys with their values; summary: sentences; grammar: clauses.
  std::int64_t min_length = 1;
  std::int64_t max_length = 20;
  /// copy, reverse, sort: size of the alphabet (at most 26 + 26 + 10); recall: number of different
  /// keys (at most 26 + 26).
  std::int64_t symbols = 26;
  std::int64_t distance =
      0;  ///< recall: place of the key in question from the end (1: last); 0: any
};

/// What the lines of a source are: text, or the names of files: pictures, features or sound, clips.
enum class InputKind { text, image, features, video };
constexpr auto names_of(InputKind) {
  return enum_names<InputKind>("text", "image", "features", "video");
}

/// Pictures as sequences of patches (data/inputs/pictures.h), and the frames of clips.
struct ImageOptions {
  std::int64_t height = 28, width = 28;  ///< pixels that the model reads
  std::int64_t channels = 1;             ///< 1: grey; 3: red, green, blue
  std::int64_t patch = 4;                ///< side of a patch, a divisor of height and width
  std::int64_t shift = 0;                ///< training moves a picture by up to this many pixels
  bool crop = false;                     ///< larger pictures are cropped, not refused
  bool flip = false;                     ///< training mirrors half of the pictures
  double mean = 0.5,
         deviation = 0.5;  ///< of values from 0 to 1; the model reads (v − mean) / deviation
};
/// Values of a patch.
constexpr std::int64_t patch_width(const ImageOptions& o) { return o.patch * o.patch * o.channels; }
/// Patches of a picture.
constexpr std::int64_t patches_of(const ImageOptions& o) {
  return (o.height / o.patch) * (o.width / o.patch);
}

/// Clips as sequences of tubelets (data/inputs/clips.h): patches that extend over several frames.
struct VideoOptions {
  std::int64_t frames = 16;  ///< of each clip
  std::int64_t tubelet = 2;  ///< frames of a tubelet, a divisor of frames
};

/// Feature rows, or audio as log-mel features (data/inputs/features.h).
struct FeatureOptions {
  std::int64_t width = 80;  ///< values of a frame: columns of a .npy file, bands of a mel spectrum
  std::int64_t stack = 1;   ///< frames in a row
  bool normalise = false;   ///< each column of an input to mean 0 and standard deviation 1
  std::int64_t rate = 16000;  ///< sampling rate of .wav files, in Hz
  double window = 25.0;       ///< length of a frame, in ms
  double hop = 10.0;          ///< distance between the starts of two frames, in ms
};
constexpr std::int64_t row_width(const FeatureOptions& o) { return o.width * o.stack; }

/// Several tasks in one model (Raffel et al. 2020, section 3.5.2): an epoch draws samples of each
/// part, in proportion to min(size, limit)^(1 / temperature).
struct MixtureOptions {
  std::vector<std::string> prefixes = {};  ///< begin each source line, one for each file
  std::int64_t limit = 0;                  ///< 0: none
  double temperature = 1.0;
};

/// Span corruption (Raffel et al. 2020): the encoder reads a line with some stretches of tokens
/// replaced by <extra_id_0>, <extra_id_1>, …; the decoder writes each of these and then the
/// tokens that it replaced.
struct SpanOptions {
  double rate = 0.15;   ///< share of tokens to hide
  double length = 3.0;  ///< mean length of a stretch
};
/// Special pieces that stand for hidden stretches, as many as T5's.
inline constexpr std::int64_t span_marks = 100;

/// Masked language modelling.
struct MaskOptions {
  double rate = 0.15;          ///< share of tokens to predict
  bool whole_words = false;    ///< hides all pieces of a word together
  bool next_sentence = false;  ///< a sample has two lines; does the second follow the first?
};

struct DataOptions {
  FilesOptions train = {}, valid = {}, test = {};
  double valid_fraction = 0.0;  ///< without `valid` files: the share cut from the end of train
  double test_fraction = 0.0;   ///< likewise; valid precedes test
  SyntheticOptions synthetic = {};
  InputKind input = InputKind::text;
  ImageOptions image = {};
  VideoOptions video = {};
  FeatureOptions features = {};
  bool lowercase = false;  ///< both sides, before tokenising (Unicode simple lower case)
  double cutoff = 0.0;     ///< probability that an input token becomes <unk> in training
  MaskOptions mask = {};
  SpanOptions spans = {};
  MixtureOptions mixture = {};
  std::int64_t max_length = 128;  ///< tokens; pairs with a longer side are left out of training
};

/// Values of a row of a source that is not text; 0 for text.
constexpr std::int64_t row_width(const DataOptions& o) {
  return o.input == InputKind::image      ? patch_width(o.image)
         : o.input == InputKind::video    ? patch_width(o.image) * o.video.tubelet
         : o.input == InputKind::features ? row_width(o.features)
                                          : 0;
}

/// Patches of a picture, or tubelets of a clip; 0 for other sources.
constexpr std::int64_t patches_of(const DataOptions& o) {
  return o.input == InputKind::image   ? patches_of(o.image)
         : o.input == InputKind::video ? patches_of(o.image) * (o.video.frames / o.video.tubelet)
                                       : 0;
}

enum class TokenizerKind { sentencepiece, characters, bytes, words };
constexpr auto names_of(TokenizerKind) {
  return enum_names<TokenizerKind>("sentencepiece", "char", "byte", "word");
}

/// How SentencePiece finds its pieces: a unigram language model (Kudo 2018) or byte-pair encoding
/// (Sennrich et al. 2016).
enum class PieceAlgorithm { unigram, bpe };
constexpr auto names_of(PieceAlgorithm) { return enum_names<PieceAlgorithm>("unigram", "bpe"); }

/// Subword sampling (sentencepiece): training draws the segmentation of each line. Unigram: one of
/// the `nbest` likeliest, with probability proportional to p^alpha (Kudo 2018). Byte-pair encoding:
/// each possible merge is dropped from a merge step with probability alpha (Provilkov et al. 2020).
struct SegmentationOptions {
  double alpha = 0.0;  ///< 0: always the usual segmentation
  std::int64_t nbest = 64;
};

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::sentencepiece;
  PieceAlgorithm algorithm = PieceAlgorithm::unigram;  ///< sentencepiece
  std::int64_t vocab_size = 8000;  ///< sentencepiece, words: at most, special pieces included
  /// Further special pieces, "<pad>", "<mask>", "<extra_id_0>"; their ids begin at 3.
  std::vector<std::string> specials = {};
  SegmentationOptions sample = {};
  bool shared = true;      ///< one vocabulary for source and target
  std::string model = {};  ///< use this file instead of training (a `.model`, or a vocabulary file)
  std::string source_model = {};  ///< if not shared
  std::string target_model = {};
};

}  // namespace heed
