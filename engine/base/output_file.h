// A file that is written once, from its beginning to its end, through a buffer; for the folders that appear whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace stacklab {

class OutputFile {
 public:
  // The file must not exist.
  static Result<OutputFile> create(const std::filesystem::path& file);
  OutputFile() = default;
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  Status write(std::string_view bytes);
  // Bytes given so far.
  std::int64_t size() const { return size_; }
  // Puts these bytes over the first ones, which must be written; what is known at the end goes where it is read first.
  Status overwrite_start(std::string_view bytes);
  // Everything reaches the system. Syncing to the disk is left to the folder's commit.
  Status close();

 private:
  Status flush();

  std::filesystem::path path_;
  std::string buffer_;
  std::int64_t size_ = 0;
  int fd_ = -1;
};

// Numbers in files, little-endian.
template <class T>
void put_number(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}
template <class T>
T get_number(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(bytes[at + i]) << (8 * i));
  return value;
}

}  // namespace stacklab
