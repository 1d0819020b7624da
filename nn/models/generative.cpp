#include <algorithm>

#include "nn/models/model.h"

HEED_BEGIN

Parameters Model::state() const {
  Parameters all = parameters();
  for (const NamedTensor& buffer : buffers()) all.push_back(buffer);
  return all;
}

Parameters Model::buffers() const {
  Parameters all;
  for (const NamedStatistics& s : statistics()) {
    all.push_back({s.name + ".running_mean", s.of->running_mean});
    all.push_back({s.name + ".running_var", s.of->running_var});
  }
  return all;
}

EncoderOutput Generative::encode(const SideView&, Pass&) const { return {}; }

Tensor Generative::hidden(const ModelInput& input, Pass& pass) const {
  const EncoderOutput encoder_output = encode(input.source, pass);
  Context context{input.target.offsets, &encoder_output, pass};
  context.lanes = input.lanes;
  return decoder_rows(input.target.ids, context);
}

Tensor Generative::loss(const ModelInput& input, const LossOptions& options, Pass& pass) const {
  return deferred_loss(deferred_logits(input, pass), input.labels, options);
}

namespace {

/// The output of the encoder, computed in parts of whole sequences.
EncoderOutput encode_in_parts(const Generative& model, const SideView& source) {
  // Approximate number of rows in a part, so that its intermediate results fit in the CPU caches.
  constexpr std::int32_t part = 2048;
  const Offsets offsets = source.offsets;
  const std::int32_t total = offsets.back(), parts = std::max(1, (total + part - 1) / part);
  std::vector<Array> rows;
  EncoderOutput all_parts;
  all_parts.offsets = {0};
  std::size_t begin = 0;
  for (std::int32_t i = 1; begin + 1 < offsets.size(); ++i) {
    // Part i ends at the first sequence boundary at or after i / parts of the rows, so that parts
    // have similar sizes.
    const auto share = static_cast<std::int32_t>(std::int64_t{total} * std::min(i, parts) / parts);
    std::size_t end = begin + 1;
    while (end + 1 < offsets.size() && offsets[end] < share) ++end;
    std::vector<std::int32_t> part_offsets(&offsets[begin], &offsets[end] + 1);
    for (std::int32_t& o : part_offsets) o -= offsets[begin];
    Pass pass;
    const EncoderOutput encoded =
        model.encode(source.part(offsets[begin], offsets[end], part_offsets), pass);
    const std::int32_t first = all_parts.offsets.back();
    for (std::size_t s = 1; s < encoded.offsets.size(); ++s)
      all_parts.offsets.push_back(first + encoded.offsets[s]);
    rows.push_back(encoded.rows.value());
    begin = end;
  }
  if (rows.empty()) return all_parts;
  Array rows_of_all({all_parts.offsets.back(), rows.front().cols()});
  real* at = rows_of_all.data();
  for (const Array& block : rows) at = std::copy_n(block.data(), block.size(), at);
  all_parts.rows = Tensor(std::move(rows_of_all));
  return all_parts;
}

void require_one_each(std::span<const std::int32_t> tokens, std::size_t hypotheses) {
  if (tokens.size() != hypotheses)
    fail("[decoding] expected one token per hypothesis ({} in all), got {}", hypotheses,
         tokens.size());
}

void require_parents(std::span<const std::int32_t> parents, std::size_t hypotheses) {
  for (const std::int32_t p : parents) {
    if (p < 0 || p >= static_cast<std::int64_t>(hypotheses))
      fail("[decoding] expected parents in [0, {}), got {}", hypotheses, p);
  }
}

void require_unread(bool begun, bool has_source) {
  if (begun || has_source)
    fail(
        "[decoding] prefill must precede the first step and any other prompt, and requires a model "
        "without a source");
}

class CachedDecoding final : public Decoding {
 public:
  CachedDecoding(const Generative& model, const SideView& source, std::int64_t count)
      : model_(model), cache_(count) {
    const NoGrad no_grad;
    if (!source.offsets.empty()) encoder_output_ = encode_in_parts(model, source);
  }

