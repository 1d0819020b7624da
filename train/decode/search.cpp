#include "train/decode/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/base/error.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/fast/reduce.h"
#include "autograd/kernels/rows.h"
#include "autograd/ops/more/cross_entropy.h"
#include "data/tokenizers/tokenizer.h"
#include "train/decode/model_input.h"

HEED_BEGIN

namespace {

double length_penalty(std::int64_t tokens, double alpha) {
  return std::pow((5.0 + static_cast<double>(tokens)) / 6.0, alpha);
}

/// Orders candidates by descending log-probability; ties by parent, then by token.
constexpr auto better = [](const auto& a, const auto& b) {
  if (a.log_prob != b.log_prob) return a.log_prob > b.log_prob;
  return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
};

std::int64_t parts_of(std::int64_t whole, std::int64_t size) { return (whole + size - 1) / size; }

/// The number of lines in a batch if `lines` lines are cut into about `batches` batches: fewer if
/// each would have fewer than 32 hypotheses, more if one would exceed options.batch_sequences
/// hypotheses. Each step reads every weight, so a step takes about as long for a small batch as for
/// a large one.
std::int64_t batch_size(const DecodeOptions& options, std::int64_t lines, std::int64_t batches) {
  const std::int64_t beam = options.sample ? 1 : std::max<std::int64_t>(options.beam, 1);
  const std::int64_t min_lines = std::max<std::int64_t>(32 / beam, 1);
  if (lines == 0) return min_lines;
  const std::int64_t max_lines = std::max<std::int64_t>(options.batch_sequences / beam, 1);
  const std::int64_t count =
      std::max(parts_of(lines, max_lines), std::min(batches, parts_of(lines, min_lines)));
  return parts_of(lines, count);
}

}  // namespace

void Search::best_tokens(const Array& logits, std::int64_t row, std::int64_t count,
                         std::vector<Candidate>& into) const {
  const real* const z = logits.row(row);
  const double base =
      live_[row].hypothesis.log_prob - double{kernels::log_sum_exp_row(z, logits.cols())};
  const auto begin = static_cast<std::ptrdiff_t>(into.size());
  real lowest = -std::numeric_limits<real>::infinity();
  const std::int64_t n = logits.cols();
  for (std::int64_t t = kernels::first_above(z, 0, lowest, n); t < n;
       t = kernels::first_above(z, t + 1, lowest, n)) {
    if (forbidden(t)) continue;
    // From `begin` on, `into` is a heap of the best `count` candidates with the worst at its top.
    into.push_back(
        {base + double{z[t]}, static_cast<std::int32_t>(row), static_cast<std::int32_t>(t)});
    std::push_heap(into.begin() + begin, into.end(), better);
    if (static_cast<std::int64_t>(into.size()) - begin <= count) continue;
    std::pop_heap(into.begin() + begin, into.end(), better);
    into.pop_back();
    lowest = z[into[begin].token];
  }
}

void Search::sampled_token(const Array& logits, std::int64_t row,
                           std::vector<Candidate>& into) const {
  const Live& live = live_[row];
  const real* const z = logits.row(row);
  std::vector<std::int32_t> order;
  for (std::int32_t t = 0; t < logits.cols(); ++t) {
    if (!forbidden(t)) order.push_back(t);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return z[a] > z[b]; });
  if (options_.top_k > 0 && options_.top_k < static_cast<std::int64_t>(order.size())) {
    order.resize(options_.top_k);
  }
  // Probabilities at the given temperature, divided by that of the most probable token. top_p keeps
  // the shortest prefix of `order` whose share of the total probability is at least top_p.
  std::vector<double> weight;
  weight.reserve(order.size());
  for (const std::int32_t t : order)
    weight.push_back(std::exp((double{z[t]} - double{z[order[0]]}) / options_.temperature));
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  double kept = 0;
  std::size_t n = 0;
  while (n < weight.size() && (n == 0 || kept < options_.top_p * all)) kept += weight[n++];
  Random random({seed_, Stream::sampling, static_cast<std::uint64_t>(numbers_[live.sentence]),
                 static_cast<std::uint32_t>(live.hypothesis.tokens.size())});
  double at = random.uniform() * kept;
  std::size_t chosen = 0;
  while (chosen + 1 < n && at >= weight[chosen]) at -= weight[chosen++];
  const std::int32_t token = order[chosen];
  into.push_back({live.hypothesis.log_prob + double{z[token]} -
                      double{kernels::log_sum_exp_row(z, logits.cols())},
                  static_cast<std::int32_t>(row), token});
}

