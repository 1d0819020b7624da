#include "train/distributed/parameter_exchange.h"

#include <algorithm>

HEED_BEGIN

namespace {

std::span<std::byte> bytes(real* values, std::int64_t n) {
  return std::as_writable_bytes(std::span(values, static_cast<std::size_t>(n)));
}

}  // namespace

ParameterExchange::ParameterExchange(World& world, std::vector<NamedTensor> parameters)
    : world_(world), parameters_(std::move(parameters)), pieces_(pieces_of(parameters_)) {
  for (const NamedTensor& p : parameters_) values_ += p.tensor.size();
  // Rank r's pieces begin with the first piece whose place is at least values_ · r / ranks.
  const std::int64_t ranks = world_.size();
  for (std::int64_t r = 0; r <= ranks; ++r) {
    const auto at = std::ranges::lower_bound(pieces_, values_ * r / ranks, {}, &Piece::place);
    bounds_.push_back(at - pieces_.begin());
  }
  const std::int64_t max_values =
      std::clamp<std::int64_t>((std::int64_t{1} << 22) / ranks, piece_values, 1 << 18);
  for (std::int64_t r = 0; r < ranks; ++r) {
    std::vector<std::int64_t>& chunks = chunks_.emplace_back(1, bounds_[r]);
    for (std::int64_t i = bounds_[r]; i < bounds_[r + 1]; ++i) {
      if (values_of({chunks.back(), i + 1}).size() > max_values) chunks.push_back(i);
    }
    if (chunks.back() < bounds_[r + 1]) chunks.push_back(bounds_[r + 1]);
  }
}

ValueRange ParameterExchange::values_of(Part pieces) const {
  const auto place = [&](std::int64_t i) {
    return i < std::ssize(pieces_) ? pieces_[i].place : values_;
  };
  return {place(pieces.begin), place(pieces.end)};
}

Part ParameterExchange::chunk(std::int64_t rank, std::int64_t round) const {
  const std::vector<std::int64_t>& chunks = chunks_[rank];
  return round + 1 < std::ssize(chunks) ? Part{chunks[round], chunks[round + 1]} : Part{};
}

std::int64_t ParameterExchange::rounds() const {
  std::int64_t max_rounds = 0;
  for (const auto& chunks : chunks_) max_rounds = std::max(max_rounds, std::ssize(chunks) - 1);
  return max_rounds;
}

void ParameterExchange::reduce(const std::vector<std::vector<Array>>& sums, const Add& add) {
  const std::int64_t ranks = world_.size(), me = world_.rank(), shards = std::ssize(sums);
  std::vector<std::vector<std::int64_t>> trees;
  for (std::int64_t r = 0; r < ranks; ++r)
    trees.push_back(subtrees(part_of(shards, r, ranks), shards));
  for (std::int64_t round = 0; round < rounds(); ++round) {
    const Part local = chunk(me, round);
    const std::int64_t local_values = values_of(local).size();
    std::int64_t out_values = 0, in_values = 0;
    for (std::int64_t r = 0; r < ranks; ++r) {
      if (r == me) continue;
      out_values += std::ssize(trees[me]) * values_of(chunk(r, round)).size();
      in_values += std::ssize(trees[r]) * local_values;
    }
    out_.resize(static_cast<std::size_t>(out_values));
    in_.resize(static_cast<std::size_t>(in_values));
    std::vector<Sent> sent;
    std::vector<Received> received;
    std::vector<real*> parts(static_cast<std::size_t>(shards));
    real *out = out_.data(), *in = in_.data();
    for (std::int64_t r = 0; r < ranks; ++r) {
      if (r == me) continue;
      for (const std::int64_t tree : trees[me]) {
        const Part remote = chunk(r, round);
        real* const begin = out;
        for (std::int64_t i = remote.begin; i < remote.end; ++i) {
          const Array& g = sums[tree][pieces_[i].parameter];
          // −0 + x is bitwise equal to x for every number x: an absent gradient changes no sum.
          out = g.defined() ? std::copy_n(g.data() + pieces_[i].begin, pieces_[i].size(), out)
                            : std::fill_n(out, pieces_[i].size(), real(-0.0));
        }
        sent.push_back({r, bytes(begin, out - begin)});
      }
      for (const std::int64_t tree : trees[r]) {
        parts[tree] = in;
        received.push_back({r, bytes(in, local_values)});
        in += local_values;
      }
    }
    world_.exchange(sent, received);
    if (local.size() > 0) add(local, parts);
  }
}

