/// Sends messages through MPI between processes that mpirun, mpiexec or srun has started. This is a
/// separate library, because heed must run without MPI. It is compiled once for each installed MPI,
/// because MPI libraries are not binary compatible. It uses only the C interface of MPI 3.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "autograd/base/clock.h"
#include "train/distributed/transport.h"

namespace {

using namespace heed;

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (provided < MPI_THREAD_SERIALIZED)
      fail("this MPI does not support calls from more than one thread");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    sent_.resize(static_cast<std::size_t>(size_));
    received_.resize(static_cast<std::size_t>(size_));
  }

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }

  std::vector<std::int64_t> exchange(std::span<const Sent> sent, std::span<const Received> received,
                                     double seconds) override {
    std::vector<MPI_Request> requests;
    requests.reserve(sent.size() + received.size());  // MPI may keep pointers to the requests
    std::vector<std::int64_t> peers;
    for (const Received& message : received) {
      MPI_Irecv(message.into.data(), static_cast<int>(message.into.size()), MPI_BYTE,
                static_cast<int>(message.from), next_tag(received_[message.from]), MPI_COMM_WORLD,
                &requests.emplace_back());
      peers.push_back(message.from);
    }
    for (const Sent& message : sent) {
      MPI_Isend(message.bytes.data(), static_cast<int>(message.bytes.size()), MPI_BYTE,
                static_cast<int>(message.to), next_tag(sent_[message.to]), MPI_COMM_WORLD,
                &requests.emplace_back());
      peers.push_back(message.to);
    }
    double waited = 0, last = seconds_now();
    std::vector<MPI_Status> statuses(requests.size());
    for (int done = 0; true;) {
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data());
      if (done != 0) {
        check_sizes(received, statuses);
        return {};
      }
      // A gap of more than 1 s between polls counts as 1 s: the process was probably suspended
      // (Ctrl-Z, scontrol suspend).
      const double now = seconds_now();
      waited += std::min(now - std::exchange(last, now), 1.0);
      if (waited > seconds) return unanswered(requests, peers);
      sched_yield();  // the peer may need this core
    }
  }

  void finish() override { MPI_Finalize(); }
  void abort(int status) override {
    // MPICH's launcher ends after an abort without printing messages that it has not read yet.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    MPI_Abort(MPI_COMM_WORLD, status);
  }

 private:
  /// The tag of the next message to or from a rank. Different tags distinguish messages that
  /// overtake one another; every MPI allows tags up to 32,767.
  static int next_tag(int& count) { return count = (count + 1) % 32768; }

  [[noreturn]] static void fail(const char* message) {
    std::fprintf(stderr, "heed: %s\n", message);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }
  /// A message of a different size belongs to a different exchange: the ranks have diverged.
  static void check_sizes(std::span<const Received> received, std::vector<MPI_Status>& statuses) {
    for (std::size_t i = 0; i < received.size(); ++i) {
      int bytes = 0;
      MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
      if (static_cast<std::size_t>(bytes) != received[i].into.size())
        fail("a message from another rank has an unexpected size");
    }
  }

  static std::vector<std::int64_t> unanswered(std::vector<MPI_Request>& requests,
                                              const std::vector<std::int64_t>& peers) {
    std::vector<std::int64_t> ranks;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      int done = 0;
      MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
      if (done == 0) ranks.push_back(peers[i]);
    }
    std::ranges::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  int rank_ = 0, size_ = 1;
  std::vector<int> sent_,
      received_;  // numbers of messages to and from each rank, modulo the number of tags
};

}  // namespace

/// Starts MPI. Must not be called more than once; the caller owns the result.
extern "C" heed::Transport* heed_start_mpi() { return std::make_unique<MpiTransport>().release(); }
