#pragma once
/// The processes ("ranks") of a distributed run. Exchanges move bytes and never add numbers, so
/// that no result depends on the order in which a library adds.
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "train/distributed/transport.h"

namespace heed {

/// The numbers of messages and bytes that this rank has sent, and the seconds that it has spent in
/// exchanges.
struct Traffic {
  std::int64_t messages = 0, bytes = 0;
  double seconds = 0;

  Traffic operator-(const Traffic& o) const {
    return {messages - o.messages, bytes - o.bytes, seconds - o.seconds};
  }
  Traffic& operator+=(const Traffic& o) {
    return *this = {messages + o.messages, bytes + o.bytes, seconds + o.seconds};
  }
};

/// All ranks must call the exchanging functions in the same order. Each throws Error(io), naming
/// the ranks that did not answer and their hosts, when an exchange takes longer than the timeout.
class World {
 public:
  /// Exchanges the names of the hosts, and the sets of processors that the ranks may use.
  explicit World(std::unique_ptr<Transport> transport, const std::string& host);

  std::int64_t rank() const { return transport_->rank(); }
  std::int64_t size() const { return transport_->size(); }
  bool first() const { return rank() == 0; }
  const std::vector<std::string>& hosts() const { return hosts_; }  ///< host of each rank
  std::string name_of(std::int64_t rank) const;                     ///< "rank 2 on node7"
  /// The number of processors for this process, at least 1: those that it may use, divided by the
  /// number of ranks on its host that may use any of them.
  std::int64_t processors() const { return processors_; }
  void set_timeout(double seconds) { timeout_ = seconds; }
  /// Multiplies the timeout by ten for the lifetime of this object, while the ranks wait for one
  /// that works alone: it loads data, trains a tokenizer, saves a checkpoint or finishes its jobs.
  class ExtendedTimeout {
   public:
    explicit ExtendedTimeout(World& world) : world_(world) { world_.timeout_ *= 10; }
    ExtendedTimeout(const ExtendedTimeout&) = delete;
    ExtendedTimeout& operator=(const ExtendedTimeout&) = delete;
    ~ExtendedTimeout() { world_.timeout_ /= 10; }

   private:
    World& world_;
  };
  /// The last stop signal that note_stop() recorded, from this rank or another; 0: none.
  int stop() const { return stop_; }
  void note_stop(int signal) {
    if (signal != 0) stop_ = signal;
  }
  const Traffic& traffic() const { return traffic_; }
  /// Records that the ranks have agreed to end, all with the same status.
  void confirm_end() { end_confirmed_ = true; }
  /// The last call of a rank. If the ranks have agreed to end, waits for all of them and ends the
  /// message passing; otherwise ends all ranks at once.
  void leave(int status);

  /// Sends and receives messages of any size, as Transport::exchange does.
  void exchange(std::span<const Sent> sent, std::span<const Received> received);
  /// Copies rank 0's bytes to all ranks.
  void broadcast(std::span<std::byte> bytes);
  /// Returns rank 0's text on all ranks.
  std::string broadcast(std::string text);
  /// Copies every rank's part of the bytes to all ranks. Rank r's part is [bounds[r], bounds[r +
  /// 1]).
  void all_gather(std::span<std::byte> all, std::span<const std::int64_t> bounds);
  /// Returns the texts of all ranks.
  std::vector<std::string> all_gather(std::string_view local);

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void broadcast(T& value) { broadcast(std::as_writable_bytes(std::span(&value, 1))); }
  /// Returns the values of all ranks.
  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> all_gather_values(const T& local) {
    std::vector<T> all(static_cast<std::size_t>(size()));
    std::vector<std::int64_t> bounds;
    for (std::int64_t r = 0; r <= size(); ++r)
      bounds.push_back(r * static_cast<std::int64_t>(sizeof(T)));
    std::memcpy(&all[static_cast<std::size_t>(rank())], &local, sizeof(T));
    all_gather(std::as_writable_bytes(std::span(all)), bounds);
    return all;
  }

 private:
  std::unique_ptr<Transport> transport_;
  std::vector<std::string> hosts_;
  double timeout_ = 300;  // seconds
  std::int64_t processors_ = 1;
  Traffic traffic_;
  std::atomic<int> stop_{0};
  bool timed_out_ = false;  // true: messages are still pending
  bool end_confirmed_ = false;
};

}  // namespace heed
