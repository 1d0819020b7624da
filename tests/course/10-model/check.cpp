// The check of chapter 10: teacher forcing, decoding with a cache and a beam, attention in tiles.
#include "check.h"
#include "10-model/check_tiles.h"
#include "autograd/kernels/fast/gemm/product_log.h"
#include "exercise.h"
#include "optim/adam.h"

using namespace heed;
using namespace heed::course;
using chapter10::bos;
using chapter10::Cache;
using chapter10::eos;
using chapter10::Ids;
using chapter10::infinity;
using reference::EncoderDecoder;

namespace {

// ---- models and sequences ---------------------------------------------------------------------

constexpr std::int32_t first_letter = 3;  // after <unk>, <s> and </s>

/// A small model. All parameters are random, also the biases, which begin as 0.
EncoderDecoder small_model(Draw& draw, std::int64_t vocabulary) {
  const std::int64_t heads = draw.extent(2, 2, 3), d = 2 * heads * draw.extent(2, 2, 3);
  Init init(draw.random().below(1000));
  EncoderDecoder model({d, heads, 2 * d, 1, draw.extent(2, 1, 2)}, vocabulary, init);
  for (NamedTensor& p : model.parameters())
    for (real& value : p.tensor.mutable_value().values()) value += 0.3 * draw.random().normal();
  return model;
}

Ids letters(Draw& draw, std::int64_t n, std::int64_t vocabulary) {
  Ids ids;
  for (std::int64_t i = 0; i < n; ++i)
    ids.push_back(first_letter + static_cast<std::int32_t>(draw.random().below(
                                     static_cast<std::uint32_t>(vocabulary - first_letter))));
  return ids;
}
Ids with(Ids ids, std::int32_t last) {
  ids.push_back(last);
  return ids;
}
Ids after(std::int32_t first, Ids ids) {
  ids.insert(ids.begin(), first);
  return ids;
}
std::string text(const Ids& ids) {
  std::vector<std::string> words;
  for (const std::int32_t id : ids)
    words.push_back(id == bos ? "<s>" : id == eos ? "</s>" : std::to_string(id));
  return fmt::format("{}", fmt::join(words, " "));
}

void require_ids(const std::string& what, const Ids& ids, const Ids& expected,
                 const std::vector<std::pair<std::string, Ids>>& mistakes = {}) {
  if (ids == expected) return;
  std::string cause;
  for (const auto& [sentence, wrong] : mistakes)
    if (ids == wrong) cause = ": " + sentence;
  fail("{} is \"{}\", expected \"{}\"{}", what, text(ids), text(expected), cause);
}

Array last_row(const Array& x) { return x.sliced(x.rows() - 1, x.rows()); }

// ---- training -----------------------------------------------------------------------------------

void forcing(Draw& draw) {
  const Ids y = letters(draw, draw.extent(4, 2, 6), 12);
  const chapter10::Forced forced = chapter10::teacher_forced(y);
  require_ids(fmt::format("the input for the target {}", text(y)), forced.input, after(bos, y),
              {{"position t reads the very token that it is to predict: shift the input by <s>", y},
               {"position t reads the very token that it is to predict: shift the input by <s>",
                with(y, eos)},
               {"the input ends with y_n, because nothing follows </s>", with(after(bos, y), eos)},
               {"y_n is missing: the last position reads it and predicts </s>",
                after(bos, Ids(y.begin(), y.end() - 1))}});
  require_ids(fmt::format("the labels for the target {}", text(y)), forced.labels, with(y, eos),
              {{"the last position is to predict </s>, or decoding never ends", y},
               {"<s> is never predicted", after(bos, y)},
               {"<s> is never predicted", with(after(bos, y), eos)}});
  const chapter10::Forced none = chapter10::teacher_forced({});
  require_ids("the input for an empty target", none.input, {bos});
  require_ids("the labels for an empty target", none.labels, {eos});
}

Tensor reference_loss(const EncoderDecoder& model, const Ids& source, const Ids& input,
                      const Ids& labels, double smoothing = 0) {
  return cross_entropy(model.decode(model.encode(source), input), labels, smoothing);
}

void loss_values(Draw& draw) {
  const EncoderDecoder model = small_model(draw, 9);
  const Ids source = with(letters(draw, draw.extent(5, 4, 6), 9), eos),
            y = letters(draw, draw.extent(3, 2, 3), 9), input = after(bos, y),
            labels = with(y, eos);
  const double right = reference_loss(model, source, input, labels).item();
  const auto mistake = [&](const std::string& sentence, double value) {
    return Mistake{sentence, Array::scalar(value)};
  };
  require_same(
      "the loss", chapter10::loss(model, source, y).value(), Array::scalar(right),
      {mistake("this is the sum over the labels instead of their mean",
               right * static_cast<double>(labels.size())),
       mistake("it is smoothed, but this chapter's loss is plain −ln p",
               reference_loss(model, source, input, labels, 0.1).item()),
       mistake("the decoder reads the labels themselves, so each position sees its answer",
               reference_loss(model, source, labels, labels).item()),
       mistake("the source is encoded without its </s>",
               reference_loss(model, Ids(source.begin(), source.end() - 1), input, labels).item()),
       mistake("the source has one more </s>: the caller has added it already",
               reference_loss(model, with(source, eos), input, labels).item()),
       mistake("the encoder reads the target instead of the source",
               reference_loss(model, with(y, eos), input, labels).item())});
}

void loss_gradients(Draw& draw) {
  const EncoderDecoder model = small_model(draw, 7);
  const Ids source = with(letters(draw, 3, 7), eos), y = letters(draw, 2, 7);
  const Gradients expected = backward(reference_loss(model, source, after(bos, y), with(y, eos)));
  const Tensor loss = chapter10::loss(model, source, y);
  require(loss.needs_grad(),
          "the loss has no gradient: it was computed from values, or under NoGrad");
  const Gradients gradients = backward(loss);
  for (const NamedTensor& p : model.parameters())
    require_same("the gradient of " + p.name, gradients[p.tensor], expected[p.tensor]);
}

// ---- decoding -----------------------------------------------------------------------------------

/// Runs greedy on rows of logits, one for each step; returns its result and what it fed.
std::pair<Ids, Ids> run_greedy(const std::vector<Array>& rows, std::int64_t most) {
  Ids fed;
  const Ids found = chapter10::greedy(
      [&](std::int32_t token) {
        fed.push_back(token);
        if (fed.size() > rows.size())
          fail("greedy asks for step {}, but {}", fed.size(),
               static_cast<std::int64_t>(rows.size()) == most
                   ? fmt::format("at most {} tokens are allowed", most)
                   : fmt::format(
                         "</s> was the most probable token of step {} (all logits are negative)",
                         rows.size()));
        return rows[fed.size() - 1];
      },
      most);
  return {found, fed};
}

void greedy_tokens(Draw& draw) {
  const std::int64_t vocabulary = draw.extent(7, 5, 9), n = draw.extent(4, 3, 6);
  const Ids y = letters(draw, n, vocabulary);
  std::vector<Array> rows;
  for (const std::int32_t token : with(y, eos)) {
    Array row = draw.normal({1, vocabulary});
    double largest = 0;
    for (real& z : row.values()) largest = std::max(largest, std::abs(z));
    for (real& z : row.values()) z -= largest + 1;  // all logits are negative
    row.data()[token] = -0.5;
    rows.push_back(row);
  }
  auto [found, fed] = run_greedy(rows, 20);
  const std::string what =
      fmt::format("the result of greedy for the most probable tokens {} </s>", text(y));
  require_ids(what, found, y,
              {{"</s> ends the result and does not belong to it", with(y, eos)},
               {"<s> does not belong to the result", after(bos, y)},
               {"<s> and </s> do not belong to the result", after(bos, with(y, eos))}});
  require_ids("what greedy feeds to the steps", fed, after(bos, y));
  rows.pop_back();
  std::tie(found, fed) = run_greedy(rows, n);
  require_ids(fmt::format("the result of greedy with at most {} tokens", n), found, y);
}

void embedded_rows(Draw& draw) {
  const EncoderDecoder model = small_model(draw, 8);
  const Ids ids = letters(draw, draw.extent(5, 4, 7), 8);
  const auto t = std::ssize(ids) - 1;
  const Array all = reference::embed(model.embedding, ids).value();
  const std::int64_t d = all.cols();
  const Array positions = reference::positional_encoding(t + 2, d);
  const Array row = model.embedding(Ids{ids.back()}).value();
  const auto at = [&](std::int64_t p, double factor = 1) {
    return add(scale(row, factor), positions.sliced(p, p + 1)).value();
  };
  require_same(
      fmt::format("embedded(…, position {})", t), chapter10::embedded(model, ids.back(), t).value(),
      last_row(all),
      {{"it has the encoding of position 0, whatever the position", at(0)},
       {"it has the encoding of the position after", at(t + 1)},
       {"it has the encoding of the position before", at(t - 1)},
       {"the position is missing", row},
       {"the embedding is not multiplied by √d", at(t, 1 / std::sqrt(static_cast<double>(d)))},
       {"the embedding is multiplied by √d twice", at(t, std::sqrt(static_cast<double>(d)))}});
  require_same("embedded(…, position 0)", chapter10::embedded(model, ids[0], 0).value(),
               all.sliced(0, 1));
}

/// One query against keys and values, composed as in the reference, with a factor of the scores.
Array attended(const reference::MultiHeadAttention& layer, const Array& q, const Array& k,
               const Array& v, double factor, bool project = true) {
  const auto split = [&](const Array& x) {
    return transpose(reshape(x, {x.rows(), layer.heads, x.cols() / layer.heads}), 0, 1);
  };
  const Tensor p = softmax(scale(matmul(split(q), split(k), false, true), factor));
  const Tensor rows = reshape(transpose(matmul(p, split(v)), 0, 1), q.shape());
  return project ? layer.out_proj(rows).value() : rows.value();
}

/// The rows whose split into heads is a reshape of x to [heads, rows, d / heads].
Array mixed(const Array& x, std::int64_t heads) {
  const Tensor split = reshape(x, {heads, x.rows(), x.cols() / heads});
  return reshape(transpose(split, 0, 1), x.shape()).value();
}

void cached_rows(Draw& draw) {
  const EncoderDecoder model = small_model(draw, 8);
  const reference::MultiHeadAttention& layer = model.decoder[0].self_attention;
  const std::int64_t d = layer.in_proj_weight.shape()[1], n = draw.extent(5, 4, 7);
  const Array x = draw.normal({n, d});
  const Array whole = layer(x, x, causal_mask(n)).value();
  const auto part = [&](std::int64_t i) {
    return affine_rows(x, layer.in_proj_weight, layer.in_proj_bias, i * d, (i + 1) * d).value();
  };
  const auto bare = [&](const Array& rows, std::int64_t i) {
    return affine_rows(rows, layer.in_proj_weight, {}, i * d, (i + 1) * d).value();
  };
  const Array q = part(0), k = part(1), v = part(2);
  const double width = static_cast<double>(d),
               factor = 1 / std::sqrt(width / static_cast<double>(layer.heads));
  chapter10::LayerCache cache;
  for (std::int64_t t = 0; t < n; ++t) {
    const Array y = chapter10::cached_attention(layer, x.sliced(t, t + 1), cache).value();
    const Array newest = q.sliced(t, t + 1);
    std::vector<Mistake> mistakes{
        {"the output projection is missing",
         attended(layer, newest, k.sliced(0, t + 1), v.sliced(0, t + 1), factor, false)},
        {"the scores are divided by √d_model instead of √(d_model / heads)",
         attended(layer, newest, k.sliced(0, t + 1), v.sliced(0, t + 1), 1 / std::sqrt(width))},
        {"the scores are not divided by √(d_model / heads)",
         attended(layer, newest, k.sliced(0, t + 1), v.sliced(0, t + 1), 1)},
        {"keys and values are exchanged",
         attended(layer, newest, v.sliced(0, t + 1), k.sliced(0, t + 1), factor)},
        {"the values are projected by the rows of W_K instead of W_V",
         attended(layer, newest, k.sliced(0, t + 1), k.sliced(0, t + 1), factor)},
        {"the biases of the projections are missing",
         attended(layer, bare(x.sliced(t, t + 1), 0), bare(x.sliced(0, t + 1), 1),
                  bare(x.sliced(0, t + 1), 2), factor)}};
    if (t > 0) {
      mistakes.push_back({"the keys of the cache are rows of x: append their projection by W_K",
                          attended(layer, newest, x.sliced(0, t + 1), v.sliced(0, t + 1), factor)});
      mistakes.push_back({"the values of the cache are rows of x: append their projection by W_V",
                          attended(layer, newest, k.sliced(0, t + 1), x.sliced(0, t + 1), factor)});
      mistakes.push_back(
          {"the query is projected by the rows of W_K instead of W_Q",
           attended(layer, k.sliced(t, t + 1), k.sliced(0, t + 1), v.sliced(0, t + 1), factor)});
      mistakes.push_back(
          {"the heads are split by a reshape to [heads, rows, d / heads] alone, which mixes "
           "rows: reshape to [rows, heads, d / heads], then transpose",
           attended(layer, newest, mixed(k.sliced(0, t + 1), layer.heads),
                    mixed(v.sliced(0, t + 1), layer.heads), factor)});
      mistakes.push_back({"the row attends to itself only: earlier keys and values are lost",
                          attended(layer, newest, k.sliced(t, t + 1), v.sliced(t, t + 1), factor)});
      mistakes.push_back({"the row does not attend to its own key: append before attending",
                          attended(layer, newest, k.sliced(0, t), v.sliced(0, t), factor)});
    }
    require_same(fmt::format("cached_attention for row {} of {}", t, n), y, whole.sliced(t, t + 1),
                 mistakes);
    require(cache.keys.defined() && cache.keys.rows() == t + 1 && cache.values.defined() &&
                cache.values.rows() == t + 1,
            fmt::format("after row {} the cache has {} keys and {} values, expected {} of each", t,
                        cache.keys.defined() ? cache.keys.rows() : 0,
                        cache.values.defined() ? cache.values.rows() : 0, t + 1));
  }
}

void cached_steps(Draw& draw) {
  const NoGrad no_grad;
  const EncoderDecoder model = small_model(draw, 9);
  const Tensor encoded = model.encode(with(letters(draw, draw.extent(4, 2, 6), 9), eos));
  const Ids input = after(bos, letters(draw, draw.extent(5, 3, 7), 9));
  Cache cache(model);
  for (std::size_t t = 0; t < input.size(); ++t) {
    const Ids so_far(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(t) + 1);
    require_same(fmt::format("cached_step for token {}, compared with the last row of decode,", t),
                 chapter10::cached_step(model, encoded, input[t], cache),
                 last_row(model.decode(encoded, so_far).value()));
  }
}

void copied_cache(Draw& draw) {
  const NoGrad no_grad;
  const EncoderDecoder model = small_model(draw, 9);
  const Tensor encoded = model.encode(with(letters(draw, 3, 9), eos));
  Cache cache(model);
  chapter10::cached_step(model, encoded, bos, cache);
  chapter10::cached_step(model, encoded, 3, cache);
  Cache copy = cache;
  chapter10::cached_step(model, encoded, 4, copy);
  require_same("cached_step after a copy of its cache has read another token",
               chapter10::cached_step(model, encoded, 5, cache),
               last_row(model.decode(encoded, Ids{bos, 3, 5}).value()),
               {{"the copy's token is read too: the cache shares values with its copy, so "
                 "append to a new array",
                 last_row(model.decode(encoded, Ids{bos, 3, 4}).value())}});
}

// ---- beam ---------------------------------------------------------------------------------------

Array log_probabilities(const Array& logits) { return log(softmax(logits)).value(); }

/// Every candidate as {log_prob, parent, token}, the best first.
Array sorted_rows(std::vector<std::array<double, 3>> all, std::size_t width,
                  bool ascending = false) {
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return ascending ? a[0] < b[0] : a[0] > b[0];
  });
  if (all.size() > width) all.resize(width);
  Array rows({std::ssize(all), 3});
  for (std::size_t i = 0; i < all.size(); ++i)
    std::copy_n(all[i].begin(), 3, rows.row(static_cast<std::int64_t>(i)));
  return rows;
}

