// The bytes of a file, unpacked where it is packed: plain, gzip or zstd, told by how it begins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "engine/base/result.h"

namespace stacklab {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills as much as there is, at least one byte; 0: the end. Errors name the file and the byte of it where they are:
  // unreadable, packed data that is damaged or ends too early.
  virtual Result<std::size_t> read(std::span<char> into) = 0;
  // Of the file itself, so far: bytes, and the SHA-256 of all when the end is reached.
  virtual std::int64_t file_bytes() const = 0;
  virtual std::string file_sha256() const = 0;
};

// Members or frames that follow each other are one text. Memory: some hundred kilobytes, for zstd at most the window
// of 128 MiB that a packer may ask for.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& file);

}  // namespace stacklab
