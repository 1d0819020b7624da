#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "autograd/base/sanitizers.h"
#include "autograd/memory/arena.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(arena)

namespace {

/// Whether the arena reuses released blocks. With AddressSanitizer, every block is requested from
/// the system.
bool arena_keeps() {
  release_block(allocate_block(100));
  const auto before = arena_counters().system_allocations;
  release_block(allocate_block(100));
  return arena_counters().system_allocations == before;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_byte_of_a_block_is_usable_and_blocks_do_not_overlap) {
  std::vector<std::pair<Block*, std::size_t>> blocks;
  for (std::size_t bytes = 0; bytes < 3000; ++bytes)
    blocks.emplace_back(allocate_block(bytes), bytes);
  for (const std::size_t bytes :
       {4096u, 4097u, 65536u, 100001u, (2u << 20) - 64u, (2u << 20) + 1u}) {
    blocks.emplace_back(allocate_block(bytes), bytes);
  }
  const auto mark = [](std::size_t i) { return static_cast<unsigned char>(i * 37 + 1); };
  for (std::size_t i = 0; i < blocks.size(); ++i)
    std::memset(blocks[i].first->memory(), mark(i), blocks[i].second);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    const auto* memory = static_cast<const unsigned char*>(block->memory());
    bool intact =
        reinterpret_cast<std::uintptr_t>(memory) % 64 == 0 && Block::of(block->memory()) == block;
    for (std::size_t k = 0; k < bytes; ++k) intact = intact && memory[k] == mark(i);
    if (!intact)
      BOOST_ERROR(
          "a block of " << bytes
                        << " bytes is misaligned, was overwritten or is not found by Block::of");
    release_block(block);
  }
}

BOOST_AUTO_TEST_CASE(a_reused_block_has_one_reference) {
  if (!arena_keeps()) return;
  Block* block = allocate_block(5000);
  block->references = 5;
  release_block(block);
  Block* again = allocate_block(5000);
  BOOST_TEST(again == block);
  BOOST_TEST(again->references.load() == 1);
  release_block(again);
}

BOOST_AUTO_TEST_CASE(repeated_allocation_of_the_same_sizes_needs_no_system_allocation) {
  if (!arena_keeps()) return;
  const auto round = [] {
    std::vector<Block*> blocks;
    for (std::size_t i = 1; i < 200; ++i) blocks.push_back(allocate_block(i * i * 7));
    for (Block* block : blocks) release_block(block);
  };
  round();
  const MemoryCounters before = arena_counters();
  for (int i = 0; i < 5; ++i) round();
  BOOST_TEST(arena_counters().system_allocations == before.system_allocations);
  BOOST_TEST(arena_counters().system_bytes == before.system_bytes);
}

BOOST_AUTO_TEST_CASE(blocks_freed_by_another_thread_return_to_their_arena) {
  if (!arena_keeps()) return;
  const auto round = [] {
    std::vector<Block*> blocks;
    for (int i = 0; i < 50; ++i) blocks.push_back(allocate_block(10000));
    std::thread([blocks] {
      for (Block* block : blocks) release_block(block);
    }).join();
  };
  round();
  const auto before = arena_counters().live_bytes;  // sum over all arenas
  for (int i = 0; i < 5; ++i) round();
  BOOST_TEST(arena_counters().live_bytes == before);
}

BOOST_AUTO_TEST_CASE(a_new_thread_reuses_the_arena_of_an_ended_thread) {
  if (!arena_keeps()) return;
  const auto worker = [] {
    std::thread([] {
      std::vector<Block*> blocks;
      for (int i = 0; i < 50; ++i) blocks.push_back(allocate_block(30000));
      for (Block* block : blocks) release_block(block);
    }).join();
  };
  worker();
  const auto before = arena_counters().live_bytes;
  for (int i = 0; i < 5; ++i) worker();
  BOOST_TEST(arena_counters().live_bytes == before);
}

/// Allocates in its destructor, which runs after the thread has returned its arena.
struct AllocatesInDestructor {
  Block* early = nullptr;
  bool* alone = nullptr;
  ~AllocatesInDestructor() {
    Block* late = allocate_block(5000);
    std::memset(late->memory(), 1, 5000);
    std::thread([&] {
      Block* other = allocate_block(5000);
      *alone = other->home == nullptr || other->home != late->home;
      release_block(other);
    }).join();
    release_block(late);
    release_block(early);
  }
};