void candidates(Draw& draw) {
  const std::int64_t hypotheses = draw.extent(3, 2, 4), vocabulary = draw.extent(6, 5, 8);
  const auto width = static_cast<std::size_t>(draw.extent(4, 3, 5));
  Array logits = draw.normal({hypotheses, vocabulary}, 2);
  for (real& z : logits.values()) z += 3;
  std::vector<double> sums;
  for (std::int64_t i = 0; i < hypotheses; ++i) sums.push_back(draw.number(-3, -0.5));
  const Array log_p = log_probabilities(logits);
  using All = std::vector<std::array<double, 3>>;
  const auto all = [&](auto value) {
    All rows;
    for (std::int64_t i = 0; i < hypotheses; ++i)
      for (std::int64_t t = 0; t < vocabulary; ++t)
        rows.push_back({value(i, t), static_cast<double>(i), static_cast<double>(t)});
    return rows;
  };
  const auto right = [&](std::int64_t i, std::int64_t t) {
    return sums[static_cast<std::size_t>(i)] + log_p.row(i)[t];
  };
  Array found({0, 3});
  const auto list = chapter10::best_candidates(sums, logits, width);
  All rows;
  for (const chapter10::Candidate& c : list)
    rows.push_back({c.log_prob, static_cast<double>(c.parent), static_cast<double>(c.token)});
  found = Array({std::ssize(rows), 3});
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(rows[i].begin(), 3, found.row(static_cast<std::int64_t>(i)));
  require(
      list.size() == width,
      fmt::format("best_candidates returns {} candidates for a width of {}{}", list.size(), width,
                  std::ssize(list) == hypotheses
                      ? ", one for each hypothesis: all candidates of all hypotheses compete"
                      : ""));
  require_same("best_candidates, as rows of log-probability, parent and token,", found,
               sorted_rows(all(right), width),
               {{"the logits are added as they are: subtract ln Σ exp(logits) of their row",
                 sorted_rows(all([&](auto i, auto t) {
                               return sums[static_cast<std::size_t>(i)] + logits.row(i)[t];
                             }),
                             width)},
                {"the log-probability of the parent is missing",
                 sorted_rows(all([&](auto i, auto t) { return log_p.row(i)[t]; }), width)},
                {"these are products of a log-probability and a probability: logarithms are added",
                 sorted_rows(all([&](auto i, auto t) {
                               return sums[static_cast<std::size_t>(i)] * std::exp(log_p.row(i)[t]);
                             }),
                             width)},
                {"a probability is added to a log-probability: take its logarithm",
                 sorted_rows(all([&](auto i, auto t) {
                               return sums[static_cast<std::size_t>(i)] + std::exp(log_p.row(i)[t]);
                             }),
                             width)},
                {"the worst come first", sorted_rows(all(right), width, true)}});
  const auto few = chapter10::best_candidates({0}, logits.sliced(0, 1), 1000);
  require(std::ssize(few) == vocabulary,
          fmt::format("best_candidates of one hypothesis with a width of 1000 returns {} "
                      "candidates, expected all {} tokens",
                      few.size(), vocabulary));
}