void ParameterExchange::gather_weights() {
  for (std::int64_t round = 0; round < rounds(); ++round) {
    std::vector<Piece> pieces;            // the pieces of this round, rank by rank
    std::vector<std::int64_t> bounds{0};  // bounds of each rank's weights in the buffer, in bytes
    in_.clear();
    for (std::int64_t r = 0; r < world_.size(); ++r) {
      const Part part = chunk(r, round);
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const Piece& piece = pieces.emplace_back(pieces_[i]);
        const real* const w = parameters_[piece.parameter].tensor.value().data();
        in_.insert(in_.end(), w + piece.begin, w + piece.end);
      }
      bounds.push_back(std::ssize(in_) * static_cast<std::int64_t>(sizeof(real)));
    }
    world_.all_gather(std::as_writable_bytes(std::span(in_)), bounds);
    const real* from = in_.data();
    for (const Piece& piece : pieces) {
      real* const w = parameters_[piece.parameter].tensor.mutable_value().data();
      std::copy_n(from, piece.size(), w + piece.begin);
      from += piece.size();
    }
  }
}

void ParameterExchange::move_moments(std::vector<NamedTensor>& local,
                                     std::vector<NamedTensor>& whole, bool collect) {
  const std::size_t kinds = local.size() / parameters_.size();  // 2: m and v; 1: momentum
  const auto move = [&](std::size_t i, std::int64_t owner, ValueRange values) {
    real* const local_values = local[i].tensor.mutable_value().data();
    real* const full_values =
        world_.first() ? whole[i].tensor.mutable_value().data() + values.begin : nullptr;
    if (owner == 0 && world_.first())
      collect ? std::copy_n(local_values, values.size(), full_values)
              : std::copy_n(full_values, values.size(), local_values);
    if (owner == 0 || (!world_.first() && world_.rank() != owner)) return;
    real* const moments = world_.first() ? full_values : local_values;
    const std::int64_t peer = world_.first() ? owner : 0;
    if (collect == world_.first()) {
      const Received message{peer, bytes(moments, values.size())};
      world_.exchange({}, {&message, 1});
    } else {
      const Sent message{peer, bytes(moments, values.size())};
      world_.exchange({&message, 1}, {});
    }
  };
  std::int64_t place = 0;  // index of the parameter's first value
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const std::int64_t n = parameters_[p].tensor.size();
    for (std::int64_t r = 0; r < world_.size(); ++r) {
      const ValueRange owned = ValueRange{place, place + n}.intersection(values_of(owned_by(r)));
      for (std::size_t k = 0; k < kinds && owned.size() > 0; ++k)
        move(p * kinds + k, r, {owned.begin - place, owned.end - place});
    }
    place += n;
  }
}

std::vector<NamedTensor> ParameterExchange::gather_moments(const Optimizer& optimizer) {
  std::vector<NamedTensor> whole;
  std::vector<NamedTensor> local = optimizer.state();
  for (std::size_t i = 0; world_.first() && i < local.size(); ++i) {
    const NamedTensor& parameter = parameters_[i / (local.size() / parameters_.size())];
    whole.push_back({local[i].name, Tensor(Array::zeros(parameter.tensor.shape()))});
  }
  move_moments(local, whole, true);
  return whole;
}

void ParameterExchange::scatter_moments(std::vector<NamedTensor>& whole, Optimizer& optimizer) {
  std::vector<NamedTensor> local = optimizer.state();
  move_moments(local, whole, false);
  optimizer.set_state(local);
}

HEED_END
