#include "train/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace heed {

namespace {

// Not sig_atomic_t: any thread may be the one that takes a signal, and others read these. Without
// locks, they may be written in a handler.
std::atomic<int> stop_signal{0};
std::atomic<bool> save_wanted{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
struct sigaction before_int, before_term, before_hup;

void on_signal(int number) {
  if (number == SIGUSR1) {
    save_wanted = true;
    return;
  }
  int none = 0;
  if (!stop_signal.compare_exchange_strong(none, number)) _exit(128 + number);
}

}  // namespace

SignalRequests::SignalRequests() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  stop_signal = 0;
  save_wanted = false;
  sigaction(SIGINT, &action, &before_int);
  sigaction(SIGTERM, &action, &before_term);
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGHUP, nullptr, &before_hup);
  if (before_hup.sa_handler != SIG_IGN)  // nohup's wish is kept
    sigaction(SIGHUP, &action, nullptr);
}

SignalRequests::~SignalRequests() {
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
  sigaction(SIGHUP, &before_hup, nullptr);
  signal(SIGUSR1, SIG_IGN);  // nothing is left to save; by default it would end the process
}

int SignalRequests::stop() const { return stop_signal; }
bool SignalRequests::take_save() const { return save_wanted.exchange(false); }

}  // namespace heed
