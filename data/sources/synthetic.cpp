#include "data/sources/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "autograd/base/error.h"
#include "autograd/base/random.h"
#include "autograd/base/team.h"
#include "autograd/io/message_text.h"
#include "data/sources/generated/dates.h"
#include "data/sources/generated/drawings.h"
#include "data/sources/generated/grammar.h"
#include "data/sources/generated/motion.h"
#include "data/sources/generated/summaries.h"
#include "data/sources/sound.h"

namespace heed {
namespace {

constexpr std::string_view alphabet =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The splits. The pairs of each split are drawn from a separate part of the random stream.
enum class Part : std::uint32_t { valid, test, train };
constexpr auto names_of(Part) { return enum_names<Part>("valid", "test", "train"); }
constexpr std::uint32_t shares = 10;  // valid has 1 share, test 1, train the remaining shares

/// FNV-1a (Fowler, Noll, Vo), 64 bits.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return h;
}

struct Pair {
  std::string source, target;
  std::uint64_t key = hash(source);  // all pairs with this key are in one split
};

Part part_of(std::uint64_t key, std::uint64_t seed) {
  const auto mixed = philox(
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), 0x73706C74, 0},
      static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  return static_cast<Part>(std::min(mixed[0] % shares, std::uint32_t{2}));
}

std::int64_t draw(Random& random, std::int64_t low, std::int64_t high) {
  return low + random.below(static_cast<std::uint32_t>(high - low + 1));
}

std::string spaced(const std::vector<std::size_t>& symbols) {
  std::string line;
  for (const std::size_t symbol : symbols) {
    if (!line.empty()) line += ' ';
    line += alphabet[symbol];
  }
  return line;
}

Pair symbols_pair(const SyntheticOptions& options, Random& random) {
  std::vector<std::size_t> symbols(
      static_cast<std::size_t>(draw(random, options.min_length, options.max_length)));
  for (auto& symbol : symbols) symbol = random.below(static_cast<std::uint32_t>(options.symbols));
  std::string source = spaced(symbols);
  if (options.name == SyntheticKind::reverse) std::reverse(symbols.begin(), symbols.end());
  if (options.name == SyntheticKind::sort) std::sort(symbols.begin(), symbols.end());
  return {.source = std::move(source), .target = spaced(symbols)};
}

/// A number of `digits` digits, without leading zeros.
std::string number(std::int64_t digits, Random& random) {
  std::string text;
  for (std::int64_t i = 0; i < digits; ++i) {
    const std::uint32_t low = i == 0 && digits > 1 ? 1 : 0;
    text += static_cast<char>('0' + low + random.below(10 - low));
  }
  return text;
}

