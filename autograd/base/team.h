#pragma once
/// The worker threads of a run. The calling thread is one of them.
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace heed {

class Team {
 public:
  /// threads >= 1; 0: one for each processor this process may use.
  explicit Team(std::int64_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::int64_t threads() const { return static_cast<std::int64_t>(workers_.size()) + 1; }
  struct Interrupted {};
  /// From now on run() asks before each job whether to go on; it throws Interrupted where the answer
  /// was true. An empty function: no more questions.
  void interrupt_when(std::function<bool()> asked) { asked_ = std::move(asked); }
  /// Calls job(i) for i = 0 … count − 1, each once, on whichever thread is free, and returns when
  /// all are done. Results must not depend on who does what. The first exception is thrown again
  /// here.
  template <class Job>
  void run(std::int64_t count, const Job& job) {
    // A reference fits into a std::function, which then needs no memory of its own.
    run_function(count, std::cref(job));
  }

 private:
  void run_function(std::int64_t count, const std::function<void(std::int64_t)>& job);
  void work();
  void serve();

  std::vector<std::thread> workers_;
  std::atomic<std::uint64_t> round_{0};  ///< goes up when there is work, and at the end
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::int64_t> busy_{0};  ///< workers that have not finished this round
  std::atomic<bool> ending_{false};
  std::int64_t count_ = 0;
  const std::function<void(std::int64_t)>* job_ = nullptr;
  std::function<bool()> asked_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

/// Processors this process may run on (its affinity mask, not the machine's size).
std::int64_t available_processors();

}  // namespace heed
