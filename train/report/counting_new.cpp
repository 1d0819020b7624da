/// operator new, counted. Not built with sanitizers, which bring their own.
#include <cstdlib>
#include <new>

#include "train/report/heap_counter.h"

void* operator new(std::size_t bytes) {
  heed::calls_of_new.fetch_add(1, std::memory_order_relaxed);
  for (;;) {
    if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
