#include "train/terminal/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>

namespace heed {

namespace {

// Any thread may receive the signal, and other threads read these variables. A handler may write
// lock-free atomics; sig_atomic_t is safe only within one thread.
std::atomic<int> stop_signal{0};
std::atomic<std::int64_t> stop_time{0};
std::atomic<bool> save_wanted{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);
constexpr std::int64_t same_request = 100'000'000;  // nanoseconds
std::atomic<int> objects{0};
struct sigaction before_int, before_term, before_hup, before_usr1;

std::int64_t nanoseconds() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// A lost terminal causes two SIGHUPs (from the shell, then the system), and timeout(1) sends its
/// signal twice (to the process, then to its group). Signals within 0.1 s of the first therefore
/// count as one request, and a SIGHUP never counts as a second request.
void on_signal(int number) {
  if (number == SIGUSR1) {
    save_wanted = true;
    return;
  }
  const std::int64_t now = nanoseconds();
  std::int64_t first = 0;
  if (stop_time.compare_exchange_strong(first, now)) {
    stop_signal = number;
  } else if (SignalRequests::second_ends_process && number != SIGHUP &&
             now - first > same_request) {
    _exit(128 + number);
  }
}

}  // namespace

std::string signal_text(int number) {
  return number == SIGINT ? "SIGINT (Ctrl-C)" : number == SIGHUP ? "SIGHUP (hangup)" : "SIGTERM";
}

SignalRequests::SignalRequests() {
  if (objects++ > 0) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  stop_signal = 0;
  stop_time = 0;
  save_wanted = false;
  sigaction(SIGINT, &action, &before_int);
  sigaction(SIGTERM, &action, &before_term);
  sigaction(SIGUSR1, &action, &before_usr1);
  sigaction(SIGHUP, nullptr, &before_hup);
  if (before_hup.sa_handler != SIG_IGN)  // SIGHUP is ignored under nohup
    sigaction(SIGHUP, &action, nullptr);
}

SignalRequests::~SignalRequests() {
  if (--objects > 0) return;
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
  sigaction(SIGHUP, &before_hup, nullptr);
  sigaction(SIGUSR1, &before_usr1, nullptr);
}

int SignalRequests::stop() const { return stop_signal; }
bool SignalRequests::consume_save_request() const { return save_wanted.exchange(false); }

}  // namespace heed
