#pragma once
/// What a message-passing library does for heed. The only implementation of the program is mpi.cpp, in a
/// library of its own; tests have one whose ranks are threads.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heed {

struct Sent {
  std::int64_t to;  ///< rank
  std::span<const std::byte> bytes;
};
struct Received {
  std::int64_t from;  ///< rank
  std::span<std::byte> into;
};

/// Ranks are numbered from 0. All functions are called by one thread at a time.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;
  /// Sends and receives these messages in any order of time, and returns when all have arrived. The
  /// messages from one rank to another belong together in the order in which both list them, over all
  /// calls. Returns the ranks that have not answered after `seconds`, ascending; then the messages are
  /// still under way and the process must end.
  virtual std::vector<std::int64_t> exchange(std::span<const Sent> sent,
                                             std::span<const Received> received,
                                             double seconds) = 0;
  /// The last call, by every rank.
  virtual void finish() = 0;
  /// Ends every rank at once, this one included, with this exit status.
  virtual void abort(int status) = 0;
};

}  // namespace heed
