#pragma once
#include <string>

namespace heed {

/// "SIGINT (Ctrl-C)": the name of a stop signal, for messages.
std::string signal_text(int number);

/// During an object's lifetime, SIGINT, SIGTERM and SIGHUP (a lost terminal; not under nohup)
/// request a stop, a second one (at least 0.1 s later, not a hangup) ends the process at once, and
/// SIGUSR1 requests a checkpoint. Afterwards SIGUSR1 is ignored.
class SignalRequests {
 public:
  SignalRequests();
  ~SignalRequests();
  SignalRequests(const SignalRequests&) = delete;
  SignalRequests& operator=(const SignalRequests&) = delete;

  int stop() const;                   ///< the signal that requested a stop, or 0
  bool consume_save_request() const;  ///< whether a checkpoint was requested since the last call
};

}  // namespace heed
