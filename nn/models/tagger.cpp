#include "nn/models/tagger.h"

#include "nn/models/tower.h"

HEED_BEGIN

namespace {

class EncoderTagger final : public Tagger {
 public:
  EncoderTagger(const ModelOptions& options, std::int64_t vocabulary, std::int64_t labels,
                std::uint64_t seed)
      : position_limit_(options.positions == PositionKind::learned ? options.max_positions : 0) {
    Init init(options.init, options.init_std, seed);
    encoder_ = Tower(options, vocabulary, BlockKind::encoder, init);
    output_ = Linear(options.d_model, labels, init);
  }

  Parameters parameters() const override {
    Parameters all;
    append(all, "embedding", encoder_.embedding);
    append(all, "positions", encoder_.positions);
    append(all, "encoder", encoder_.stack);
    append(all, "output", output_);
    return all;
  }
  std::vector<NamedStatistics> statistics() const override {
    std::vector<NamedStatistics> all = encoder_.stack.statistics();
    for (NamedStatistics& s : all) s.name = "encoder." + s.name;
    return all;
  }
  std::int64_t position_limit() const override { return position_limit_; }
  Tensor logits(const Rows& rows, Pass& pass) const override { return output_(hidden(rows, pass)); }
  Tensor loss(const Rows& rows, const LossOptions& options, Pass& pass) const override {
    return projected_loss(hidden(rows, pass), output_, rows.labels, options);
  }

 private:
  Tensor hidden(const Rows& rows, Pass& pass) const {
    return encoder_(rows.source.ids, {rows.source.offsets, nullptr, pass});
  }

  std::int64_t position_limit_;
  Tower encoder_;
  Linear output_;
};

}  // namespace

std::unique_ptr<Tagger> make_tagger(const ModelOptions& options, std::int64_t vocabulary,
                                    std::int64_t labels, std::uint64_t seed) {
  return std::make_unique<EncoderTagger>(options, vocabulary, labels, seed);
}

HEED_END
