// Delays and reorders the sends of an MPI library; loaded by LD_PRELOAD. Each MPI_Isend is delayed
// by a random number of calls of MPI_Testall, and due sends begin in random order. With
// HEED_TEST_LATENCY_US, the delay of each send is that number of microseconds instead.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

namespace {

struct Held {
  const void* data;
  int count;
  MPI_Datatype type;
  int to, tag;
  MPI_Comm comm;
  MPI_Request* request;
  int calls;     // number of calls of MPI_Testall before the send begins
  double begin;  // with HEED_TEST_LATENCY_US: time at which the send begins, in microseconds
};

double microseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

double latency() {
  static const char* const text = std::getenv("HEED_TEST_LATENCY_US");
  static const double value = text != nullptr ? std::atof(text) : -1;
  return value;
}

std::vector<Held> held;
long messages = 0;

int draw(int below) {
  static std::mt19937 random(static_cast<unsigned>(getpid()));
  return static_cast<int>(random() % static_cast<unsigned>(below));
}

}  // namespace

extern "C" int MPI_Finalize() {
  std::fprintf(stderr, "%ld messages were held back\n", messages);
  return PMPI_Finalize();
}

extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  ++messages;
  *request = MPI_REQUEST_NULL;
  held.push_back({data, count, type, to, tag, comm, request, draw(20), microseconds() + latency()});
  return MPI_SUCCESS;
}

extern "C" int MPI_Testall(int count, MPI_Request requests[], int* done, MPI_Status statuses[]) {
  std::vector<Held> later, due;
  const double now = latency() >= 0 ? microseconds() : 0;
  for (Held& message : held) {
    const bool wait = latency() >= 0 ? now < message.begin : --message.calls > 0;
    (wait ? later : due).push_back(message);
  }
  for (; !due.empty(); due.pop_back()) {
    std::swap(due[static_cast<std::size_t>(draw(static_cast<int>(due.size())))], due.back());
    const Held& m = due.back();
    PMPI_Isend(m.data, m.count, m.type, m.to, m.tag, m.comm, m.request);
  }
  held = later;
  if (held.empty()) return PMPI_Testall(count, requests, done, statuses);
  int arrived = 0;
  // Any MPI call lets the library advance the sends that have begun.
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
  return *done = 0;
}
