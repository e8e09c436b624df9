#include "engine/base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "engine/base/atomic_file.h"

namespace stacklab {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

Status write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(file_error("cannot write", path, errno));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  OutputFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.fd_ < 0) return tl::unexpected(file_error("cannot create", path, errno));
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      size_(other.size_),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(buffer_, other.buffer_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status OutputFile::write(std::string_view bytes) {
  size_ += static_cast<std::int64_t>(bytes.size());
  if (buffer_.size() + bytes.size() < buffer_bytes) {
    buffer_.append(bytes);
    return {};
  }
  if (Status done = flush(); !done) return done;
  if (bytes.size() >= buffer_bytes) return write_all(fd_, bytes, path_);
  buffer_.append(bytes);
  return {};
}

Status OutputFile::flush() {
  const Status done = write_all(fd_, buffer_, path_);
  buffer_.clear();
  return done;
}

Status OutputFile::overwrite_start(std::string_view bytes) {
  if (Status done = flush(); !done) return done;
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::pwrite(fd_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(file_error("cannot write", path_, errno));
    at += static_cast<std::size_t>(n);
  }
  return {};
}

Status OutputFile::close() {
  if (fd_ < 0) return {};
  Status done = flush();
  if (::close(std::exchange(fd_, -1)) != 0 && done) done = tl::unexpected(file_error("cannot write", path_, errno));
  return done;
}

}  // namespace stacklab
