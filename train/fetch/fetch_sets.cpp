#include <fmt/format.h>

#include "autograd/base/error.h"
#include "train/fetch/fetch.h"

namespace heed {
namespace {

constexpr std::string_view kMulti30k = "/multi30k/dataset/master/data/task1/";

/// Raw text, compressed at the source too.
FetchFile raw(const std::string& name, std::uint64_t size, const std::string& sha256) {
  return {name + ".gz", fmt::format("{}raw/{}.gz", kMulti30k, name), size, sha256};
}

/// Lower-cased, normalised, tokenised by Moses; uncompressed at the source.
FetchFile tok(const std::string& name, std::uint64_t size, const std::string& sha256) {
  return {name + ".gz", fmt::format("{}tok/{}", kMulti30k, name), size, sha256};
}

FetchSet multi30k() {
  return {
      "multi30k",
      "Multi30k task 1, German and English (github.com/multi30k/dataset): for research and "
      "education, not for commercial use",
      {
          // clang-format off
    raw("train.de", 2110398, "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"),
    raw("train.en", 1801238, "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"),
    raw("val.de", 75981, "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"),
    raw("val.en", 63297, "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"),
    raw("test_2016_flickr.de", 70649, "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"),
    raw("test_2016_flickr.en", 62076, "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"),
    tok("train.lc.norm.tok.de", 2150008, "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
    tok("train.lc.norm.tok.en", 1837696, "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
    tok("val.lc.norm.tok.de", 77273, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
    tok("val.lc.norm.tok.en", 64608, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
    tok("test_2016_flickr.lc.norm.tok.de", 71917, "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
    tok("test_2016_flickr.lc.norm.tok.en", 63307, "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
          // clang-format on
      }};
}

FetchSet tinyshakespeare() {
  return {"tinyshakespeare",
          "Tiny Shakespeare (github.com/karpathy/char-rnn): the text is in the public domain",
          {{"input.txt", "/karpathy/char-rnn/master/data/tinyshakespeare/input.txt", 1115394,
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}}};
}

FetchSet mnist() {
  return {"mnist",
          "MNIST's 10,000 test digits (github.com/fgnt/mnist): by Yann LeCun and Corinna Cortes; "
          "observe their terms. heed has no task that reads images yet",
          {{"t10k-images-idx3-ubyte.gz", "/fgnt/mnist/master/t10k-images-idx3-ubyte.gz", 7840016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
           {"t10k-labels-idx1-ubyte.gz", "/fgnt/mnist/master/t10k-labels-idx1-ubyte.gz", 10008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}}};
}

}  // namespace

const std::vector<FetchSet>& fetch_sets() {
  static const std::vector<FetchSet> sets = {multi30k(), tinyshakespeare(), mnist()};
  return sets;
}

const FetchSet& fetch_set(std::string_view name) {
  std::vector<std::string> names;
  for (const FetchSet& set : fetch_sets()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  throw Error(Exit::usage,
              fmt::format("fetch: no data set \"{}\"; there are {}", name, fmt::join(names, ", ")));
}

}  // namespace heed
