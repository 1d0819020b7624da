#include "train/report/bench_profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <vector>

#include "autograd/kernels/gemm/bf16.h"
#include "train/decode/rows.h"

HEED_BEGIN

OpProfile OpProfile::of(const Model& model, const Batch& shard, double label_smoothing, bool bf16) {
  const kernels::Bf16Scope scope(bf16);
  constexpr int passes = 5;
  OpProfile profile;
  for (int i = 0; i <= passes; ++i) {
    if (i == 1) profile = OpProfile();  // the first one warmed up
    const double begin = now_since_epoch();
    const ProfileOps on(profile.times_);
    Pass pass{true, 1, 1, 0};
    const Tensor loss = model.loss(rows_of(shard), {label_smoothing}, pass);
    backward(loss);
    profile.whole_ += now_since_epoch() - begin;
  }
  for (auto& [name, time] : profile.times_) {
    time.forward /= passes;
    time.backward /= passes;
    time.calls /= passes;
  }
  profile.whole_ /= passes;
  return profile;
}

std::string OpProfile::table() const {
  std::vector<std::pair<std::string, OpTime>> rows(times_.begin(), times_.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.forward + a.second.backward > b.second.forward + b.second.backward;
  });
  std::string text =
      fmt::format("  one shard on one thread: {:.2f} ms\n  {:<24}{:>7}{:>13}{:>14}{:>8}\n",
                  1e3 * whole_, "op", "calls", "forward ms", "backward ms", "share");
  double counted = 0;
  for (const auto& [name, t] : rows) {
    counted += t.forward + t.backward;
    text += fmt::format("  {:<24}{:>7}{:>13.3f}{:>14.3f}{:>7.1f}%\n", name, t.calls,
                        1e3 * t.forward, 1e3 * t.backward, 100 * (t.forward + t.backward) / whole_);
  }
  return text + fmt::format("  {:<24}{:>7}{:>13}{:>14}{:>7.1f}%\n", "between the ops", "", "", "",
                            100 * (1 - counted / whole_));
}

HEED_END

namespace heed {

double now_since_epoch() {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double process_start_seconds() {
  std::ifstream stat("/proc/self/stat");
  std::string all((std::istreambuf_iterator<char>(stat)), {});
  // Fields after the name, which stands in brackets and may hold anything; the start is field 22.
  std::istringstream fields(all.substr(std::min(all.size(), all.rfind(')') + 2)));
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) {
  }
  const double ticks = field.empty() ? 0 : std::stod(field);
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace heed
