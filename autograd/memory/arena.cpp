#include "autograd/memory/arena.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <type_traits>
#include <vector>

#include "autograd/base/sanitizers.h"
#include "autograd/base/shape.h"

HEED_BEGIN

namespace {

constexpr std::size_t smallest = 64;    // bytes without the header
constexpr std::size_t slab = 1 << 14;   // bytes cut into blocks at a time, or one larger block
constexpr std::size_t large = 1 << 16;  // bytes; blocks of this size and above come from the heap
/// The number of larger classes, up to twice the size, that are tried before memory is requested
/// from the heap.
constexpr std::uint32_t larger_classes = 4;
constexpr std::uint32_t classes = 4 * 10 + larger_classes + 1;

// AddressSanitizer cannot detect errors in reused blocks, so builds with it, or with HEED_NO_ARENA,
// reuse none.
#if defined(HEED_NO_ARENA)
constexpr bool keep = false;
#else
constexpr bool keep = !address_sanitizer;
#endif

std::size_t class_bytes(std::uint32_t c) { return (smallest << (c / 4)) / 4 * (4 + c % 4); }

std::uint32_t class_of(std::size_t bytes) {
  if (bytes <= smallest) return 0;
  const auto power = static_cast<std::uint32_t>(std::bit_width((bytes - 1) / smallest)) - 1;
  const std::size_t quarter = (smallest << power) / 4;
  return 4 * power + static_cast<std::uint32_t>((bytes - 1) / quarter) - 3;
}

// The payload of a quiet NaN survives arithmetic; its sign need not.
using Bits = std::conditional_t<sizeof(real) == 8, std::uint64_t, std::uint32_t>;
constexpr int mantissa_bits = sizeof(real) == 8 ? 52 : 23;
constexpr Bits sign_bit = Bits{1} << (8 * sizeof(real) - 1);
constexpr Bits quiet_nan = (sign_bit - 1) & ~((Bits{1} << (mantissa_bits - 1)) - 1);
constexpr real poison = std::bit_cast<real>(quiet_nan | Bits{0x2e2d});

Heap& heap() {
  static auto* heap = new Heap;  // never destroyed: threads may end after main
  return *heap;
}

/// Without reuse, each block comes from the system. These are the number of such blocks so far and
/// the size in bytes of those in use.
std::atomic<std::int64_t> unkept_allocations{0};
std::atomic<std::int64_t> unkept_bytes{0};

Block* ask_system(std::size_t bytes) {
  const std::size_t whole = sizeof(Block) + bytes;
  void* memory = ::operator new (whole, std::align_val_t{alignof(Block)}, std::nothrow);
  if (memory == nullptr) throw Error(Exit::io, "out of memory: {} MiB more needed", whole >> 20);
  unkept_allocations.fetch_add(1, std::memory_order_relaxed);
  unkept_bytes.fetch_add(static_cast<std::int64_t>(whole), std::memory_order_relaxed);
  Block* block = new (memory) Block;
  block->bytes = whole;
  return block;
}

[[maybe_unused]] void give_to_system(Block* block) {
  unkept_bytes.fetch_sub(static_cast<std::int64_t>(block->bytes), std::memory_order_relaxed);
  ::operator delete (block, std::align_val_t{alignof(Block)});
}

}  // namespace

class Arena {
 public:
  Block* allocate(std::size_t bytes) {
    const std::uint32_t c = class_of(bytes);
    if (Block* block = take(c)) return block;
    if (fetch_remote()) {
      if (Block* block = take(c)) return block;
    }
    for (std::uint32_t larger = c + 1; larger <= c + larger_classes; ++larger) {
      if (Block* block = take(larger)) return block;
    }
    return refill(c);
  }
  void put(Block* block) {
    block->next = free_[block->size_class];
    free_[block->size_class] = block;
  }
  void put_remote(Block* block) {
    Block* head = remote_.load(std::memory_order_relaxed);
    do block->next = head;
    while (!remote_.compare_exchange_weak(head, block, std::memory_order_release,
                                          std::memory_order_relaxed));
  }

