#pragma once
/// The interface to a message-passing library. mpi.cpp implements it in a separate library; the
/// tests implement it with threads as ranks.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heed {

struct Sent {
  std::int64_t to;  ///< destination rank
  std::span<const std::byte> bytes;
};
struct Received {
  std::int64_t from;  ///< source rank
  std::span<std::byte> into;
};

/// The ranks are numbered from 0. Only one thread at a time may call these functions.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;
  /// Sends and receives these messages in any order. Returns an empty list when all have arrived,
  /// or after `seconds` the ranks that have not answered, ascending; messages are then still
  /// pending, and the process must end. The messages from one rank to another are matched in the
  /// order in which both ranks list them, over all calls.
  virtual std::vector<std::int64_t> exchange(std::span<const Sent> sent,
                                             std::span<const Received> received,
                                             double seconds) = 0;
  /// Ends the message passing. Must be the last call on every rank.
  virtual void finish() = 0;
  /// Ends every rank at once, including this one, with this exit status.
  virtual void abort(int status) = 0;
};

}  // namespace heed
