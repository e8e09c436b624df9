// A file's bytes, mapped for reading: of a file of any size only the pages in use take memory, and the system may take
// those back.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "engine/base/result.h"

namespace stacklab {

class MappedFile {
 public:
  // Errors: missing, not a regular file, unreadable. The file must not be cut shorter while it is mapped.
  static Result<MappedFile> open(const std::filesystem::path& file);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // These bytes are not needed for now: their pages stop counting as this process's memory, and are read again when
  // they are.
  void release(std::size_t begin, std::size_t bytes) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace stacklab
