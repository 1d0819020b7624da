#include "train/signals.h"

#include <signal.h>
#include <unistd.h>

namespace heed {

namespace {

volatile sig_atomic_t stop_signal = 0;
volatile sig_atomic_t save_wanted = 0;
struct sigaction before_int, before_term;

void on_signal(int number) {
  if (number == SIGUSR1) {
    save_wanted = 1;
  } else if (stop_signal != 0) {
    _exit(128 + number);
  } else {
    stop_signal = number;
  }
}

}  // namespace

SignalRequests::SignalRequests() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  stop_signal = 0;
  save_wanted = 0;
  sigaction(SIGINT, &action, &before_int);
  sigaction(SIGTERM, &action, &before_term);
  sigaction(SIGUSR1, &action, nullptr);
}

SignalRequests::~SignalRequests() {
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
  signal(SIGUSR1, SIG_IGN);  // nothing is left to save; by default it would end the process
}

int SignalRequests::stop() const { return stop_signal; }
bool SignalRequests::take_save() const {
  if (save_wanted == 0) return false;
  save_wanted = 0;  // not before it was seen: a request that comes in between would be lost
  return true;
}

}  // namespace heed
