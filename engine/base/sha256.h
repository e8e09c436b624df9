// SHA-256 as lower-case hex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace stacklab {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }
  // The digest of everything so far, 64 digits; more may follow.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);
std::string sha256_hex(std::span<const std::byte> bytes);
// Reads a regular file in pieces. so_far is told the bytes that are read, and may end it. Errors name the file.
Result<std::string> sha256_file(const std::filesystem::path& file,
                                const std::function<Status(std::int64_t bytes)>& so_far = {});

}  // namespace stacklab
