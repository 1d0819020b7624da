#pragma once
/// Time limits that are valid on every machine, busy or idle: they limit processor time, which
/// excludes waiting, relative to the processor time of reference work.
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <string>

namespace heed::test {

/// Processor seconds of all threads of this process.
inline double processor_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Processor seconds of the fastest of several runs. Other programs that share the caches or the
/// core make work slower, never faster.
template <class Work>
double min_seconds(int times, const Work& work) {
  double seconds = std::numeric_limits<double>::infinity();
  for (int i = 0; i < times; ++i) {
    const double begin = processor_seconds();
    work();
    seconds = std::min(seconds, processor_seconds() - begin);
  }
  return seconds;
}

/// Processor seconds of a fixed amount of reference work similar to a parser's: strings are
/// created, inserted into a tree, looked up and freed. Like the tested code, it is compiled with
/// the sanitizers of the build. It takes 50 ms on one core of an AMD EPYC (Zen 4), in a release
/// build.
inline double yardstick() {
  static const double seconds = min_seconds(3, [] {
    std::map<std::string, std::size_t> seen;
    for (unsigned i = 0, x = 1; i < 60'000; ++i) {
      x = x * 1'664'525 + 1'013'904'223;
      seen["a text that takes memory " + std::to_string(x)] += i;
    }
    volatile std::size_t sum = 0;
    for (const auto& [text, number] : seen) sum = sum + seen.find(text)->second;
  });
  return seconds;
}

/// The maximum result of growth() for work in linear time.
constexpr double growth_limit = 24;

/// The ratio of the minimum times for large and small work, which differ in size by a factor of
/// eight: 8 if time grows linearly, 64 if quadratically. `small` and `large` do the work once and
/// return processor seconds. They are repeated, in at most ten rounds, while the ratio exceeds
/// `growth_limit`.
template <class Small, class Large>
double growth(const Small& small, const Large& large) {
  // Makes glibc keep freed memory. Otherwise it returns memory to the kernel above a threshold that
  // only the large work reaches, and on some machines page faults then take longer than the work.
  mallopt(M_TRIM_THRESHOLD, 1 << 28);
  mallopt(M_MMAP_THRESHOLD, 1 << 25);
  double min_small = std::numeric_limits<double>::infinity(), min_large = min_small;
  for (int i = 0; i < 10; ++i) {
    for (int k = 0; k < 3; ++k) min_small = std::min(min_small, small());
    min_large = std::min(min_large, large());
    if (min_large <= growth_limit * min_small) break;
  }
  return min_large / min_small;
}

}  // namespace heed::test
