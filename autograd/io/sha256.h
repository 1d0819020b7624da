#pragma once
/// SHA-256 (FIPS 180-4), as lower-case hexadecimal digits.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace heed {

/// Hashes a stream of bytes.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  /// The hash as 64 hexadecimal digits. Resets the object for another stream.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;  // OpenSSL's context
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view bytes);

/// The hash of a file's bytes, which are read piece by piece. Throws as FileReader does.
std::string sha256_file(const std::filesystem::path& path);

}  // namespace heed
