#include "train/views/report/step_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/clock.h"

HEED_BEGIN

std::vector<ShardProducts> StepProfile::add(double step_seconds, const Model& model,
                                            std::span<const Batch> shards, std::int64_t number,
                                            const StepOptions& options, Team& team) {
  double tokens = 0;
  for (const Batch& shard : shards) tokens += static_cast<double>(shard.label_count());
  struct OfShard {
    OpTimes ops;
    double seconds = 0;
    LossCounts counts;
  };
  std::vector<OfShard> timed(shards.size());
  std::vector<ShardProducts> products(shards.size());
  const double begin = seconds_now();
  team.run(static_cast<std::int64_t>(shards.size()), [&](std::int64_t number_of_shard) {
    const auto i = static_cast<std::size_t>(number_of_shard);
    const double start = seconds_now();
    {
      const ProfileOps profile(timed[i].ops);
      const kernels::ProductLog log(products[i].flops, &products[i].list);
      shard_gradients(model, shards[i], number_of_shard, number, tokens, options, &timed[i].counts);
    }
    timed[i].seconds = seconds_now() - start;
  });
  phases_ += seconds_now() - begin;
  steps_ += step_seconds;
  ++added_;
  threads_ = team.threads();
  for (const OfShard& shard : timed) {
    working_ += shard.seconds;
    for (const auto& [name, time] : shard.ops) {
      OpTime& sum = ops_[name];
      sum.forward += time.forward;
      sum.backward += time.backward;
      sum.calls += time.calls;
      sum.flops += time.flops;
      sum.bytes += time.bytes;
    }
  }
  return products;
}

std::vector<StepProfile::Row> StepProfile::rows() const {
  const double threads = static_cast<double>(threads_), share = 1 / (count() * threads);
  std::vector<Row> rows;
  double in_ops = 0;
  for (const auto& [name, t] : ops_) {
    rows.push_back({name, t.calls / std::max<std::int64_t>(added_, 1), share * t.forward,
                    share * t.backward, share * (t.forward + t.backward), t.flops / count(),
                    t.bytes / count()});
    in_ops += t.forward + t.backward;
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  rows.push_back({"between the ops", 0, 0, 0, share * (working_ - in_ops)});
  rows.push_back({"idle threads", 0, 0, 0, phases_ / count() - share * working_});
  rows.push_back(
      {"gradient sums, update", 0, 0, 0, step_seconds() - phases_ / count(), 0, update_bytes_});
  return rows;
}

double StepProfile::roof_seconds(const Row& row, const Roof& roof) {
  return std::max(row.flops / roof.flops, row.bytes / roof.bytes);
}

std::string StepProfile::table(const Roof& roof) const {
  std::string text = fmt::format(
      "  mean time of a step: {:.2f} ms on {} thread{}\n"
      "  the roof: {:.0f} GFLOP/s, the rate of the products alone; {:.1f} GB/s, that of copying in "
      "memory\n  {:<24}{:>7}{:>13}{:>14}{:>10}{:>8}{:>9}{:>8}{:>9}\n",
      1e3 * step_seconds(), threads_, threads_ == 1 ? "" : "s", 1e-9 * roof.flops,
      1e-9 * roof.bytes, "op", "calls", "forward ms", "backward ms", "both ms", "share", "GFLOP/s",
      "GB/s", "of roof");
  for (const Row& row : rows()) {
    const bool op = row.calls > 0;
    const double g = row.seconds > 0 ? 1e-9 / row.seconds : 0;
    text += fmt::format("  {:<24}{:>7}{:>13}{:>14}{:>10.3f}{:>7.1f}%{:>9}{:>8}{:>9}\n", row.name,
                        op ? fmt::format("{}", row.calls) : "",
                        op ? fmt::format("{:.3f}", 1e3 * row.forward) : "",
                        op ? fmt::format("{:.3f}", 1e3 * row.backward) : "", 1e3 * row.seconds,
                        100 * row.seconds / step_seconds(),
                        row.flops > 0 ? fmt::format("{:.0f}", g * row.flops) : "",
                        row.bytes > 0 ? fmt::format("{:.1f}", g * row.bytes) : "",
                        row.bytes > 0 && row.seconds > 0
                            ? fmt::format("{:.2f}", roof_seconds(row, roof) / row.seconds)
                            : "");
  }
  return text;
}

nlohmann::json StepProfile::json(const Roof& roof) const {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows()) {
    nlohmann::json entry{{"name", row.name}, {"ms", 1e3 * row.seconds}};
    if (row.calls > 0) {
      entry["calls"] = row.calls;
      entry["forward_ms"] = 1e3 * row.forward;
      entry["backward_ms"] = 1e3 * row.backward;
    }
    if (row.bytes > 0) {
      entry["gflop"] = 1e-9 * row.flops;
      entry["gb"] = 1e-9 * row.bytes;
      entry["roof_ms"] = 1e3 * roof_seconds(row, roof);
    }
    list.push_back(entry);
  }
  return list;
}

HEED_END