/// ln p of a result: its tokens and, if it is shorter than `most`, </s>.
double log_probability(const EncoderDecoder& model, const Tensor& encoded, const Ids& y,
                       std::int64_t most) {
  const Array log_p = log_probabilities(model.decode(encoded, after(bos, y)).value());
  const Ids labels = std::ssize(y) < most ? with(y, eos) : y;
  double sum = 0;
  for (std::size_t t = 0; t < labels.size(); ++t)
    sum += log_p.row(static_cast<std::int64_t>(t))[labels[t]];
  return sum;
}

/// The most probable of all results that begin with y.
void best_of_all(const EncoderDecoder& model, const Tensor& encoded, std::int64_t vocabulary,
                 std::int64_t most, Ids& y, std::pair<double, Ids>& best) {
  const double log_p = log_probability(model, encoded, y, most);
  if (log_p > best.first) best = {log_p, y};
  if (std::ssize(y) == most) return;
  for (std::int32_t t = 0; t < vocabulary; ++t) {
    if (t == eos) continue;
    y.push_back(t);
    best_of_all(model, encoded, vocabulary, most, y, best);
    y.pop_back();
  }
}

/// Searches, and requires that the result has the log-probability that the search states.
chapter10::Hypothesis search(const EncoderDecoder& model, const Tensor& encoded, std::size_t width,
                             std::int64_t most) {
  const chapter10::Hypothesis found = chapter10::beam_search(model, encoded, width, most);
  const double expected = log_probability(model, encoded, found.tokens, most);
  require(close(found.log_prob, expected, exact),
          fmt::format("beam search of width {} states {:.12g} as the log-probability of its result "
                      "\"{}\", but the model gives {:.12g}: is the cache that of the parent?",
                      width, found.log_prob, text(found.tokens), expected));
  return found;
}