BOOST_AUTO_TEST_CASE(a_thread_that_allocates_after_returning_its_arena_acquires_another) {
  bool alone = false;
  std::thread([&] {
    thread_local AllocatesInDestructor last;  // constructed first, destroyed last
    last.alone = &alone;
    last.early = allocate_block(5000);
  }).join();
  BOOST_TEST(alone);
}

BOOST_AUTO_TEST_CASE(blocks_passed_to_and_released_by_another_thread_are_intact) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Block*> waiting;
  constexpr int count = 20000;
  bool intact = true;
  std::thread consumer([&] {
    for (int i = 0; i < count;) {
      std::vector<Block*> received;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !waiting.empty(); });
        received.swap(waiting);
      }
      for (Block* block : received) {
        intact = intact && *static_cast<int*>(block->memory()) == i++;
        release_block(block);
      }
    }
  });
  for (int i = 0; i < count; ++i) {
    Block* block = allocate_block(static_cast<std::size_t>(64 + i % 7 * 100));
    *static_cast<int*>(block->memory()) = i;
    const std::lock_guard lock(mutex);
    waiting.push_back(block);
    if (i % 100 == 0 || i + 1 == count) changed.notify_one();
  }
  consumer.join();
  BOOST_TEST(intact);
}

enum class Outcome { survived, failed, no_limit };

/// Limits the process to 96 MiB more than it uses and allocates blocks until memory is exhausted.
/// Then releases all blocks and allocates the same number again, three times; this throws if memory
/// has leaked. `survived` means that exhaustion threw an Error after more than 20 blocks;
/// `no_limit` means that the system ignores the limit, as an emulator may.
Outcome survive_exhausted_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (96u << 20);
  rlimit limit{most, most};
  if (::setrlimit(RLIMIT_AS, &limit) != 0 || ::getrlimit(RLIMIT_AS, &limit) != 0)
    return Outcome::failed;
  if (limit.rlim_cur != most) return Outcome::no_limit;
  std::vector<Block*> blocks;
  blocks.reserve(1000);
  bool refused = false;
  while (!refused && blocks.size() < 1000) {
    try {
      blocks.push_back(allocate_block(3u << 20));
      std::memset(blocks.back()->memory(), 1, 3u << 20);
    } catch (const Error&) {
      refused = true;
    }
  }
  const std::size_t count = blocks.size();
  for (int round = 0; round < 3; ++round) {
    for (Block* block : blocks) release_block(block);
    blocks.clear();
    while (blocks.size() < count) blocks.push_back(allocate_block(3u << 20));
  }
  return refused && count > 20 ? Outcome::survived : Outcome::failed;
}

BOOST_AUTO_TEST_CASE(exhausted_memory_throws_an_error_and_leaks_nothing) {
  if (thread_sanitizer) return;  // it also allocates, and aborts when memory is exhausted
  if (!arena_keeps()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    Outcome outcome = Outcome::failed;
    try {
      outcome = survive_exhausted_memory();
    } catch (...) {
    }
    ::_exit(static_cast<int>(outcome));
  }
  int status = -1;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == static_cast<int>(Outcome::no_limit))
    BOOST_TEST_MESSAGE("skipped: this system ignores memory limits");
  else
    BOOST_TEST(WEXITSTATUS(status) == static_cast<int>(Outcome::survived));
}

BOOST_AUTO_TEST_CASE(a_block_larger_than_memory_is_refused) {
  try {
    release_block(allocate_block(std::size_t{1} << 60));
    BOOST_ERROR("2^60 bytes were allocated");
  } catch (const Error& error) {
    BOOST_TEST((error.code == Exit::io));
    BOOST_TEST(std::string(error.what()).find("out of memory") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(new_arrays_in_a_scope_are_poisoned_and_results_of_arithmetic_remain_so) {
  const auto poisoned = [](const Array& x, const auto& f) {
    return std::all_of(x.values().begin(), x.values().end(),
                       [&](real v) { return PoisonNewBlocks::is_poison(f(v)); });
  };
  {
    const PoisonNewBlocks poison;
    const Array x({5});
    BOOST_TEST(poisoned(x, [](real v) { return v; }));
    BOOST_TEST(poisoned(x, [](real v) { return -v; }));
    BOOST_TEST(poisoned(x, [](real v) { return 2 * v - 1; }));
    { const PoisonNewBlocks inner; }
    BOOST_TEST(poisoned(Array({5}), [](real v) { return v; }));
  }
  BOOST_TEST(!PoisonNewBlocks::active);
  for (const real v : {real(0), std::numeric_limits<real>::quiet_NaN()})
    BOOST_TEST(!PoisonNewBlocks::is_poison(v));
}

BOOST_AUTO_TEST_SUITE_END()
