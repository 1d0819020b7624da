#pragma once
/// Threads that execute jobs in parallel. The calling thread is one of them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace heed {

/// The number of processors that this process may run on, according to its affinity mask.
std::int64_t available_processors();

class Team {
 public:
  /// threads: the number of threads; 0: one for each processor that this process may run on. Throws
  /// Error(io) if the system cannot start so many.
  explicit Team(std::int64_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::int64_t threads() const { return static_cast<std::int64_t>(workers_.size()) + 1; }
  struct Interrupted {};
  /// Makes run() call `requested` before each job, on the job's thread, and throw Interrupted if it
  /// returns true. An empty function disables the check.
  void interrupt_when(std::function<bool()> requested) {
    interrupt_requested_ = std::move(requested);
  }
  /// Calls job(i) for i = 0 … count − 1, each once, on whichever thread is free, and returns when
  /// all are done. Results must not depend on the thread. After an exception no further job starts,
  /// and run() rethrows the exception; if several jobs threw, that of the job with the smallest i.
  template <class Job>
  void run(std::int64_t count, const Job& job) {
    // A reference fits into a std::function without an allocation.
    run_function(count, std::cref(job));
  }

 private:
  void run_function(std::int64_t count, const std::function<void(std::int64_t)>& job);
  void work();
  void serve();
  void end();

  std::vector<std::thread> workers_;
  std::atomic<std::uint64_t> round_{0};  ///< incremented when there is work, and on destruction
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::int64_t> busy_{0};  ///< number of workers that have not finished this round
  std::atomic<bool> ending_{false};
  std::int64_t count_ = 0;
  const std::function<void(std::int64_t)>* job_ = nullptr;
  std::function<bool()> interrupt_requested_;
  std::mutex mutex_;
  std::exception_ptr error_;
  std::int64_t failed_ = 0;  ///< index of the job that threw error_
};

/// Divides [0, count) into ranges and calls work(k, from, to) in parallel for every range k, which
/// is [from, to). There is at most one range for each of `threads` threads (0: one thread per
/// processor). Each has at least `min_part` elements, because a smaller one costs more time than it
/// saves; but if `count` is less than `min_part`, there is one range of all elements. Returns the
/// number of ranges.
template <class Work>
std::size_t in_parts(std::size_t count, std::size_t min_part, std::int64_t threads,
                     const Work& work) {
  if (threads <= 0) threads = available_processors();
  const auto n = std::clamp<std::size_t>(count / min_part, 1, threads);
  Team(n).run(n, [&](std::size_t k) { work(k, count * k / n, count * (k + 1) / n); });
  return n;
}

}  // namespace heed
