/// A plugin that leaves a mark, the file "ran" in the current folder, as soon as it is loaded.
#include <heed/autograd/ops.h>
#include <heed/nn/layers/plugin.h>

#include <cstdio>

namespace {

struct Mark {
  Mark() {
    if (std::FILE* const file = std::fopen("ran", "w")) std::fclose(file);
  }
} const mark;

heed::Tensor same(const heed::Tensor& x) { return x * heed::real(1); }

}  // namespace

HEED_ACTIVATION("marks.same", same)