/// Source of the penalty: Keskar et al., "CTRL", 2019, section 4.1. The paper also divides negative
/// logits, which makes their tokens more probable; later implementations multiply them, as this
/// function does.
void Search::restrict(real* logits, const Hypothesis& so_far) const {
  if (static_cast<std::int64_t>(so_far.tokens.size()) < options_.min_length)
    logits[special_.eos] = -std::numeric_limits<real>::infinity();
  if (options_.repetition_penalty == 1) return;
  const auto penalty = static_cast<real>(options_.repetition_penalty);
  std::vector<std::int32_t> tokens = so_far.tokens;
  tokens.insert(tokens.end(), earlier_.begin(), earlier_.end());
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const std::int32_t t : tokens)
    logits[t] = logits[t] > 0 ? logits[t] / penalty : logits[t] * penalty;
}

void Search::finish(Live done, bool ended) {
  const auto n = static_cast<std::int64_t>(done.hypothesis.tokens.size()) + (ended ? 1 : 0);
  done.hypothesis.cut = !ended;
  done.hypothesis.score = done.hypothesis.log_prob / length_penalty(n, options_.length_penalty);
  finished_[done.sentence].push_back(std::move(done.hypothesis));
}

std::optional<std::int32_t> Search::forced_token(const Live& live) const {
  if (prefixes_.empty()) return std::nullopt;
  const std::vector<std::int32_t>& prefix = prefixes_[live.sentence];
  const std::size_t length = live.hypothesis.tokens.size();
  return length < prefix.size() ? std::optional(prefix[length]) : std::nullopt;
}

std::vector<std::vector<Hypothesis>> Search::run(Decoding& decoding,
                                                 std::vector<std::int32_t> tokens) {
  const std::int64_t beam = options_.sample ? 1 : std::max<std::int64_t>(options_.beam, 1);
  finished_.assign(tokens.size(), {});
  live_.clear();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    live_.push_back({static_cast<std::int32_t>(i), {}});
  std::vector<Candidate> candidates;
  for (std::int64_t length = 1; !live_.empty(); ++length) {
    Array logits = decoding.step(tokens);
    for (std::size_t i = 0; i < live_.size(); ++i)
      restrict(logits.row(static_cast<std::int64_t>(i)), live_[i].hypothesis);
    std::vector<Live> next;
    std::vector<std::int32_t> parents;
    tokens.clear();
    for (std::size_t row = 0; row < live_.size();) {  // the hypotheses of a sentence are adjacent
      const std::int32_t sentence = live_[row].sentence;
      const std::int64_t places = beam - static_cast<std::int64_t>(finished_[sentence].size());
      candidates.clear();
      for (; row < live_.size() && live_[row].sentence == sentence; ++row) {
        const auto r = static_cast<std::int64_t>(row);
        if (const auto token = forced_token(live_[row])) {
          candidates.push_back({live_[row].hypothesis.log_prob + double{logits.row(r)[*token]} -
                                    double{kernels::log_sum_exp_row(logits.row(r), logits.cols())},
                                static_cast<std::int32_t>(row), *token});
          continue;
        }
        options_.sample ? sampled_token(logits, r, candidates)
                        : best_tokens(logits, r, places, candidates);
      }
      std::sort(candidates.begin(), candidates.end(), better);
      if (static_cast<std::int64_t>(candidates.size()) > places) candidates.resize(places);
      for (const Candidate& c : candidates) {
        Live grown{sentence, live_[c.parent].hypothesis};
        grown.hypothesis.log_prob = c.log_prob;
        const bool ended = c.token == special_.eos;
        if (!ended) grown.hypothesis.tokens.push_back(c.token);
        if (on_token_ && beam == 1 && !ended) on_token_(c.token);
        if (ended || length == limit_) {
          finish(std::move(grown), ended);
          continue;
        }
        next.push_back(std::move(grown));
        parents.push_back(c.parent);
        tokens.push_back(c.token);
      }
    }
    live_ = std::move(next);
    if (!live_.empty()) decoding.select(parents);
  }
  for (std::vector<Hypothesis>& hypotheses : finished_) {
    if (hypotheses.empty()) hypotheses.emplace_back();  // no logit exceeded −∞ (NaN, for example)
    std::ranges::stable_sort(hypotheses, std::greater<>(), &Hypothesis::score);
  }
  return std::move(finished_);
}

