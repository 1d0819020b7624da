#pragma once
/// The processes ("ranks") of a distributed run. They move bytes and never add numbers on the way, so that
/// no result depends on a library's order of additions.
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "train/distributed/transport.h"

namespace heed {

/// What this rank has sent, and the time that it spent in exchanges.
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

/// Every function here is called by all ranks, in the same order. Each throws Error(io), naming the ranks
/// that did not answer and their hosts, when an exchange takes longer than the timeout.
class World {
 public:
  /// Also exchanges the hosts' names and which processors the ranks may use.
  explicit World(std::unique_ptr<Transport> transport, const std::string& host);

  std::int64_t rank() const { return transport_->rank(); }
  std::int64_t size() const { return transport_->size(); }
  bool first() const { return rank() == 0; }
  const std::vector<std::string>& hosts() const { return hosts_; }  ///< of each rank
  std::string name_of(std::int64_t rank) const;                     ///< "rank 2 on node7"
  /// The processors that this process may use, shared evenly with the other ranks on its host that may
  /// use the same ones.
  std::int64_t processors() const { return processors_; }
  void set_timeout(double seconds) { timeout_ = seconds; }
  /// While one exists, this rank waits ten times as long, because another works alone: loads data, trains a
  /// tokenizer, saves.
  class ExtendedTimeout {
   public:
    explicit ExtendedTimeout(World& world) : world_(world) { world_.timeout_ *= 10; }
    ExtendedTimeout(const ExtendedTimeout&) = delete;
    ExtendedTimeout& operator=(const ExtendedTimeout&) = delete;
    ~ExtendedTimeout() { world_.timeout_ /= 10; }

   private:
    World& world_;
  };
  /// A stop signal that this rank has received, or has learnt that another has; 0: none.
  int stop() const { return stop_; }
  void note_stop(int signal) {
    if (signal != 0) stop_ = signal;
  }
  const Traffic& traffic() const { return traffic_; }
  /// Marks the exit as agreed: every rank ends with the same status.
  void confirm_end() { end_confirmed_ = true; }
  /// The last call. Ends this rank in step with the others if they agreed to end, else all at once.
  void leave(int status);

  void exchange(std::span<const Sent> sent, std::span<const Received> received);
  /// Copies rank 0's bytes to all ranks.
  void broadcast(std::span<std::byte> bytes);
  /// The same for a text of any length.
  std::string broadcast(std::string text);
  /// Part r of the bytes, [bounds[r], bounds[r + 1]), is rank r's; every rank gets all parts.
  void all_gather(std::span<std::byte> all, std::span<const std::int64_t> bounds);
  /// A text from each rank.
  std::vector<std::string> all_gather(std::string_view local);

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void broadcast(T& value) { broadcast(std::as_writable_bytes(std::span(&value, 1))); }
  /// One value from each rank.
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
  bool timed_out_ = false;  // messages are still under way
  bool end_confirmed_ = false;
};

}  // namespace heed
