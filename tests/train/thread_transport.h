#pragma once
/// Ranks that are threads of this process, to test distributed runs without MPI.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "train/distributed/world.h"

namespace heed::test {

/// The messages that ranks have sent and not yet received.
struct Post {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<std::string>> boxes;  // (from, to)
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(Post& post, std::int64_t rank, std::int64_t size)
      : post_(post), rank_(rank), size_(size) {}

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }
  std::vector<std::int64_t> exchange(std::span<const Sent> sent, std::span<const Received> received,
                                     double seconds) override {
    std::unique_lock lock(post_.mutex);
    for (const Sent& message : sent) {
      post_.boxes[{rank_, message.to}].emplace_back(
          reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size());
    }
    post_.changed.notify_all();
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::vector<std::int64_t> missing;
    for (const Received& message : received) {
      auto& box = post_.boxes[{message.from, rank_}];
      if (!post_.changed.wait_until(lock, end, [&] { return !box.empty(); })) {
        if (missing.empty() || missing.back() != message.from) missing.push_back(message.from);
        continue;
      }
      if (box.front().size() != message.into.size())
        throw std::runtime_error("the sizes of message and buffer differ");
      std::memcpy(message.into.data(), box.front().data(), message.into.size());
      box.pop_front();
    }
    return missing;
  }
  void finish() override {}
  void abort(int) override {}

 private:
  Post& post_;
  std::int64_t rank_, size_;
};

/// Calls work(world) for each rank: for rank 0 on the calling thread, for each other rank on a new
/// thread. The ranks have host names as if they ran on `hosts` hosts (0: one for each rank).
inline void on_ranks(std::int64_t ranks, const std::function<void(World&)>& work,
                     std::int64_t hosts = 0) {
  Post post;
  const auto run = [&](std::int64_t rank) {
    World world(std::make_unique<ThreadTransport>(post, rank, ranks),
                "host " + std::to_string(hosts > 0 ? rank % hosts : rank));
    work(world);
  };
  std::vector<std::thread> threads;
  for (std::int64_t rank = 1; rank < ranks; ++rank) threads.emplace_back(run, rank);
  run(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace heed::test
