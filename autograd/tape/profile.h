#pragma once
/// Time, FLOPs and bytes per op. Off by default; the cost is then a few pointer tests per op.
#include <cstdint>
#include <map>
#include <string>

#include "autograd/base/real.h"
#include "autograd/base/scoped_value.h"

HEED_BEGIN

struct OpTime {
  double forward = 0, backward = 0;  ///< seconds, without the time of ops that run within this one
  std::int64_t calls = 0;            ///< number of forward calls
  /// FLOPs of the matrix products that were executed, if the thread has a ProductLog.
  double flops = 0;
  /// Bytes that the op must read and write at least: inputs and results forward; the cotangent, the
  /// inputs and their gradients backward. What stays in cache between ops counts, too.
  double bytes = 0;
};
using OpTimes = std::map<std::string, OpTime>;  ///< by op_name

/// While an instance is alive, the ops of this thread add their times to `into`. A function that is
/// composed of ops has no entry; each of its ops has one.
class ProfileOps {
 public:
  explicit ProfileOps(OpTimes& into) : scope_(active, &into) {}

  static inline thread_local OpTimes* active = nullptr;

 private:
  ScopedValue<OpTimes*> scope_;
};

HEED_END
