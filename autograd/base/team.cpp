#include "autograd/base/team.h"

#include <sched.h>

#include <system_error>

#include "autograd/base/error.h"

namespace heed {

std::int64_t available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

Team::Team(std::int64_t threads) {
  const std::int64_t n = threads > 0 ? threads : available_processors();
  try {
    for (std::int64_t i = 1; i < n; ++i) workers_.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    const std::int64_t running = this->threads();
    end();
    throw Error(Exit::io,
                "{} threads are too many for this system, which runs {} (the number is the key "
                "threads, by default that of the processors): {}",
                n, running, error.what());
  } catch (...) {
    end();
    throw;
  }
}

Team::~Team() { end(); }

void Team::end() {
  ending_ = true;
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void Team::work() {
  for (std::int64_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) {
    try {
      if (interrupt_requested_ && interrupt_requested_()) throw Interrupted{};
      (*job_)(i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_ || i < failed_) {
        error_ = std::current_exception();
        failed_ = i;
      }
      next_ = count_;
    }
  }
}

namespace {

/// Waits until the value is no longer `old`: at first in a loop, because the system takes longer to
/// wake a thread than many rounds take.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  constexpr int attempts = 2000;  // some 50 µs
  for (int i = 0; i < attempts; ++i) {
    if (value.load() != old) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  value.wait(old);
}

}  // namespace

void Team::serve() {
  for (std::uint64_t seen = 0;;) {
    wait_while(round_, seen);
    seen = round_.load();
    if (ending_) return;
    work();
    if (busy_.fetch_sub(1) == 1) busy_.notify_all();
  }
}

void Team::run_function(std::int64_t count, const std::function<void(std::int64_t)>& job) {
  count_ = count;
  job_ = &job;
  next_ = 0;
  error_ = nullptr;
  if (count > 1 && !workers_.empty()) {
    busy_ = static_cast<std::int64_t>(workers_.size());
    round_.fetch_add(1);
    round_.notify_all();
    work();
    for (std::int64_t left = busy_.load(); left != 0; left = busy_.load()) wait_while(busy_, left);
  } else {
    work();
  }
  if (error_) std::rethrow_exception(error_);
}

}  // namespace heed