void beams(Draw& draw) {
  const NoGrad no_grad;
  constexpr std::int64_t vocabulary = 5;
  for (int round = 0; round < 6; ++round) {
    const EncoderDecoder model = small_model(draw, vocabulary);
    const Tensor encoded = model.encode(with(letters(draw, 3, vocabulary), eos));
    for (const std::size_t width : {2, 3, 4}) search(model, encoded, width, 7);
    Cache cache(model);
    const Ids greedy = chapter10::greedy(
        [&](std::int32_t token) { return chapter10::cached_step(model, encoded, token, cache); },
        7);
    require_ids("the result of beam search of width 1, compared with greedy,",
                search(model, encoded, 1, 7).tokens, greedy);
    Ids tokens;
    std::pair<double, Ids> best{-infinity, {}};
    best_of_all(model, encoded, vocabulary, 3, tokens, best);
    require_ids("the result of beam search of width 200, which keeps all sequences,",
                search(model, encoded, 200, 3).tokens, best.second);
  }
}

// ---- budgets ------------------------------------------------------------------------------------

/// A step may multiply more than an earlier one only for scores and weights of the new keys.
void steps_in_budget(Draw&) {
  constexpr std::int64_t d = 16;
  Init init(1);
  const EncoderDecoder model({d, 2, 32, 1, 1}, 9, init);
  const NoGrad no_grad;
  const Tensor encoded = model.encode(Ids{3, 4, 5, eos});
  Cache cache(model);
  const auto flops = [&](int step) {
    kernels::ProductFlops counted;
    const kernels::ProductLog log(counted);
    chapter10::cached_step(model, encoded, 3 + step % 5, cache);
    return counted.executed;
  };
  double first = 0, last = 0;
  require_within("400 cached steps", 0.6, [&] {
    for (int step = 1; step <= 400; ++step) (step == 100 ? first : last) = flops(step);
  });
  constexpr double allowed = 300 * 4 * d;
  require(last - first <= allowed,
          fmt::format("step 400 takes {:.0f} FLOPs more than step 100, allowed are {:.0f}, for "
                      "scores and values of 300 keys: project only the newest row, and read the "
                      "keys and values of the others from the cache",
                      last - first, allowed));
}

