/// Training allocates memory only in its first steps: later steps neither request memory from the
/// system nor call operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "autograd/memory/arena.h"
#include "tests/train/support.h"
#include "tests/train/training.h"
#include "train/loop/step.h"

namespace {
std::atomic<std::int64_t> calls_of_new{0};
}

void* operator new(std::size_t bytes) {
  calls_of_new.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(allocations)

BOOST_AUTO_TEST_CASE(steps_after_the_first_five_allocate_no_memory) {
  const Dataset data = reversals(24);
  std::vector<std::int64_t> samples(24);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::int64_t>(i);
  const std::vector<Batch> shards = shard(make_batch(data, samples), 4);
  const std::unique_ptr<Model> model = small_seq2seq();
  Optimizer optimizer({}, model->parameters());
  Team team(1);  // several threads would divide the shards differently in each step
  TrainStep step(*model, optimizer, team, {.clip_norm = 1.0});
  for (std::int64_t t = 1; t <= 5; ++t) step.run(shards, t, 1e-3);
  const std::int64_t of_new = calls_of_new, of_arrays = arena_counters().system_allocations;
  for (std::int64_t t = 6; t <= 25; ++t) step.run(shards, t, 1e-3);
  BOOST_TEST(calls_of_new - of_new == 0);
  BOOST_TEST(arena_counters().system_allocations - of_arrays == 0);
}

BOOST_AUTO_TEST_SUITE_END()
