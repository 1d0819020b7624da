/// The extensions of the tape: OpObserver (observer.h), ProfileOps (profile.h), and the detection
/// of saved values that change between forward and backward.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/base/clock.h"
#include "autograd/kernels/fast/gemm/product_log.h"
#include "autograd/tape/observer.h"
#include "autograd/tape/profile.h"

HEED_BEGIN

struct TapeNotes {
  /// A value that an op saved for backward, and its version when it was saved.
  struct SavedValue {
    static constexpr std::size_t result = static_cast<std::size_t>(-1);
    Array value;
    std::uint32_t version;
    std::size_t input;  ///< index of the input, or `result`
  };
  std::vector<SavedValue, BlockAllocator<SavedValue>> saved;

  static void* operator new(std::size_t bytes) { return allocate_block(bytes)->memory(); }
  static void operator delete(void* memory) noexcept { release_block(Block::of(memory)); }
};

namespace {

using SavedValue = TapeNotes::SavedValue;
using SavedValues = std::vector<SavedValue, BlockAllocator<SavedValue>>;

void require_unchanged(const SavedValues& all) {
  for (const SavedValue& saved : all) {
    if (saved.value.version() == saved.version) continue;
    fail(
        "{} of shape {}, which backward needs, was changed after the forward pass: call backward "
        "before changing it",
        saved.input == SavedValue::result ? "the result" : fmt::format("input {}", saved.input),
        saved.value.shape());
  }
}

double executed_flops() {
  const kernels::ProductLog* const log = kernels::ProductLog::active;
  return log == nullptr ? 0 : log->executed();
}

/// Times one call of forward or backward and counts its FLOPs and bytes, excluding the ops that run
/// within it.
class OpTimer {
 public:
  OpTimer(const std::type_info& type, bool forward) : type_(type), forward_(forward) {
    if (ProfileOps::active == nullptr) return;
    outer_ = std::exchange(innermost, this);
    begin_ = seconds_now();
    first_flop_ = executed_flops();
  }
  ~OpTimer() {
    if (ProfileOps::active == nullptr) return;
    const double total = seconds_now() - begin_, seconds = total - nested_;
    const double flops = executed_flops() - first_flop_;
    if (outer_ != nullptr) {
      outer_->nested_ += total;
      outer_->nested_flops_ += flops;
    }
    innermost = outer_;
    OpTime& time = (*ProfileOps::active)[op_name(type_)];
    (forward_ ? time.forward : time.backward) += seconds;
    time.calls += forward_ ? 1 : 0;
    time.flops += flops - nested_flops_;
    time.bytes += sizeof(real) * static_cast<double>(values_);
  }
  /// Counts values that are read or written.
  void count(std::int64_t values) { values_ += values; }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  const std::type_info& type_;
  bool forward_;
  double begin_ = 0, nested_ = 0;  ///< start time; seconds that belong to nested ops
  double first_flop_ = 0, nested_flops_ = 0;
  std::int64_t values_ = 0;
  OpTimer* outer_ = nullptr;

  static inline thread_local OpTimer* innermost = nullptr;
};

/// What is stored while forward runs: the number of arrays that share each input, and the timer.
struct CallState {
  std::vector<std::int64_t, BlockAllocator<std::int64_t>> owners;
  std::optional<OpTimer> timer;

  static void* operator new(std::size_t bytes) { return allocate_block(bytes)->memory(); }
  static void operator delete(void* memory) noexcept { release_block(Block::of(memory)); }
};
CallState* state_of(const OpCall& call) { return static_cast<CallState*>(call.state); }

/// The values that an op has saved: inputs that have more owners after forward than before (results
/// that are views of an input do not count as owners), and results that have more than one owner
/// and are not views of an input. If another thread copies or frees a shared value meanwhile,
/// values may be reported wrongly or missed.
SavedValues saved_values(const OpCall& call, std::span<const std::int64_t> owners_before,
                         std::span<const Array> results) {
  SavedValues saved;
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    const Array& value = *call.values[i];
    const auto views =
        std::ranges::count_if(results, [&](const Array& result) { return result.shares(value); });
    if (value.owners() > owners_before[i] + views) saved.push_back({value, value.version(), i});
  }
  for (const Array& result : results) {
    const bool is_view =
        std::ranges::any_of(call.values, [&](const Array* value) { return result.shares(*value); });
    if (!is_view && result.owners() > 1)
      saved.push_back({result, result.version(), SavedValue::result});
  }
  return saved;
}

class Hook final : public TapeHook {
 public:
  void begin(OpCall& call) override {
    if (OpObserver::active != nullptr) OpObserver::active->begin(call);
    if (!call.recorded && ProfileOps::active == nullptr) return;
    auto* const state = new CallState;
    call.state = state;
    if (call.recorded) {
      for (const Array* value : call.values) state->owners.push_back(value->owners());
    }
    state->timer.emplace(call.op, true);
  }
  void finish(OpCall& call, std::span<const Array> results, Node* node) override {
    if (call.state != nullptr) {
      OpTimer& timer = *state_of(call)->timer;
      for (const Array* value : call.values) timer.count(value->size());
      for (const Array& result : results) timer.count(result.size());
      state_of(call)->timer.reset();
    }
    if (OpObserver::active != nullptr) OpObserver::active->finish(call, results, node);
    if (node == nullptr) return;
    SavedValues saved = saved_values(call, state_of(call)->owners, results);
    if (!saved.empty()) node->notes = new TapeNotes{std::move(saved)};
  }
  void end(OpCall& call) noexcept override {
    delete state_of(call);
    call.state = nullptr;
  }
  void backward(Node& node, const Array& dy, std::span<const Grad> dx) override {
    if (node.notes != nullptr) require_unchanged(node.notes->saved);
    {
      OpTimer timer(node.op(), false);
      timer.count(dy.size());
      for (const Grad& d : dx) timer.count(d ? 2 * d.shape().size() : 0);
      if (OpObserver::active != nullptr) {
        OpObserver::active->run_backward(node, dy, dx);
      } else {
        node.backward(dy, dx);
      }
    }
    if (OpObserver::active != nullptr) OpObserver::active->gradients(node.op(), node.inputs(), dx);
  }
  void discard(TapeNotes* notes) noexcept override { delete notes; }
};

constinit Hook hook;

}  // namespace

TapeHook* const tape_hook = &hook;

HEED_END
