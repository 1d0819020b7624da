#include "train/report/heap_counter.h"

#include "autograd/memory/arena.h"

namespace heed {

std::atomic<std::int64_t> calls_of_new{0};

std::int64_t heap_allocations() {
  return calls_of_new.load(std::memory_order_relaxed) + arena_counters().system_allocations;
}

}  // namespace heed
