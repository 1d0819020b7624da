#include "autograd/io/sha256.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <array>

#include "autograd/base/error.h"
#include "autograd/io/files.h"

namespace heed {

namespace {

void check(bool done) {
  if (!done) throw Error(Exit::failed, "SHA-256: OpenSSL failed");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  check(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> sum{};
  check(EVP_DigestFinal_ex(context_.get(), sum.data(), nullptr) &&
        EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  return fmt::format("{:02x}", fmt::join(sum, ""));
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex();
}

std::string sha256_hex(std::string_view bytes) { return sha256_hex(as_bytes(bytes)); }

std::string sha256_file(const std::filesystem::path& path) {
  constexpr std::size_t piece = std::size_t{1} << 20;  // bytes
  // The buffer is left uninitialised, because zeroing it takes time.
  const auto bytes = std::make_unique_for_overwrite<char[]>(piece);
  FileReader file(path);
  Sha256 sum;
  while (const std::size_t got = file.read_some({bytes.get(), piece}))
    sum.update(std::as_bytes(std::span(bytes.get(), got)));
  return sum.hex();
}

}  // namespace heed
