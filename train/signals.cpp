#include "train/signals.h"

#include <signal.h>
#include <unistd.h>

namespace heed {

namespace {

volatile sig_atomic_t stop_signal = 0;
volatile sig_atomic_t save_wanted = 0;
struct sigaction before_int, before_term, before_usr1;

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
  sigaction(SIGUSR1, &action, &before_usr1);
}

SignalRequests::~SignalRequests() {
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
  sigaction(SIGUSR1, &before_usr1, nullptr);
}

int SignalRequests::stop() const { return stop_signal; }
bool SignalRequests::take_save() const {
  const bool wanted = save_wanted != 0;
  save_wanted = 0;
  return wanted;
}

}  // namespace heed
