#pragma once
/// Time per op. Off by default; the cost is then a few pointer tests per op.
#include <map>
#include <string>
#include <typeinfo>
#include <utility>

#include "autograd/base/clock.h"
#include "autograd/base/real.h"

HEED_BEGIN

struct OpTime {
  double forward = 0, backward = 0;  ///< seconds
  std::int64_t calls = 0;            ///< number of forward calls
};
using OpTimes = std::map<std::string, OpTime>;

/// The name of an op: "Softmax" for struct heed::…::Softmax.
std::string op_name(const std::type_info& type);

/// While an instance is alive, the ops of this thread add their times to `into`. A function that is
/// composed of ops has no entry; each of its ops has one.
class ProfileOps {
 public:
  explicit ProfileOps(OpTimes& into) : before_(active) { active = &into; }
  ~ProfileOps() { active = before_; }
  ProfileOps(const ProfileOps&) = delete;
  ProfileOps& operator=(const ProfileOps&) = delete;

  static inline thread_local OpTimes* active = nullptr;

 private:
  OpTimes* before_;
};

/// Times one call of forward or backward, excluding the ops that run within it.
class OpTimer {
 public:
  OpTimer(const std::type_info& type, bool forward) : type_(type), forward_(forward) {
    if (ProfileOps::active == nullptr) return;
    outer_ = std::exchange(innermost, this);
    begin_ = seconds_now();
  }
  ~OpTimer() {
    if (ProfileOps::active == nullptr) return;
    const double total = seconds_now() - begin_, seconds = total - nested_;
    if (outer_ != nullptr) outer_->nested_ += total;
    innermost = outer_;
    OpTime& time = (*ProfileOps::active)[op_name(type_)];
    (forward_ ? time.forward : time.backward) += seconds;
    time.calls += forward_ ? 1 : 0;
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  const std::type_info& type_;
  bool forward_;
  double begin_ = 0, nested_ = 0;  ///< start time; seconds that belong to nested ops
  OpTimer* outer_ = nullptr;

  static inline thread_local OpTimer* innermost = nullptr;
};

HEED_END
