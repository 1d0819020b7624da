#include "data/sources/sound.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/lines.h"
#include "autograd/io/message_text.h"
#include "data/sources/binary_file.h"

namespace heed {
namespace {

// ---- WAV ----------------------------------------------------------------------------------------

/// The little-endian number in the `bytes` bytes that begin at `at`.
std::uint32_t little_endian(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint32_t n = 0;
  for (std::size_t k = bytes; k-- > 0;) n = n << 8 | static_cast<unsigned char>(text[at + k]);
  return n;
}

struct Format {
  std::uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
};

constexpr std::uint32_t pcm = 1, floats = 3, extensible = 0xFFFE;

Format format_of(const std::string& path, std::string_view chunk) {
  if (chunk.size() < 16) refuse_file(path, "a WAV file with a broken header");
  Format f{little_endian(chunk, 0, 2), little_endian(chunk, 2, 2), little_endian(chunk, 4, 4),
           little_endian(chunk, 14, 2)};
  if (f.kind == extensible && chunk.size() >= 26) f.kind = little_endian(chunk, 24, 2);
  const bool known =
      (f.kind == pcm && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32)) ||
      (f.kind == floats && f.bits == 32);
  if (!known || f.channels == 0)
    refuse_file(path,
                fmt::format("a WAV file of format {} (bits: {}, channels: {}); only PCM of 8, 16, "
                            "24 or 32 bits and floats of 32 bits can be read",
                            f.kind, f.bits, f.channels));
  return f;
}

float sample_at(const Format& format, std::string_view data, std::size_t at) {
  const std::size_t bytes = format.bits / 8;
  const std::uint32_t n = little_endian(data, at, bytes);
  if (format.kind == floats) return std::bit_cast<float>(n);
  if (bytes == 1) return (static_cast<float>(n) - 128) / 128;  // 8-bit samples are unsigned
  const auto shifted = static_cast<std::int32_t>(n << (32 - format.bits));
  return static_cast<float>(shifted) / 2147483648.0F;
}

// ---- mel ----------------------------------------------------------------------------------------

double mel_of(double hertz) {
  return hertz < 1000 ? hertz * 3 / 200 : 15 + std::log(hertz / 1000) * 27 / std::log(6.4);
}
double hertz_of(double mel) {
  return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27);
}

/// The weight of each frequency bin in each mel band: [bands, bins].
std::vector<double> mel_filters(std::int64_t bands, std::int64_t window, double rate) {
  const std::int64_t bins = window / 2 + 1;
  std::vector<double> edges;
  for (std::int64_t k = 0; k < bands + 2; ++k)
    edges.push_back(
        hertz_of(mel_of(rate / 2) * static_cast<double>(k) / static_cast<double>(bands + 1)));
  std::vector<double> filters(static_cast<std::size_t>(bands * bins));
  for (std::int64_t m = 0; m < bands; ++m) {
    const double low = edges[m], middle = edges[m + 1], high = edges[m + 2];
    for (std::int64_t k = 0; k < bins; ++k) {
      const double f = static_cast<double>(k) * rate / static_cast<double>(window),
                   weight = std::min((f - low) / (middle - low), (high - f) / (high - middle));
      filters[m * bins + k] = std::max(0.0, weight) * 2 / (high - low);
    }
  }
  return filters;
}

/// The power spectrum of frames of n samples: bins 0 to n/2 of the DFT, after a Hann window.
class Spectrum {
 public:
  explicit Spectrum(std::int64_t n) : n_(n) {
    for (std::int64_t k = 0; k < n; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      cos_.push_back(std::cos(angle));
      sin_.push_back(std::sin(angle));
      window_.push_back(0.5 - 0.5 * std::cos(angle));
    }
  }
  std::int64_t bins() const { return n_ / 2 + 1; }
  std::vector<double> power(std::span<const float> frame) const {
    std::vector<double> windowed(static_cast<std::size_t>(n_)), all;
    for (std::int64_t i = 0; i < n_; ++i) windowed[i] = frame[i] * window_[i];
    for (std::int64_t k = 0; k < bins(); ++k) {
      double re = 0, im = 0;
      for (std::int64_t i = 0, at = 0; i < n_; ++i) {  // at = i · k modulo n
        re += windowed[i] * cos_[at];
        im += windowed[i] * sin_[at];
        at += k;
        if (at >= n_) at -= n_;
      }
      all.push_back(re * re + im * im);
    }
    return all;
  }

 private:
  std::int64_t n_;
  std::vector<double> cos_, sin_, window_;
};

constexpr std::string_view tones_mark = "tones:";

[[noreturn]] void refuse_tones(std::string_view line) {
  throw Error(Exit::bad_input,
              "\"{}\" is not a line of tones: expected digits and optionally "
              "the number of a take, as in \"tones:3 1 4 #17\"",
              shown(line));
}

}  // namespace