  Array step(std::span<const std::int32_t> tokens) override {
    require_one_each(tokens, cache_.paths.size());
    const NoGrad no_grad;
    Pass pass;
    cache_.grow();
    // Each hypothesis is a sequence of one row.
    std::vector<std::int32_t> offsets(tokens.size() + 1);
    std::iota(offsets.begin(), offsets.end(), 0);
    const Tensor rows = model_.decoder_rows(tokens, {offsets, &encoder_output_, pass, &cache_});
    encoder_output_.rows = {};  // each layer has cached the keys and values computed from them
    return model_.output()(rows).value();
  }
  void prefill(std::span<const std::int32_t> tokens) override {
    require_unread(cache_.position >= 0, !encoder_output_.offsets.empty());
    if (tokens.empty()) return;
    const NoGrad no_grad;
    Pass pass;
    cache_.position = 0;  // position of the first row
    for (std::vector<std::int32_t>& path : cache_.paths) path.assign(tokens.size(), 0);
    const std::int32_t offsets[] = {0, static_cast<std::int32_t>(tokens.size())};
    Context context{offsets, &encoder_output_, pass, &cache_};
    context.prefill = true;
    model_.decoder_rows(tokens, context);
    cache_.position = std::ssize(tokens) - 1;
  }
  void select(std::span<const std::int32_t> parents) override {
    require_parents(parents, cache_.paths.size());
    cache_.select(parents);
  }

 private:
  const Generative& model_;
  EncoderOutput encoder_output_;
  Cache cache_;
};

class PlainDecoding final : public Decoding {
 public:
  PlainDecoding(const Generative& model, const SideView& source, std::int64_t count)
      : model_(model), hypotheses_(count) {
    for (std::size_t s = 0; s + 1 < source.offsets.size(); ++s) {
      const SideView sequence = source.part(source.offsets[s], source.offsets[s + 1], {});
      hypotheses_[s].source.assign(sequence.ids.begin(), sequence.ids.end());
      hypotheses_[s].features.assign(sequence.features.begin(), sequence.features.end());
    }
    width_ = source.width;
    has_source_ = !source.offsets.empty();
  }

  Array step(std::span<const std::int32_t> tokens) override {
    require_one_each(tokens, hypotheses_.size());
    const NoGrad no_grad;
    Side source, target;
    for (std::size_t i = 0; i < hypotheses_.size(); ++i) {
      hypotheses_[i].target.push_back(tokens[i]);
      source.append(hypotheses_[i].source, hypotheses_[i].features, width_);
      target.append(hypotheses_[i].target);
    }
    Pass pass;
    const SideView side = has_source_ ? source.view(width_) : SideView{};
    const Array hidden = model_.hidden({side, target.view()}, pass).value();
    Array last({static_cast<std::int64_t>(hypotheses_.size()), hidden.cols()});
    for (std::int64_t i = 0; i < last.rows(); ++i)
      std::copy_n(hidden.row(target.offsets[i + 1] - 1), hidden.cols(), last.row(i));
    return model_.output()(Tensor(last)).value();
  }
  void prefill(std::span<const std::int32_t> tokens) override {
    require_unread(!hypotheses_.empty() && !hypotheses_[0].target.empty(), has_source_);
    for (Hypothesis& h : hypotheses_) h.target.assign(tokens.begin(), tokens.end());
  }
  void select(std::span<const std::int32_t> parents) override {
    require_parents(parents, hypotheses_.size());
    std::vector<Hypothesis> chosen;
    for (const std::int32_t p : parents) chosen.push_back(hypotheses_[p]);
    hypotheses_ = std::move(chosen);
  }

 private:
  struct Hypothesis {
    std::vector<std::int32_t> source, target;
    std::vector<float> features;  // feature rows of the source, in place of ids
  };
  struct Side {
    std::vector<std::int32_t> ids, offsets{0};
    std::vector<float> features;

    void append(const std::vector<std::int32_t>& sequence, const std::vector<float>& values = {},
                std::int64_t width = 0) {
      ids.insert(ids.end(), sequence.begin(), sequence.end());
      features.insert(features.end(), values.begin(), values.end());
      const std::size_t rows = width > 0 ? features.size() / width : ids.size();
      offsets.push_back(static_cast<std::int32_t>(rows));
    }
    SideView view(std::int64_t width = 0) const { return {ids, offsets, features, width}; }
  };

  const Generative& model_;
  bool has_source_ = false;
  std::int64_t width_ = 0;  // number of values in a feature row
  std::vector<Hypothesis> hypotheses_;
};

}  // namespace

std::unique_ptr<Decoding> Generative::decode(const SideView& source, std::int64_t count,
                                             bool cached) const {
  if (cached) return std::make_unique<CachedDecoding>(*this, source, count);
  return std::make_unique<PlainDecoding>(*this, source, count);
}

HEED_END
