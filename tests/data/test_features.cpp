// Feature rows and sound, used in place of text.
#include "data/inputs/features.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "data/sources/npy.h"
#include "data/sources/sound.h"
#include "data/sources/synthetic.h"
#include "tests/data/files.h"
#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(features)

namespace {

std::string wav(std::uint32_t kind, std::uint32_t channels, std::uint32_t bits, std::uint32_t rate,
                const std::string& data, const std::string& before = "") {
  const std::string format = little(kind, 2) + little(channels, 2) + little(rate, 4) +
                             little(rate * channels * bits / 8, 4) +
                             little(channels * bits / 8, 2) + little(bits, 2);
  const std::string chunks = "WAVEfmt " + little(16, 4) + format + before + "data" +
                             little(static_cast<std::uint32_t>(data.size()), 4) + data;
  return "RIFF" + little(static_cast<std::uint32_t>(chunks.size()), 4) + chunks;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Side pushed(const Features& features, std::int64_t input) {
  Side side;
  features.push(input, {1, std::nullopt, input}, side);
  return side;
}

}  // namespace

BOOST_AUTO_TEST_CASE(wav_samples_of_each_format_are_read) {
  const TempDir dir;
  const auto read = [&](const std::string& bytes) {
    return read_wav(dir.write("a.wav", bytes), 8000);
  };
  using Floats = std::vector<float>;
  BOOST_TEST((read(wav(1, 1, 16, 8000, little(0, 2) + little(0x4000, 2) + little(0x8000, 2))) ==
              Floats{0, 0.5, -1}));
  BOOST_TEST((read(wav(1, 1, 8, 8000, std::string("\x80\xC0\x00", 3))) == Floats{0, 0.5, -1}));
  BOOST_TEST(
      (read(wav(1, 1, 24, 8000, little(0x200000, 3) + little(0x800000, 3))) == Floats{0.25, -1}));
  BOOST_TEST((read(wav(1, 1, 32, 8000, little(0xC0000000, 4))) == Floats{-0.5}));
  BOOST_TEST((read(wav(3, 1, 32, 8000, bytes_of<float>({0.125F}))) == Floats{0.125}));
  BOOST_TEST((read(wav(1, 2, 16, 8000, little(0x4000, 2) + little(0x2000, 2))) == Floats{0.375}));
  // Frames of two channels: the mean of each frame.
  BOOST_TEST((read(wav(1, 2, 24, 8000,
                       little(0x400000, 3) + little(0x200000, 3) + little(0xC00000, 3) +
                           little(0x400000, 3) + little(0, 3) + little(0x800000, 3))) ==
              Floats{0.375, 0, -0.5}));
  // A chunk of odd length and its padding precede the samples.
  BOOST_TEST((read(wav(1, 1, 16, 8000, little(0x4000, 2), "LIST" + little(3, 4) + "abc" + '\0')) ==
              Floats{0.5}));
}

// The format of WAVE_FORMAT_EXTENSIBLE is in the first two bytes of a GUID.
BOOST_AUTO_TEST_CASE(extensible_wav_has_the_format_of_its_guid) {
  const TempDir dir;
  const auto read = [&](std::uint32_t kind, std::uint32_t bits, const std::string& data) {
    const std::string format = little(0xFFFE, 2) + little(1, 2) + little(8000, 4) +
                               little(1000 * bits, 4) + little(bits / 8, 2) + little(bits, 2) +
                               little(22, 2) + little(bits, 2) + little(4, 4) + little(kind, 2) +
                               std::string("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
    const std::string chunks = "WAVEfmt " + little(40, 4) + format + "data" +
                               little(static_cast<std::uint32_t>(data.size()), 4) + data;
    return read_wav(
        dir.write("a.wav", "RIFF" + little(static_cast<std::uint32_t>(chunks.size()), 4) + chunks),
        8000);
  };
  using Floats = std::vector<float>;
  BOOST_TEST((read(1, 24, little(0x200000, 3) + little(0x800000, 3)) == Floats{0.25, -1}));
  BOOST_TEST((read(1, 32, little(0xC0000000, 4)) == Floats{-0.5}));
  BOOST_TEST((read(3, 32, bytes_of<float>({0.125F, -2})) == Floats{0.125, -2}));
  expect_error(Exit::bad_input, {"a WAV file of format 85"}, [&] { read(85, 16, ""); });
}

BOOST_AUTO_TEST_CASE(broken_wav_is_refused) {
  const TempDir dir;
  const std::string good = wav(1, 1, 16, 8000, little(0, 2) + little(1, 2));
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    expect_error(Exit::bad_input, {"a.wav: ", why},
                 [&] { read_wav(dir.write("a.wav", bytes), 8000); });
  };
  refused("RIFF", "not a WAV file");
  refused("", "not a WAV file");
  refused(good.substr(0, good.size() - 1),
          "a truncated WAV file: 4 bytes are declared, but 3 follow");
  refused(good.substr(0, 36), "a WAV file without samples");
  refused(wav(1, 1, 16, 44100, ""),
          "the sampling rate is 44100 Hz, but data.features.rate is 8000");
  refused(wav(1, 1, 12, 8000, ""), "a WAV file of format 1 (bits: 12, channels: 1)");
  refused(wav(1, 0, 16, 8000, ""), "channels: 0");
  refused(wav(85, 1, 16, 8000, ""), "a WAV file of format 85");
  refused(wav(3, 1, 32, 8000, bytes_of<float>({0.5F, HUGE_VALF})),
          "sample 2 is not a finite number");
  for (std::size_t end = 0; end < good.size(); ++end)
    BOOST_CHECK_THROW(read_wav(dir.write("a.wav", good.substr(0, end)), 8000), Error);
  BOOST_CHECK_THROW(read_wav((dir / "missing.wav").string(), 8000), Error);
}

BOOST_AUTO_TEST_CASE(npy_matrix_is_read_and_broken_npy_file_is_refused) {
  const TempDir dir;
  const std::string f4 = bytes_of<float>({1, 2, 3, 4, 5, 6}), f8 = bytes_of<double>({1, 2});
  const Matrix m = read_npy(dir.write("a.npy", npy("<f4", "(2, 3)", f4)));
  BOOST_TEST((m.rows == 2 && m.columns == 3 && m.values == std::vector<float>{1, 2, 3, 4, 5, 6}));
  BOOST_TEST(
      (read_npy(dir.write("a.npy", npy("<f8", "(2, 1)", f8))).values == std::vector<float>{1, 2}));
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    expect_error(Exit::bad_input, {"a.npy: ", why}, [&] { read_npy(dir.write("a.npy", bytes)); });
  };
  refused("\x93NUMPY", "not a .npy file");
  refused(npy("<f4", "(2, 3)", f4).substr(0, 100), "a .npy file that ends within its header");
  refused(npy("<i4", "(2, 3)", f4), "a .npy file of type '<i4'");
  refused(npy("<f4", "(2, 3)", f4, "True"), "in column-major order");
  refused(npy("<f4", "(6,)", f4), "expected a matrix, got an array of shape (6)");
  refused(npy("<f4", "(2, 2)", f4),
          "the values have 24 bytes, which does not match the shape 2 x 2");
  refused(npy("<f4", "(4611686018427387904, 4)", f4), "which does not match");
  refused(npy("<f4", "(9223372036854775808, 4)", f4), "an invalid shape (2 dimensions)");
  refused(npy("<f4", "(-2, 3)", f4), "an invalid shape (2 dimensions)");
  refused(npy("<f4", "(" + std::string(30'000, '9') + ",)", f4), "an invalid shape (1 dimensions)");
  std::string many = "1";
  for (int i = 1; i < 65; ++i) many += ", 1";
  refused(npy("<f4", "(" + many + ")", f4), "an invalid shape (65 dimensions)");
  const std::string pipe = (dir / "pipe.npy").string();
  BOOST_REQUIRE_EQUAL(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(Exit::bad_input, {pipe, "is a named pipe"}, [&] { read_npy(pipe); });
}

BOOST_AUTO_TEST_CASE(log_mel_equals_reference) {
  std::vector<float> samples;
  for (int i = 0; i < 720; ++i)
    samples.push_back(static_cast<float>(0.5 * std::sin(0.05 * i + 0.0003 * i * i) +
                                         0.1 * (i * 7919 % 100 / 100.0 - 0.5)));
  FeatureOptions options{.width = 12, .rate = 8000, .hop = 10};
  const auto of_window =
      nlohmann::json::parse(slurp(HEED_SOURCE_DIR "/tests/data/log_mel_golden.json"));
  for (const auto& [window, golden] : of_window.items()) {
    options.window = std::stod(window) / 8;  // milliseconds
    const std::vector<float> rows = log_mel(samples, options);
    BOOST_REQUIRE(rows.size() == 12 * golden.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      BOOST_TEST(std::abs(rows[i] - golden[i / 12][i % 12].get<double>()) < 1e-4,
                 "window: " << window << ", value " << i);
  }
  options.window = 25;
  BOOST_TEST(log_mel(std::span(samples).first(199), options).empty());
  BOOST_TEST(log_mel(std::vector<float>(200), options).front() == std::log(1e-10F));  // silence
}

// Each digit has a different tone, which the loudest band of its frames identifies.
BOOST_AUTO_TEST_CASE(loudest_band_of_tone_identifies_digit) {
  const FeatureOptions options{.width = 40, .rate = 8000};
  std::map<std::size_t, char> heard;
  for (char digit = '0'; digit <= '9'; ++digit) {
    const std::string line = tones_of(std::string(1, digit), 5);
    BOOST_TEST((play_tones(line, 8000) == play_tones(line, 8000)));
    BOOST_TEST((play_tones(line, 8000) != play_tones(tones_of(std::string(1, digit), 6), 8000)));
    const std::vector<float> rows = log_mel(play_tones(line, 8000), options);
    const auto middle = rows.begin() + std::ssize(rows) / 80 * 40;
    heard[static_cast<std::size_t>(std::max_element(middle, middle + 40) - middle)] = digit;
  }
  BOOST_TEST(heard.size() == 10u);
  std::string order;
  for (const auto& [band, digit] : heard) order += digit;
  BOOST_TEST(order == "0123456789");
  for (const char* wrong : {"tones:1 a", "tones:1 #", "tones:1 #x", "tones:1 #-1", "tones:1 #1 2"})
    expect_error(Exit::bad_input, {"is not a line of tones"}, [&] { play_tones(wrong, 8000); });
}

BOOST_AUTO_TEST_CASE(feature_rows_are_stacked_and_normalised_frames) {
  const TempDir dir;
  const std::string path =
      dir.write("a.npy", npy("<f4", "(3, 2)", bytes_of<float>({1, 2, 3, 4, 5, 6})));
  const std::vector<std::string> lines{path, path};
  const Features plain(lines, {.width = 2}, false, "data", 1);
  BOOST_TEST(plain.rows(1) == 3);
  BOOST_TEST((pushed(plain, 1).features == std::vector<float>{1, 2, 3, 4, 5, 6}));
  BOOST_TEST((pushed(plain, 1).width == 2 && pushed(plain, 0).offsets.back() == 3));
  const Features stacked(lines, {.width = 2, .stack = 2}, true, "data", 1);
  BOOST_TEST(
      (pushed(stacked, 1).features == std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0}));
  BOOST_TEST((stacked.rows(0) == 3 && pushed(stacked, 0).width == 4));
  const Features normal(lines, {.width = 2, .normalise = true}, false, "data", 2);
  const std::vector<float> values = pushed(normal, 0).features;
  for (int k = 0; k < 2; ++k) {
    BOOST_TEST(std::abs(values[k] + std::sqrt(1.5F)) < 1e-4F);
    BOOST_TEST(std::abs(values[2 + k]) < 1e-6F);
  }
  // The zeros that complete the last row count neither in the mean nor in the deviation.
  const Features both(lines, {.width = 2, .stack = 2, .normalise = true}, false, "data", 1);
  std::vector<float> completed = values;
  completed.resize(8);
  BOOST_TEST((pushed(both, 1).features == completed));
  const auto refused = [](const std::vector<std::string>& of,
                          std::initializer_list<std::string_view> why) {
    expect_error(Exit::bad_input, why, [&] { Features(of, {.width = 3}, false, "data.train", 1); });
  };
  refused({path}, {"data.train: line 1: ",
                   "a.npy: the number of columns is 2, but data.features.width is 3"});
  const std::string infinite =
      dir.write("infinite.npy", npy("<f4", "(2, 3)", bytes_of<float>({0, 1, 2, 3, HUGE_VALF, 5})));
  refused({"tones:1", infinite},
          {"data.train: line 2: ",
           "infinite.npy: row 2, column 2 contains inf, which is not a finite number"});
  refused({"tones:1", (dir / "b.wav").string()}, {"data.train: line 2: ", "b.wav"});
  const std::string empty = dir.write("empty.npy", npy("<f4", "(0, 3)", ""));
  refused({empty}, {"data.train: line 1: ", "empty.npy: no frame"});
}

BOOST_AUTO_TEST_CASE(digit_sequences_of_test_tones_do_not_occur_in_train) {
  const Corpus corpus = synthetic_corpus({.name = SyntheticKind::tones,
                                          .train = 2000,
                                          .valid = 50,
                                          .test = 100,
                                          .min_length = 3,
                                          .max_length = 5},
                                         1);
  const std::set<std::string> trained(corpus.train.target.begin(), corpus.train.target.end());
  for (std::size_t i = 0; i < 100; ++i) {
    BOOST_TEST(!trained.contains(corpus.test.target[i]));
    BOOST_TEST(corpus.test.source[i].starts_with("tones:" + corpus.test.target[i] + " #"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
