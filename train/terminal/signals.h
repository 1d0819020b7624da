#pragma once
#include <string>

namespace heed {

/// "SIGINT (Ctrl-C)": a signal that asks for a stop, for people.
std::string signal_text(int number);

/// While an object lives, SIGINT, SIGTERM and SIGHUP (a lost terminal; not under nohup) ask for a stop,
/// a second one (at least 0.1 s later, and no hangup) ends the process at once, and SIGUSR1 asks for
/// a checkpoint. Afterwards SIGUSR1 is ignored.
class SignalRequests {
 public:
  SignalRequests();
  ~SignalRequests();
  SignalRequests(const SignalRequests&) = delete;
  SignalRequests& operator=(const SignalRequests&) = delete;

  int stop() const;        ///< the signal that asked for a stop, or 0
  bool take_save() const;  ///< whether a checkpoint was asked for since the last call
};

}  // namespace heed
