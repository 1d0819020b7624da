#include "autograd/base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/base/files.h"

namespace heed {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() { begin(); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void begin() { check(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr)); }
  static void check(bool done) {
    if (!done) throw Error(Exit::failed, "SHA-256: OpenSSL refuses to compute it");
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  State::check(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned int length = 0;
  State::check(EVP_DigestFinal_ex(state_->context, sum.data(), &length));
  state_->begin();
  std::string out;
  for (unsigned int i = 0; i < length; ++i) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += digits[sum[i] >> 4];
    out += digits[sum[i] & 15];
  }
  return out;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex();
}

std::string sha256_hex(std::string_view bytes) { return sha256_hex(as_bytes(bytes)); }

std::string sha256_file(const std::filesystem::path& path) {
  constexpr std::size_t piece = std::size_t{1} << 20;                // bytes
  const auto bytes = std::make_unique_for_overwrite<char[]>(piece);  // clearing it takes time
  FileReader file(path);
  Sha256 sum;
  while (const std::size_t got = file.read_some({bytes.get(), piece}))
    sum.update(std::as_bytes(std::span(bytes.get(), got)));
  return sum.hex();
}

}  // namespace heed
