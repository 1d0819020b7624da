#pragma once
/// Sound: WAV files, tones generated from a line of text, and log-mel features.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/random.h"
#include "data/options.h"

namespace heed {

/// The samples of a WAV file, with PCM scaled to [−1, 1); several channels are averaged. Reads PCM
/// of 8, 16, 24 and 32 bits, and floats of 32 bits. Throws Error(bad_input) if the file is missing,
/// truncated or of another format, does not have `rate` samples per second, or contains a sample
/// that is not finite.
std::vector<float> read_wav(const std::string& path, std::int64_t rate);

/// Whether a line describes tones ("tones:3 1 4").
bool is_tones(std::string_view line);
/// The samples that a line of tones describes: a tone of 200 · 2^(d/3) Hz for each digit d, 0.12 to
/// 0.2 s long, with pauses, noise and random loudness. The samples are a function of the line and
/// the rate. Throws Error(bad_input) if the line has another form.
std::vector<float> play_tones(std::string_view line, std::int64_t rate);
/// The line for take number `take` of the digits, such as "tones:3 1 4 #17". Takes of the same
/// digits differ in durations, loudness and noise.
std::string tones_of(const std::string& digits, std::uint32_t take);

/// The log-mel spectrum, as rows of options.width bands: ln(max(1e-10, filters · power spectrum)).
/// Frames of options.window ms begin every options.hop ms and lie within the sound; each is
/// multiplied by a periodic Hann window and transformed by a DFT of its length. The filters are
/// triangular, from 0 to rate/2, equally spaced on Slaney's mel scale (linear to 1 kHz) and of
/// equal area: filters · power spectrum equals librosa's melspectrogram(center=False, power=2,
/// htk=False, norm='slaney') with n_fft and win_length equal to the number of samples in a frame.
/// Empty if the sound is shorter than a frame.
std::vector<float> log_mel(std::span<const float> samples, const FeatureOptions& options);

}  // namespace heed