/// The sum, computed digit by digit, because summands may have more digits than any integer type.
std::string sum(std::string_view a, std::string_view b) {
  std::string out;
  int carry = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry > 0; ++i) {
    int digit = carry;
    if (i < a.size()) digit += a[a.size() - 1 - i] - '0';
    if (i < b.size()) digit += b[b.size() - 1 - i] - '0';
    out += static_cast<char>('0' + digit % 10);
    carry = digit / 10;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Pair addition_pair(const SyntheticOptions& options, Random& random) {
  const auto a = number(draw(random, options.min_length, options.max_length), random);
  const auto b = number(draw(random, options.min_length, options.max_length), random);
  return {.source = a + "+" + b, .target = sum(a, b)};
}

Pair date_pair(Random& random) {
  const auto span = static_cast<std::uint32_t>((last_date - first_date).count() + 1);
  const auto day = first_date + std::chrono::days(random.below(span));
  return {.source = write_date(day, random),
          .target = iso_date(day),
          .key = static_cast<std::uint64_t>((day - first_date).count())};
}

/// Balanced brackets of three kinds, and the nesting depth of each bracket.
Pair brackets_pair(const SyntheticOptions& options, Random& random) {
  constexpr std::string_view opening = "([{", closing = ")]}";
  std::int64_t left = draw(random, options.min_length, options.max_length);  // pairs to open
  std::vector<std::uint32_t> open;  // kinds of the open brackets
  std::string source, target;
  const auto add = [&](char bracket) {
    const char* const space = source.empty() ? "" : " ";
    source += fmt::format("{}{}", space, bracket);
    target += fmt::format("{}{}", space, open.size());
  };
  while (left > 0 || !open.empty()) {
    if (left > 0 && (open.empty() || random.below(2) == 0)) {
      --left;
      open.push_back(random.below(opening.size()));
      add(opening[open.back()]);
    } else {
      add(closing[open.back()]);
      open.pop_back();
    }
  }
  return {.source = std::move(source), .target = std::move(target)};
}

/// Different keys, each followed by its value, then a question mark and one of the keys. The label
/// of the last token is the value of that key: the labels of "b 3 d 0 a 3 ? d" are
/// "- - - - - - - 0".
Pair recall_pair(const SyntheticOptions& options, Random& random) {
  const std::int64_t count = draw(random, options.min_length, options.max_length),
                     from_end = options.distance > 0 ? options.distance : draw(random, 1, count);
  std::string keys(alphabet.substr(0, static_cast<std::size_t>(options.symbols))), values;
  std::string source, target;
  for (std::int64_t i = 0; i < count; ++i) {
    std::swap(keys[i], keys[draw(random, i, options.symbols - 1)]);  // Fisher-Yates
    values += static_cast<char>('0' + random.below(10));
    source += fmt::format("{} {} ", keys[i], values[i]);
    target += "- - ";
  }
  return {.source = fmt::format("{}? {}", source, keys[count - from_end]),
          .target = fmt::format("{}- {}", target, values[count - from_end])};
}

/// `count` random digits, separated by spaces: "3 1 4".
std::string digits_of(std::int64_t count, Random& random) {
  std::string line;
  for (std::int64_t i = 0; i < count; ++i)
    line += fmt::format("{}{}", i == 0 ? "" : " ", random.below(10));
  return line;
}

struct Recipe {
  SyntheticOptions options;
  ImageOptions image;
  VideoOptions video;
  std::uint64_t seed = 0;
};

Pair make_pair(const Recipe& recipe, Random& random) {
  const SyntheticOptions& options = recipe.options;
  switch (options.name) {
    case SyntheticKind::tones: {
      std::string digits = digits_of(draw(random, options.min_length, options.max_length), random);
      const std::uint64_t key = hash(digits);
      return {tones_of(digits, random.below(1U << 30)), std::move(digits), key};
    }
    case SyntheticKind::captions: {
      Scene scene = make_scene(recipe.image.height, recipe.image.width, random);
      const std::uint64_t key = hash(scene.caption);
      return {std::move(scene.drawing), std::move(scene.caption), key};
    }
    case SyntheticKind::motion: {
      Motion motion =
          make_motion(recipe.video.frames, recipe.image.height, recipe.image.width, random);
      return {.source = std::move(motion.video), .target = std::move(motion.label)};
    }
    case SyntheticKind::summary: {
      Summary summary = write_summary(draw(random, options.min_length, options.max_length), random);
      return {.source = std::move(summary.text), .target = std::move(summary.summary)};
    }
    case SyntheticKind::grammar: {
      TaggedSentence tagged =
          tagged_sentence(draw(random, options.min_length, options.max_length), random);
      return {.source = std::move(tagged.words), .target = std::move(tagged.tags)};
    }
    case SyntheticKind::addition:
      return addition_pair(options, random);
    case SyntheticKind::dates:
      return date_pair(random);
    case SyntheticKind::brackets:
      return brackets_pair(options, random);
    case SyntheticKind::recall:
      return recall_pair(options, random);
    default:
      return symbols_pair(options, random);
  }
}

/// Sample i of a split. Draws pairs from the random stream of the sample until one belongs to the
/// split and has a source that is not in `used`.
Pair sample(const Recipe& recipe, Part part, std::uint64_t i,
            const std::unordered_set<std::string>& used) {
  constexpr int max_draws = 20'000;
  Random random({.seed = recipe.seed,
                 .stream = Stream::data,
                 .index = i,
                 .part = 0x73796E0 + static_cast<std::uint32_t>(part)});
  for (int draws = 0; draws < max_draws; ++draws) {
    Pair pair = make_pair(recipe, random);
    if (part_of(pair.key, recipe.seed) == part && used.count(pair.source) == 0) return pair;
  }
  throw Error(Exit::usage,
              "data.synthetic: too few different lines for the split \"{}\" (found {}); "
              "request fewer or longer lines",
              name_of(part), i);
}

/// Lines of train may repeat, so threads generate them independently.
Split make_train(const Recipe& recipe) {
  constexpr std::size_t lines_per_thread = 2048;
  Split split;
  split.source.resize(recipe.options.train);
  split.target.resize(split.source.size());
  in_parts(split.source.size(), lines_per_thread, 0,
           [&](std::size_t, std::size_t from, std::size_t to) {
             for (std::size_t i = from; i < to; ++i) {
               Pair pair = sample(recipe, Part::train, i, {});
               split.source[i] = std::move(pair.source);
               split.target[i] = std::move(pair.target);
             }
           });
  return split;
}

Split make_different(const Recipe& recipe, Part part, std::int64_t count) {
  Split split;
  std::unordered_set<std::string> used;
  for (std::int64_t i = 0; i < count; ++i) {
    Pair pair = sample(recipe, part, static_cast<std::uint64_t>(i), used);
    used.insert(pair.source);
    split.source.push_back(std::move(pair.source));
    split.target.push_back(std::move(pair.target));
  }
  return split;
}

void append(const std::string& name, Split&& part, Split& all) {
  if (part.source.empty()) return;
  all.parts.push_back({name, part.source.size()});
  for (std::string& line : part.source) all.source.push_back(name + ": " + line);
  std::ranges::move(part.target, std::back_inserter(all.target));
}

/// The concatenated corpora of the tasks, with the name of the task before each source line.
Corpus mixture_corpus(Recipe recipe) {
  Corpus all;
  for (const std::string& name : recipe.options.of) {
    const auto& kinds = names_of(SyntheticKind{});
    recipe.options.name =
        static_cast<SyntheticKind>(std::ranges::find(kinds, name) - kinds.begin());
    Corpus part = synthetic_corpus(recipe.options, recipe.seed);
    append(name, std::move(part.train), all.train);
    append(name, std::move(part.valid), all.valid);
    append(name, std::move(part.test), all.test);
  }
  return all;
}

// ---- checks of the options -----------------------------------------------------------------------

OptionErrors recall_errors(const DataOptions& o) {
  const SyntheticOptions& synthetic = o.synthetic;
  OptionErrors errors;
  if (synthetic.symbols > 52)
    errors.push_back({{"data.synthetic.symbols"},
                      fmt::format("{} is greater than 52, the number of keys of recall (a-z, A-Z)",
                                  synthetic.symbols)});
  if (synthetic.max_length > synthetic.symbols)
    errors.push_back(
        {{"data.synthetic.max_length", "data.synthetic.symbols"},
         fmt::format("{} is greater than symbols ({}), but the keys of a line must differ",
                     synthetic.max_length, synthetic.symbols)});
  if (synthetic.distance > synthetic.min_length)
    errors.push_back(
        {{"data.synthetic.distance", "data.synthetic.min_length"},
         fmt::format("{} is greater than min_length ({}), so a line may have too few keys",
                     synthetic.distance, synthetic.min_length)});
  return errors;
}

OptionErrors mixture_errors(const DataOptions& o) {
  const std::vector<std::string>& of = o.synthetic.of;
  const auto& kinds = names_of(SyntheticKind{});
  OptionErrors errors;
  if (!o.mixture.prefixes.empty())
    errors.push_back(
        {{"data.mixture.prefixes", "data.synthetic.name"},
         "the prefixes of a synthetic mixture are the names of its tasks; remove this key"});
  if (of.empty())
    errors.push_back(
        {{"data.synthetic.of", "data.synthetic.name"}, "missing: name the tasks of the mixture"});
  for (auto name = of.begin(); name != of.end(); ++name) {
    const auto kind = static_cast<SyntheticKind>(std::ranges::find(kinds, *name) - kinds.begin());
    if (static_cast<std::size_t>(kind) == kinds.size() || kind == SyntheticKind::none ||
        kind == SyntheticKind::mixture || info_of(kind).input != InputKind::text)
      errors.push_back(
          {{"data.synthetic.of"},
           fmt::format("\"{}\" is not a synthetic task whose source is text", shown(*name))});
    if (std::find(of.begin(), name, *name) != name)
      errors.push_back({{"data.synthetic.of"}, fmt::format("{} is given twice", *name)});
  }
  return errors;
}

void refuse_flip(const DataOptions& o, OptionErrors& errors) {
  if (o.image.flip)
    errors.push_back(
        {{"data.image.flip", "data.synthetic.name"},
         fmt::format("the targets of {} name left and right, which mirroring exchanges",
                     name_of(o.synthetic.name))});
}

OptionErrors captions_errors(const DataOptions& o) {
  OptionErrors errors;
  refuse_flip(o, errors);
  if (std::min(o.image.height, o.image.width) < 16)
    errors.push_back({{"data.image.height", "data.image.width", "data.synthetic.name"},
                      "two shapes need an image of at least 16 x 16 pixels"});
  return errors;
}

OptionErrors motion_errors(const DataOptions& o) {
  OptionErrors errors;
  refuse_flip(o, errors);
  if (o.video.frames < motion_frames)
    errors.push_back({{"data.video.frames", "data.synthetic.name"},
                      fmt::format("three turns need at least {} frames, got {}", motion_frames,
                                  o.video.frames)});
  if (std::min(o.image.height, o.image.width) < motion_side)
    errors.push_back(
        {{"data.image.height", "data.image.width", "data.synthetic.name"},
         fmt::format("a moving square needs frames of at least {0} x {0} pixels", motion_side)});
  return errors;
}

}  // namespace

SyntheticInfo info_of(SyntheticKind kind) {
  switch (kind) {
    case SyntheticKind::recall:
      return {InputKind::text, recall_errors};
    case SyntheticKind::mixture:
      return {InputKind::text, mixture_errors};
    case SyntheticKind::captions:
      return {InputKind::image, captions_errors};
    case SyntheticKind::tones:
      return {InputKind::features};
    case SyntheticKind::motion:
      return {InputKind::video, motion_errors};
    default:
      return {};
  }
}

Corpus synthetic_corpus(const SyntheticOptions& options, std::uint64_t seed,
                        const ImageOptions& image, const VideoOptions& video) {
  const Recipe recipe{options, image, video, seed};
  if (options.name == SyntheticKind::mixture) return mixture_corpus(recipe);
  return {.train = make_train(recipe),
          .valid = make_different(recipe, Part::valid, options.valid),
          .test = make_different(recipe, Part::test, options.test)};
}

}  // namespace heed