 private:
  /// Cuts a block of the heap into blocks of class c and returns one of them.
  Block* refill(std::uint32_t c) {
    const std::size_t stride = (sizeof(Block) + class_bytes(c) + 63) / 64 * 64;
    const std::size_t count = std::max<std::size_t>(slab / stride, 1);
    auto* memory = static_cast<std::byte*>(heap().allocate(count * stride)->memory());
    for (std::size_t i = 0; i < count; ++i) {
      Block* block = new (memory + i * stride) Block;
      block->home = this;
      block->size_class = c;
      put(block);
    }
    return take(c);
  }
  Block* take(std::uint32_t c) {
    Block* block = free_[c];
    if (block == nullptr) return nullptr;
    free_[c] = block->next;
    block->references.store(1, std::memory_order_relaxed);
    return block;
  }
  bool fetch_remote() {
    Block* block = remote_.exchange(nullptr, std::memory_order_acquire);
    const bool any = block != nullptr;
    while (block != nullptr) {
      Block* next = block->next;
      put(block);
      block = next;
    }
    return any;
  }

  std::array<Block*, classes> free_{};
  std::atomic<Block*> remote_{nullptr};
};

namespace {

/// Arenas outlive their threads: blocks may be freed later, and a new thread reuses the arena.
struct ArenaPool {
  std::mutex mutex;
  std::vector<Arena*> idle;
};

ArenaPool& pool() {
  static auto* pool = new ArenaPool;  // never destroyed, like the heap
  return *pool;
}

Arena* take_arena() {
  std::lock_guard lock(pool().mutex);
  if (pool().idle.empty()) return new Arena;
  Arena* arena = pool().idle.back();
  pool().idle.pop_back();
  return arena;
}

/// Makes a thread's arena available to new threads when the thread ends.
struct ArenaReturner {
  Arena*& arena;
  ~ArenaReturner() {
    std::lock_guard lock(pool().mutex);
    pool().idle.push_back(std::exchange(arena, nullptr));
  }
};

Arena* my_arena() {
  // A plain pointer can be read until the thread ends. Thread-local objects that create or free
  // arrays after the destruction of `at_end` acquire another arena, which is never returned.
  thread_local Arena* arena = nullptr;
  if (arena == nullptr) {
    arena = take_arena();
    thread_local const ArenaReturner at_end{arena};
  }
  return arena;
}

}  // namespace

bool PoisonNewBlocks::is_poison(real value) {
  return (std::bit_cast<Bits>(value) & ~sign_bit) == std::bit_cast<Bits>(poison);
}

Block* allocate_block(std::size_t bytes) {
  if (bytes >> 48 != 0)
    throw Error(Exit::io, "out of memory: {} MiB requested at once", bytes >> 20);
  Block* const block = !keep           ? ask_system(bytes)
                       : bytes < large ? my_arena()->allocate(bytes)
                                       : heap().allocate(bytes);
  if (PoisonNewBlocks::active)
    std::fill_n(static_cast<real*>(block->memory()), bytes / sizeof(real), poison);
  return block;
}

void release_block(Block* block) noexcept {
  if constexpr (!keep) return give_to_system(block);
  if (block->home == nullptr) {
    heap().release(block);
  } else if (block->home == my_arena()) {
    block->home->put(block);
  } else {
    block->home->put_remote(block);
  }
}

MemoryCounters arena_counters() {
  const MemoryCounters of_heap = heap().counters();
  return {unkept_allocations + of_heap.system_allocations, unkept_bytes + of_heap.system_bytes,
          unkept_bytes + of_heap.live_bytes, unkept_bytes + of_heap.peak_bytes};
}

void arena_reset_peak() { heap().reset_peak(); }

HEED_END