/// Trains on lines of 1 to 3 letters and their reverse; then decodes all.
void learns_to_reverse(Draw& draw) {
  constexpr std::int32_t alphabet = 3;
  Init init(1);
  const EncoderDecoder model({16, 2, 32, 1, 1}, first_letter + alphabet, init);
  reference::Adam adam(model.parameters());
  double recent = 0;
  constexpr int updates = 700;
  for (int s = 1; s <= updates; ++s) {
    Tensor loss(Array::scalar(0));
    for (int i = 0; i < 4; ++i) {
      const Ids y = letters(draw, 1 + draw.random().below(3), first_letter + alphabet);
      loss = loss + scale(chapter10::loss(model, with(Ids(y.rbegin(), y.rend()), eos), y), 0.25);
    }
    // A short warmup, then a constant rate, then a straight line to 0.
    adam.step(backward(loss), 0.007 * std::min({1.0, s / 20.0, 2.0 * (updates - s + 1) / updates}));
    if (s > updates - 20) recent += loss.item() / 20;
  }
  int right = 0, all = 0;
  Ids wrong_source, wrong;
  const NoGrad no_grad;
  for (std::int32_t code = 0; code < 27; ++code) {
    const Ids source{first_letter + code % 3, first_letter + code / 3 % 3, first_letter + code / 9};
    const Tensor encoded = model.encode(with(source, eos));
    Cache cache(model);
    const Ids found = chapter10::greedy(
        [&](std::int32_t token) { return chapter10::cached_step(model, encoded, token, cache); },
        8);
    ++all;
    if (found == Ids(source.rbegin(), source.rend()))
      ++right;
    else
      wrong_source = source, wrong = found;
  }
  require(
      right >= 24,
      fmt::format(
          "after {} updates the model reverses {} of {} lines, expected at least 24 (loss {:.3f}); "
          "it writes \"{}\" for {}",
          updates, right, all, recent, text(wrong), text(wrong_source)));
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "teacher forcing", forcing},
    {"values", "the loss", loss_values},
    {"values", "greedy decoding", greedy_tokens},
    {"values", "cached attention", cached_rows},
    {"values", "the embedding of one position", embedded_rows},
    {"values", "cached steps", cached_steps},
    {"values", "the best candidates", candidates},
    {"values", "online softmax", tiles::online_values},
    {"values", "online softmax of large scores", tiles::online_large},
    {"values", "attention in tiles", tiles::attention_values},
    {"gradients", "the loss", loss_gradients},
    {"gradients", "attention in tiles", tiles::gradients},
    {"properties", "a copied cache", copied_cache},
    {"properties", "beams of width 1, 2, 3 and all", beams},
    {"properties", "masked scores", tiles::online_masked},
    {"properties", "any order of tiles", tiles::online_order},
    {"properties", "extents 0 and 1", tiles::extents},
    {"properties", "the model learns to reverse", learns_to_reverse},
    {"budgets", "the memory of tiles", tiles::memory},
    {"budgets", "the products of cached steps", steps_in_budget},
})