FrozenModel::FrozenModel(const Model& frozen, DecodePrecision precision, const SpecialIds& ids)
    : model(dynamic_cast<const Generative&>(frozen)),
      special(ids),
      weights(precision == DecodePrecision::int8   ? kernels::PackedType::int8
              : precision == DecodePrecision::bf16 ? kernels::PackedType::bf16
                                                   : kernels::PackedType::real) {
  for (const NamedTensor& p : model.parameters()) {
    if (p.tensor.shape().rank() == 2) weights.add(p.tensor.value());
  }
}

std::int64_t output_limit(const DecodeOptions& options, std::int64_t positions) {
  const std::int64_t limit = std::max<std::int64_t>(options.max_length, 1);
  return positions > 0 ? std::min(limit, positions) : limit;
}

std::vector<Hypothesis> translate(const FrozenModel& frozen, const Dataset& data,
                                  const DecodeOptions& options, std::uint64_t seed,
                                  const Workers& workers, std::span<const std::int64_t> numbers,
                                  std::int64_t batches) {
  std::vector<Hypothesis> best;
  for (std::vector<Hypothesis>& all :
       translate(frozen, data, options, seed, workers, {.numbers = numbers, .batches = batches}))
    best.push_back(std::move(all.front()));
  return best;
}

std::vector<std::vector<Hypothesis>> translate(const FrozenModel& frozen, const Dataset& data,
                                               const DecodeOptions& options, std::uint64_t seed,
                                               const Workers& workers,
                                               const TranslateRequest& request) {
  const Generative& model = frozen.model;
  std::vector<std::int64_t> order(static_cast<std::size_t>(data.size()));
  std::iota(order.begin(), order.end(), 0);
  // Begins with the longest sources. Otherwise, one thread might run the longest batch alone at
  // the end.
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return data.source_rows(a) > data.source_rows(b);
  });
  const std::int64_t limit = output_limit(options, model.position_limit());
  const std::int64_t size = batch_size(options, data.size(), request.batches);
  using Found = std::vector<std::vector<Hypothesis>>;  // hypotheses of each sentence of a batch
  const auto translate_batch = [&](std::int64_t number) {
    const kernels::Bf16Scope scope(options.precision == DecodePrecision::bf16);
    const kernels::PackedScope packed(frozen.weights);
    const std::int64_t begin = number * size, end = std::min(begin + size, data.size());
    Side source;
    std::vector<std::int64_t> keys;
    std::vector<std::vector<std::int32_t>> prefixes;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t place = order[i];
      keys.push_back(request.numbers.empty() ? place : request.numbers[place]);
      if (!request.prefixes.empty()) prefixes.push_back(request.prefixes[place]);
      data.push_source({.sample = place}, source);
    }
    Found best(static_cast<std::size_t>(end - begin));
    const std::int64_t searches = options.sample ? request.nbest : 1;  // one search per sample
    for (std::int64_t k = 0; k < searches; ++k) {
      std::vector<std::int64_t> sample_keys = keys;
      for (std::int64_t& key : sample_keys) key += k << 48;
      const std::unique_ptr<Decoding> decoding =
          model.decode(side_view(source), end - begin, options.cached);
      Search search(options, limit, seed, std::move(sample_keys), frozen.special);
      search.begin_with(prefixes);
      Found found = search.run(
          *decoding,
          std::vector<std::int32_t>(static_cast<std::size_t>(end - begin), frozen.special.bos));
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (std::ssize(found[i]) > request.nbest) found[i].resize(request.nbest);
        std::ranges::move(found[i], std::back_inserter(best[i]));
      }
    }
    return best;
  };
  Found all(order.size());
  std::size_t place = 0;  // index in `order`
  for (Found& batch : results_of<Found>(workers, parts_of(data.size(), size), translate_batch))
    for (std::vector<Hypothesis>& best : batch) all[order[place++]] = std::move(best);
  return all;
}