std::vector<float> read_wav(const std::string& path, std::int64_t rate) {
  const std::string bytes = read_binary_file(path);
  const std::string_view file = bytes;
  if (file.size() < 12 || !file.starts_with("RIFF") || file.substr(8, 4) != "WAVE")
    refuse_file(path, "not a WAV file");
  std::optional<Format> format;
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::string_view name = file.substr(at, 4);
    const std::size_t size = little_endian(file, at + 4, 4), begin = at + 8;
    if (size > file.size() - begin)
      refuse_file(path, fmt::format("a truncated WAV file: {} bytes are declared, but {} follow",
                                    size, file.size() - begin));
    if (name == "fmt ") format = format_of(path, file.substr(begin, size));
    if (name == "data") {
      if (!format) refuse_file(path, "a WAV file with a broken header");
      if (format->rate != rate)
        refuse_file(path, fmt::format("the sampling rate is {} Hz, but data.features.rate is {}",
                                      format->rate, rate));
      const std::size_t step = format->bits / 8, frame = step * format->channels;
      std::vector<float> samples;
      for (std::size_t i = 0; i + frame <= size; i += frame) {
        float sum = 0;
        for (std::size_t c = 0; c < format->channels; ++c)
          sum += sample_at(*format, file.substr(begin, size), i + c * step);
        if (!std::isfinite(sum))
          refuse_file(path, fmt::format("sample {} is not a finite number", samples.size() + 1));
        samples.push_back(sum / static_cast<float>(format->channels));
      }
      return samples;
    }
    at = begin + size + size % 2;
  }
  refuse_file(path, "a WAV file without samples");
}

bool is_tones(std::string_view line) { return line.starts_with(tones_mark); }

std::string tones_of(const std::string& digits, std::uint32_t take) {
  return fmt::format("{}{} #{}", tones_mark, digits, take);
}

std::vector<float> play_tones(std::string_view line, std::int64_t rate) {
  const std::string_view text = line.substr(std::min(tones_mark.size(), line.size()));
  const std::size_t mark = text.find('#');
  std::uint32_t take = 0;
  if (mark != std::string_view::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + mark + 1, end, take);
    if (error != std::errc() || stop != end) refuse_tones(line);
  }
  Random random({.seed = take, .stream = Stream::data, .index = 0x746F6E65});
  const auto seconds = [&](double min, double max) {
    return static_cast<std::int64_t>((min + (max - min) * random.uniform()) *
                                     static_cast<double>(rate));
  };
  std::vector<float> samples;
  const auto pause = [&] { samples.resize(samples.size() + seconds(0.03, 0.08)); };
  pause();
  for (const char c : text.substr(0, mark)) {
    if (c == ' ') continue;
    if (c < '0' || c > '9') refuse_tones(line);
    const double hertz = 200 * std::exp2((c - '0') / 3.0), loudness = 0.2 + 0.3 * random.uniform(),
                 step = 2 * std::numbers::pi * hertz / static_cast<double>(rate);
    for (std::int64_t i = 0, n = seconds(0.12, 0.2); i < n; ++i)
      samples.push_back(static_cast<float>(loudness * std::sin(step * static_cast<double>(i))));
    pause();
  }
  for (float& s : samples) s += static_cast<float>(0.02 * (random.uniform() - 0.5));
  return samples;
}

std::vector<float> log_mel(std::span<const float> samples, const FeatureOptions& options) {
  const auto of_ms = [&](double ms) {
    return static_cast<std::int64_t>(std::lround(ms * static_cast<double>(options.rate) / 1000));
  };
  const std::int64_t window = of_ms(options.window), hop = of_ms(options.hop),
                     bands = options.width;
  constexpr std::int64_t max_weights = std::int64_t{1} << 24;
  if (bands * (window / 2 + 1) > max_weights)
    throw Error(Exit::bad_input,
                "data.features.width: {} mel bands of frames of {} samples (data.features.window) "
                "need more than {} weights",
                bands, window, max_weights);
  const Spectrum spectrum(window);
  const std::vector<double> filters = mel_filters(bands, window, static_cast<double>(options.rate));
  std::vector<float> rows;
  for (std::int64_t begin = 0; begin + window <= std::ssize(samples); begin += hop) {
    const std::vector<double> power = spectrum.power(samples.subspan(begin, window));
    for (std::int64_t m = 0; m < bands; ++m) {
      double sum = 0;
      for (std::int64_t k = 0; k < spectrum.bins(); ++k)
        sum += filters[m * spectrum.bins() + k] * power[k];
      rows.push_back(static_cast<float>(std::log(std::max(sum, 1e-10))));
    }
  }
  return rows;
}

}  // namespace heed
