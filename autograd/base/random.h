#pragma once
/// Random numbers as a function of a key and a position, independent of previous draws:
/// Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror and Shaw, "Parallel random
/// numbers: as easy as 1, 2, 3", SC 2011). The numbers for a key and a position are the same on any
/// thread, in any order and in a resumed run.
#include <array>
#include <cmath>
#include <cstdint>

namespace heed {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Four independent 32-bit numbers for a 128-bit counter and a 64-bit key.
constexpr PhiloxBlock philox(PhiloxBlock counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// The purpose of a stream of numbers. Streams with different purposes never overlap.
enum class Stream : std::uint32_t {
  init = 1,
  dropout = 2,
  shuffle = 3,
  data = 4,
  sampling = 5,
  check = 6,
  pattern = 7,
  cutoff = 8,
  segmentation = 9,
  masking = 10,
  augment = 11
};

/// Identifies one stream of numbers: the run's seed, the stream's purpose, and two indices (step
/// and shard for dropout, epoch for shuffling, …). `position` is the index of a block of four
/// numbers within the stream.
struct RandomKey {
  std::uint64_t seed = 0;
  Stream stream = Stream::check;
  std::uint64_t index = 0;  ///< step, epoch, sentence
  std::uint32_t part = 0;   ///< shard and call, or parameter; below 2^28

  constexpr PhiloxBlock block(std::uint32_t position) const {
    const auto tag = (static_cast<std::uint32_t>(stream) << 28) | (part & 0x0FFFFFFFu);
    return philox(
        {position, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), tag},
        static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  }
};

/// Iterates over the numbers of one stream. A UniformRandomBitGenerator of the C++ standard.
class Random {
 public:
  using result_type = std::uint32_t;
  explicit constexpr Random(RandomKey key) : key_(key) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xFFFFFFFFu; }

  constexpr std::uint32_t operator()() {
    if (lane_ == 4) {
      block_ = key_.block(position_++);
      lane_ = 0;
    }
    return block_[lane_++];
  }
  /// Uniform in [0, n), n > 0, without bias (Lemire 2019, with rejection).
  constexpr std::uint32_t below(std::uint32_t n) {
    std::uint64_t m = std::uint64_t{(*this)()} * n;
    if (static_cast<std::uint32_t>(m) < n) {
      const std::uint32_t reject = (0u - n) % n;
      while (static_cast<std::uint32_t>(m) < reject) m = std::uint64_t{(*this)()} * n;
    }
    return static_cast<std::uint32_t>(m >> 32);
  }
  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform() {
    const std::uint64_t hi = (*this)() >> 5, lo = (*this)() >> 6;
    return static_cast<double>((hi << 26) | lo) * 0x1.0p-53;
  }
  /// Standard normal (Box and Muller 1958).
  double normal() {
    const double u = 1.0 - uniform(), v = uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

 private:
  RandomKey key_;
  PhiloxBlock block_{};
  std::uint32_t position_ = 0;
  std::uint32_t lane_ = 4;
};

}  // namespace heed
