#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "autograd/memory/heap.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(heap)

namespace {

/// Returns a new heap. A heap cannot be destroyed, so a list keeps all heaps reachable; otherwise
/// the leak checker would report them.
Heap& new_heap() {
  static auto* all = new std::vector<Heap*>;
  return *all->emplace_back(new Heap);
}

constexpr std::size_t mib = 1 << 20;

/// Performs `times` steps, each of which allocates or releases a block of random size; at most
/// `max_held` blocks exist at a time. Fills each block with a random byte. Returns whether all
/// blocks were aligned, had one reference, and were unchanged when they were released.
bool random_blocks_stay_intact(Heap& heap, unsigned seed, int times, std::size_t max_held) {
  std::mt19937 random(seed);
  struct Held {
    Block* block;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  bool intact = true;
  const auto release = [&](std::size_t i) {
    const auto* bytes = static_cast<const unsigned char*>(held[i].block->memory());
    intact = intact && bytes[0] == held[i].mark &&
             (held[i].bytes == 1 || std::memcmp(bytes, bytes + 1, held[i].bytes - 1) == 0);
    heap.release(held[i].block);
    held[i] = held.back();
    held.pop_back();
  };
  for (int t = 0; t < times; ++t) {
    if (held.size() >= max_held || (!held.empty() && random() % 2 == 0)) {
      release(random() % held.size());
      continue;
    }
    const std::size_t bytes = 1 + random() % (std::size_t{64} << random() % 13);
    Block* block = heap.allocate(bytes);
    intact = intact && reinterpret_cast<std::uintptr_t>(block->memory()) % 64 == 0 &&
             block->references == 1;
    const auto mark = static_cast<unsigned char>(random());
    std::memset(block->memory(), mark, bytes);
    held.push_back({block, bytes, mark});
  }
  while (!held.empty()) release(held.size() - 1);
  return intact;
}

}  // namespace

BOOST_AUTO_TEST_CASE(blocks_do_not_overlap_and_are_merged_when_released) {
  Heap& heap = new_heap();
  heap.release(heap.allocate(64 * mib));
  for (unsigned seed = 0; seed < 20; ++seed) {
    if (!random_blocks_stay_intact(heap, seed, 2000, 1 + seed * 10))
      BOOST_ERROR(
          "a block is misaligned, has several references or was overwritten; seed: " << seed);
  }
  heap.release(heap.allocate(64 * mib));
  const MemoryCounters after = heap.counters();
  BOOST_TEST(after.live_bytes == 0);
  BOOST_TEST(after.system_allocations == 1);
}

BOOST_AUTO_TEST_CASE(the_smallest_free_block_that_fits_is_used) {
  Heap& heap = new_heap();
  heap.release(heap.allocate(64 * mib));
  Block* const large = heap.allocate(3 * mib);
  Block* const between = heap.allocate(100);
  Block* const medium = heap.allocate(2 * mib);
  Block* const another = heap.allocate(100);
  heap.release(large);
  heap.release(medium);
  Block* const taken = heap.allocate(2 * mib - 500);
  BOOST_TEST(taken == medium);
  Block* const next = heap.allocate(2 * mib);  // free blocks: 3 MiB and about 61 MiB
  BOOST_TEST((next >= large && next < large + 3 * mib / sizeof(Block)));
  for (Block* block : {between, another, taken, next}) heap.release(block);
  BOOST_TEST(heap.counters().system_allocations == 1);
}

BOOST_AUTO_TEST_CASE(a_free_block_of_exactly_the_requested_size_is_used) {
  Heap& heap = new_heap();
  Block* const taken = heap.allocate(3 * mib);
  Block* const below = heap.allocate(100);  // separates `taken` from the free memory
  heap.release(taken);
  Block* const again = heap.allocate(3 * mib);
  BOOST_TEST(again == taken);
  for (Block* block : {again, below}) heap.release(block);
  BOOST_TEST(heap.counters().system_allocations == 1);
  Heap& full = new_heap();  // a block and the heap's sentinel fill a huge page
  full.release(full.allocate(2 * mib - 2 * sizeof(Block)));
  BOOST_TEST(full.counters().system_bytes == static_cast<std::int64_t>(2 * mib));
}

BOOST_AUTO_TEST_CASE(blocks_of_varying_sizes_reuse_freed_memory) {
  Heap& heap = new_heap();
  std::mt19937 random(1);
  std::int64_t max_live = 0;
  for (int step = 0; step < 300; ++step) {  // forward allocates a tape and backward frees it
    const double length = 0.7 + 0.6 * static_cast<double>(random()) / 4294967296.0;
    std::vector<Block*> tape;
    for (int layer = 0; layer < 12; ++layer) {
      for (const double width : {1.0, 3.0, 1.0, 4.0, 1.0})
        tape.push_back(heap.allocate(static_cast<std::size_t>(length * width * 300'000)));
    }
    max_live = std::max(max_live, heap.counters().live_bytes);
    for (; !tape.empty(); tape.pop_back()) {
      Block* gradient = heap.allocate(static_cast<std::size_t>(length * 300'000));
      heap.release(tape.back());
      heap.release(gradient);
    }
  }
  const MemoryCounters after = heap.counters();
  BOOST_TEST(after.live_bytes == 0);
  BOOST_TEST(after.peak_bytes >= max_live);
  BOOST_TEST(static_cast<double>(after.system_bytes) < 1.2 * static_cast<double>(max_live));
}

BOOST_AUTO_TEST_CASE(reset_peak_sets_the_peak_to_the_live_bytes) {
  Heap& heap = new_heap();
  Block* const kept = heap.allocate(mib);
  heap.release(heap.allocate(5 * mib));
  const std::int64_t live = heap.counters().live_bytes;
  BOOST_TEST(live >= static_cast<std::int64_t>(mib));
  BOOST_TEST(heap.counters().peak_bytes >= static_cast<std::int64_t>(6 * mib));
  heap.reset_peak();
  BOOST_TEST(heap.counters().peak_bytes == live);
  heap.release(kept);
  BOOST_TEST(heap.counters().live_bytes == 0);
  BOOST_TEST(heap.counters().peak_bytes == live);
}

BOOST_AUTO_TEST_CASE(blocks_of_a_heap_shared_by_threads_stay_intact) {
  Heap& heap = new_heap();
  std::vector<int> intact(4);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back(
        [&, t] { intact[t] = random_blocks_stay_intact(heap, 100 + t, 5000, 30); });
  for (std::thread& thread : threads) thread.join();
  for (const int w : intact) BOOST_TEST(w == 1);
  BOOST_TEST(heap.counters().live_bytes == 0);
}

BOOST_AUTO_TEST_CASE(repeated_allocation_of_the_same_sizes_needs_no_system_allocation) {
  Heap& heap = new_heap();
  const auto round = [&] {
    std::vector<Block*> blocks;
    for (std::size_t i = 1; i < 100; ++i) blocks.push_back(heap.allocate(i * 10'000));
    for (Block* block : blocks) heap.release(block);
  };
  round();
  const auto before = heap.counters().system_allocations;
  for (int i = 0; i < 10; ++i) round();
  BOOST_TEST(heap.counters().system_allocations == before);
}

BOOST_AUTO_TEST_SUITE_END()
