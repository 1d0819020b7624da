#include "train/distributed/world.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>

#include "autograd/base/clock.h"
#include "autograd/base/error.h"

namespace heed {

namespace {

/// The maximum size of a message in bytes, which MPI libraries count in an int.
constexpr std::size_t max_message_bytes = std::size_t{1} << 28;

template <class Message, class Bytes>
std::vector<Message> in_parts_of(std::span<const Message> messages, Bytes Message::*bytes) {
  std::vector<Message> parts;
  for (const Message& message : messages) {
    for (Bytes rest = message.*bytes; !rest.empty();) {
      Message part = message;
      part.*bytes = rest.first(std::min(rest.size(), max_message_bytes));
      rest = rest.subspan((part.*bytes).size());
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace

World::World(std::unique_ptr<Transport> transport, const std::string& host)
    : transport_(std::move(transport)) {
  hosts_.assign(static_cast<std::size_t>(size()), "an unknown host");
  hosts_ = all_gather(host);
  cpu_set_t local;
  CPU_ZERO(&local);
  sched_getaffinity(0, sizeof local, &local);
  const std::vector<cpu_set_t> sets = all_gather_values(local);
  std::int64_t sharing = 0;
  for (std::int64_t r = 0; r < size(); ++r) {
    cpu_set_t both;
    CPU_AND(&both, &local, &sets[r]);
    if (hosts_[r] == hosts_[rank()] && CPU_COUNT(&both) > 0) ++sharing;
  }
  processors_ = std::max<std::int64_t>(CPU_COUNT(&local) / sharing, 1);
}

std::string World::name_of(std::int64_t rank) const {
  return fmt::format("rank {} on {}", rank, hosts_[static_cast<std::size_t>(rank)]);
}

void World::leave(int status) {
  std::fflush(nullptr);  // MPI libraries may end a process without flushing its streams
  if (!end_confirmed_) return transport_->abort(status);
  try {
    // A launcher kills the other ranks when one ends with an error, so each rank waits for all.
    all_gather_values(status);
  } catch (const Error& missing) {
    return transport_->abort(static_cast<int>(missing.code));
  }
  transport_->finish();
}

void World::exchange(std::span<const Sent> sent, std::span<const Received> received) {
  const std::vector<Sent> out = in_parts_of(sent, &Sent::bytes);
  const std::vector<Received> in = in_parts_of(received, &Received::into);
  if (out.empty() && in.empty()) return;
  if (timed_out_) throw Error(Exit::io, "an earlier exchange between the ranks did not end");
  const double begin = seconds_now();
  const std::vector<std::int64_t> missing = transport_->exchange(out, in, timeout_);
  traffic_.seconds += seconds_now() - begin;
  traffic_.messages += std::ssize(out);
  for (const Sent& message : out) traffic_.bytes += std::ssize(message.bytes);
  if (missing.empty()) return;
  std::vector<std::string> names;
  for (const std::int64_t rank : missing) names.push_back(name_of(rank));
  timed_out_ = true;
  throw Error(Exit::io, "no answer from {} in {:g} s (distributed.timeout)", fmt::join(names, ", "),
              timeout_);
}

void World::broadcast(std::span<std::byte> bytes) {
  // A binomial tree: in each round, each rank with the bytes sends them to one rank without them,
  // until none is left.
  for (std::int64_t done = 1; done < size(); done *= 2) {
    if (rank() < done && rank() + done < size()) {
      const Sent message{rank() + done, bytes};
      exchange({&message, 1}, {});
    } else if (rank() >= done && rank() < 2 * done) {
      const Received message{rank() - done, bytes};
      exchange({}, {&message, 1});
    }
  }
}

std::string World::broadcast(std::string text) {
  std::uint64_t length = text.size();
  broadcast(length);
  text.resize(length);
  broadcast(std::as_writable_bytes(std::span(text)));
  return text;
}

void World::all_gather(std::span<std::byte> all, std::span<const std::int64_t> bounds) {
  const auto part = [&](std::int64_t r) {
    return all.subspan(static_cast<std::size_t>(bounds[r]),
                       static_cast<std::size_t>(bounds[r + 1] - bounds[r]));
  };
  std::vector<Sent> sent;
  std::vector<Received> received;
  for (std::int64_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    sent.push_back({r, part(rank())});
    received.push_back({r, part(r)});
  }
  exchange(sent, received);
}

std::vector<std::string> World::all_gather(std::string_view local) {
  const std::vector<std::int64_t> lengths = all_gather_values(std::ssize(local));
  std::vector<std::int64_t> bounds{0};
  for (const std::int64_t n : lengths) bounds.push_back(bounds.back() + n);
  std::string all(static_cast<std::size_t>(bounds.back()), '\0');
  std::ranges::copy(local, all.begin() + bounds[rank()]);
  all_gather(std::as_writable_bytes(std::span(all)), bounds);
  std::vector<std::string> texts;
  for (std::int64_t r = 0; r < size(); ++r) {
    texts.push_back(all.substr(static_cast<std::size_t>(bounds[r]),
                               static_cast<std::size_t>(bounds[r + 1] - bounds[r])));
  }
  return texts;
}

}  // namespace heed
