#pragma once
/// How often the program asks the system for memory: what "no allocation a step" is measured by.
#include <atomic>
#include <cstdint>

namespace heed {

/// Calls of operator new, where the program counts them (counting_new.cpp is linked into heed, not
/// into the library: whoever uses the library has an operator new of their own).
extern std::atomic<std::int64_t> calls_of_new;

/// Those, and the blocks that arrays have asked the system for.
std::int64_t heap_allocations();

}  // namespace heed
