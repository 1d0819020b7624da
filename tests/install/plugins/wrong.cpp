/// Plugins with one fault each.
#include <heed/autograd/ops.h>
#include <heed/nn/layers/plugin.h>

namespace {

#ifdef AHEAD
/// Reads the next row, even in a decoder.
struct Ahead final : heed::Mixer {
  Ahead(const heed::ModelOptions&, heed::AttentionScope, heed::Init& init) : gain(init.ones(1)) {}
  heed::Tensor operator()(const heed::Tensor& x, const heed::Context& context) const override {
    std::vector<heed::Tensor> rows;
    for (std::size_t s = 0; s + 1 < context.offsets.size(); ++s) {
      const std::int64_t begin = context.offsets[s], end = context.offsets[s + 1];
      if (begin < end) rows.push_back(slice(x, 0, begin + 1, end));
      if (begin < end) rows.push_back(slice(x, 0, begin, begin + 1));
    }
    return concat(rows, 0) * gain;
  }
  heed::Parameters parameters() const override { return {{"gain", gain}}; }
  heed::Tensor gain;
};
#endif

#ifdef UNDOTTED
heed::Tensor same(const heed::Tensor& x) { return x; }
#endif

}  // namespace

#ifdef AHEAD
HEED_MIXER("wrong.ahead", Ahead)
#endif
#ifdef UNDOTTED
HEED_ACTIVATION("gelu", same)
#endif
#ifdef LOST
heed::Tensor defined_nowhere(const heed::Tensor& x);
HEED_ACTIVATION("wrong.lost", defined_nowhere)
#endif
