#pragma once
/// Work on many lines, spread over threads.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace heed {

/// Calls work(k, from, to) for parts [from, to) of 0 … count − 1, part k on a thread of its own,
/// and returns the number of parts, at most `threads` (0: as many as there are cores). Below
/// `least` a part would cost more than it saves. The first exception, by part, is thrown again
/// here.
template <class Work>
std::size_t in_parts(std::size_t count, std::size_t least, int threads, const Work& work) {
  std::size_t n =
      threads > 0 ? static_cast<std::size_t>(threads) : std::thread::hardware_concurrency();
  n = std::clamp<std::size_t>(count / least, 1, std::max<std::size_t>(1, n));
  std::vector<std::exception_ptr> failures(n);
  const auto part = [&](std::size_t k) {
    try {
      work(k, count * k / n, count * (k + 1) / n);
    } catch (...) {
      failures[k] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::size_t k = 1; k < n; ++k) workers.emplace_back(part, k);
    part(0);
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return n;
}

}  // namespace heed
