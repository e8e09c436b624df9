#include "engine/base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/base/atomic_file.h"

namespace stacklab {

Result<MappedFile> MappedFile::open(const std::filesystem::path& file) {
  const Result<int> opened = open_regular_file(file);
  if (!opened) return tl::unexpected(opened.error());
  const int fd = *opened;
  struct stat status {};
  MappedFile mapped;
  int code = ::fstat(fd, &status) == 0 ? 0 : errno;
  if (code == 0 && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
      code = errno;
    } else {
      mapped.data_ = static_cast<const std::byte*>(address);
      mapped.size_ = size;
    }
  }
  ::close(fd);
  if (code != 0) return tl::unexpected(file_error("cannot read", file, code));
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::size_t begin, std::size_t bytes) const {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = (begin + page - 1) / page * page;
  const std::size_t last = std::min(begin + bytes, size_) / page * page;
  if (last > first) ::madvise(const_cast<std::byte*>(data_ + first), last - first, MADV_DONTNEED);
}

}  // namespace stacklab