namespace {

/// The hypotheses of a search that continues the tokens `fed`, which must not be empty.
std::vector<Hypothesis> continued(const Generative& model, std::span<const std::int32_t> fed,
                                  Search& search, bool cached) {
  const std::unique_ptr<Decoding> decoding = model.decode({}, 1, cached);
  decoding->prefill(fed.first(fed.size() - 1));
  return search.run(*decoding, {fed.back()}).front();
}

}  // namespace

std::vector<Hypothesis> continuations(const FrozenModel& frozen,
                                      std::span<const std::int32_t> prompt,
                                      const DecodeOptions& options, std::uint64_t seed,
                                      std::int64_t number) {
  const kernels::Bf16Scope scope(options.precision == DecodePrecision::bf16);
  const kernels::PackedScope packed(frozen.weights);
  std::vector<std::int32_t> fed(prompt.begin(), prompt.end());
  if (fed.empty()) fed.push_back(frozen.special.eos);
  const std::int64_t context = frozen.model.position_limit(),
                     limit = std::max<std::int64_t>(options.max_length, 1);
  if (context > 0 && std::ssize(fed) + limit > context + 1)
    throw Error(Exit::usage,
                "--nbest: prompt and continuation can exceed the context of {} tokens ({} + "
                "{}); lower decode.max_length",
                context, fed.size(), limit);
  Search search(options, limit, seed, {(number << 20) + std::ssize(prompt)}, frozen.special);
  return continued(frozen.model, fed, search, options.cached);
}

std::vector<std::int32_t> continue_text(const FrozenModel& frozen,
                                        std::span<const std::int32_t> prompt,
                                        const DecodeOptions& options, std::uint64_t seed,
                                        std::int64_t number,
                                        const std::function<void(std::int32_t)>& on_token,
                                        Team* team) {
  const Generative& model = frozen.model;
  const kernels::Bf16Scope scope(options.precision == DecodePrecision::bf16);
  const kernels::PackedScope packed(frozen.weights, team);
  std::vector<std::int32_t> text(prompt.begin(), prompt.end());
  const std::int64_t context = model.position_limit();
  std::int64_t left = std::max<std::int64_t>(options.max_length, 1);
  while (left > 0) {
    // The model reads the whole text or, if the text exceeds the context, its last context / 2
    // tokens. The last token is the first input of the search.
    std::size_t from = 0;
    if (context > 0 && static_cast<std::int64_t>(text.size()) > context) {
      from = text.size() - static_cast<std::size_t>(std::max<std::int64_t>(context / 2, 1));
    }
    std::vector<std::int32_t> fed(text.begin() + static_cast<std::ptrdiff_t>(from), text.end());
    if (fed.empty()) fed.push_back(frozen.special.eos);
    const std::int64_t room = context > 0 ? context - std::ssize(fed) + 1 : left,
                       limit = std::min(left, std::max<std::int64_t>(room, 1));
    DecodeOptions remaining = options;
    remaining.min_length -= static_cast<std::int64_t>(text.size() - prompt.size());
    Search search(remaining, limit, seed, {(number << 20) + static_cast<std::int64_t>(text.size())},
                  frozen.special);
    search.follow(std::span(text).subspan(prompt.size()));
    search.on_token(on_token);
    const std::vector<std::int32_t> found =
        continued(model, fed, search, options.cached).front().tokens;
    text.insert(text.end(), found.begin(), found.end());
    if (std::ssize(found) < limit) break;  // the search ended with </s>
    left -= std::ssize(found);
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

std::vector<double> score_targets(const FrozenModel& frozen, std::span<const Batch> batches,
                                  std::int64_t count, Team& team) {
  std::vector<double> scores(static_cast<std::size_t>(count));
  team.run(static_cast<std::int64_t>(batches.size()), [&](std::int64_t number) {
    const NoGrad no_grad;
    const kernels::PackedScope packed(frozen.weights);
    Pass pass;
    const Generative& model = frozen.model;
    const Batch& batch = batches[number];
    const Tensor hidden = model.hidden(model_input(batch), pass);
    for (std::size_t s = 0; s < batch.samples.size(); ++s) {
      const std::int32_t begin = batch.target.offsets[s], end = batch.target.offsets[s + 1];
      LossCounts counts;
      projected_cross_entropy(
          Tensor(hidden.value().sliced(begin, end)), model.output().weight, model.output().bias,
          std::span(batch.labels)
              .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
          0, 1, &counts);
      scores[batch.samples[s]] = -counts.nll;
    }
  });
  return scores;
}

HEED_END
