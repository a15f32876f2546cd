// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/authentication.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

unsigned char const* bytes_of(std::string_view text) { return reinterpret_cast<unsigned char const*>(text.data()); }

}  // namespace

std::string hmac(std::string_view key, std::string_view text) {
  std::string bytes(kHmacBytes, '\0');
  unsigned length = 0;
  // For OpenSSL a null key means the key of the previous call.
  char const* const key_bytes = key.empty() ? "" : key.data();
  auto const* const ok = HMAC(EVP_sha256(), key_bytes, static_cast<int>(key.size()), bytes_of(text), text.size(),
                              reinterpret_cast<unsigned char*>(bytes.data()), &length);
  GPUPS_REQUIRE(ok != nullptr && length == kHmacBytes,
                "OpenSSL cannot compute HMAC-SHA256 (processes cannot be authenticated): check its installation");
  return bytes;
}

bool equal_hmac(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  GPUPS_REQUIRE(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1,
                "OpenSSL has no random bytes (keys could be guessed): check that /dev/urandom can "
                "be read");
  return bytes;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char const byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace gpups::comm
