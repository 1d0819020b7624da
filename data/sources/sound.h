#pragma once
/// Sound as numbers: WAV files, tones drawn from a line of text, and log-mel features.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/random.h"
#include "data/options.h"

namespace heed {

/// The samples of a WAV file, from -1 to 1; of several channels, their mean. Reads PCM of 8, 16, 24
/// and 32 bits, and floats of 32 bits. Throws Error(bad_input) if the file is missing, truncated or
/// of another kind, or does not have `rate` samples per second.
std::vector<float> read_wav(const std::string& path, std::int64_t rate);

/// "tones:3 1 4": a tone for each digit d, of 200 · 2^(d/3) Hz, 0.12 to 0.2 s long, with pauses,
/// noise, and loudness that varies. All of it is a function of the line.
bool is_tones(std::string_view line);
std::vector<float> play_tones(std::string_view line, std::int64_t rate);
/// The tones of a line are also a function of its take: "tones:3 1 4 #17".
std::string tones_of(const std::string& digits, std::uint32_t take);

/// ln of the mel spectrum, as rows of options.width bands. Frames of options.window ms begin every
/// options.hop ms, the last one within the sound, each times a periodic Hann window; the power
/// spectrum of a frame (a DFT of its own length), times triangular filters from 0 to rate/2,
/// equally spaced on Slaney's mel scale (linear to 1 kHz) and of equal area; at least 1e-10. This
/// is librosa's melspectrogram(center=False, power=2, htk=False, norm='slaney') with n_fft and
/// win_length equal to the window. Empty if the sound is shorter than a frame.
std::vector<float> log_mel(std::span<const float> samples, const FeatureOptions& options);

}  // namespace heed
