#pragma once
#include <atomic>
#include <string>

namespace heed {

/// The name of a stop signal for messages, such as "SIGINT (Ctrl-C)".
std::string signal_text(int number);

/// During the lifetime of this object, SIGINT, SIGTERM and SIGHUP (a lost terminal; ignored under
/// nohup) request a stop, and SIGUSR1 requests a checkpoint. A SIGINT or SIGTERM more than 0.1 s
/// after the first of these stop requests ends the process at once, if second_ends_process. Objects
/// that exist at the same time share their requests; the last one to end restores the handlers.
class SignalRequests {
 public:
  /// False in a process that must survive, such as a notebook's.
  static inline std::atomic<bool> second_ends_process = true;

  SignalRequests();
  ~SignalRequests();
  SignalRequests(const SignalRequests&) = delete;
  SignalRequests& operator=(const SignalRequests&) = delete;

  int stop() const;                   ///< the signal that requested a stop; 0: none
  bool consume_save_request() const;  ///< true: a checkpoint has been requested since the last call
};

}  // namespace heed
