#include "engine/store/spill.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "engine/base/atomic_file.h"

namespace stacklab::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "spill-", words_prefix = "words-";  // taken in in this order
constexpr std::string_view suffix = ".jsonl";

constexpr std::size_t block_bytes = 1 << 16;

// Returns an errno, or 0.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

// Calls visit for every whole line of fd, from its start. Returns an errno, or 0. A last line without an end was cut
// off: visited as it is.
int for_each_line(int fd, const std::function<void(std::string_view)>& visit) {
  std::string buffer;
  std::array<char, block_bytes> block{};
  off_t offset = 0;
  for (;;) {
    const ssize_t n = pread(fd, block.data(), block.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    offset += n;
    buffer.append(block.data(), static_cast<std::size_t>(n));
    std::size_t start = 0;
    for (std::size_t end; (end = buffer.find('\n', start)) != std::string::npos; start = end + 1)
      visit(std::string_view(buffer).substr(start, end - start));
    buffer.erase(0, start);
  }
  if (!buffer.empty()) visit(buffer);
  return 0;
}

std::vector<fs::path> spill_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if ((name.starts_with(prefix) || name.starts_with(words_prefix)) && name.ends_with(suffix))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

SpillFile::~SpillFile() {
  if (fd_ < 0) return;
  if (empty()) unlink(path_.c_str());
  close(fd_);
}

Status SpillFile::create() {
  for (;;) {
    // The time keeps apart processes of the same number, on other computers or after a restart.
    const auto stamp = std::chrono::steady_clock::now().time_since_epoch().count() ^
                       std::chrono::system_clock::now().time_since_epoch().count();
    path_ = folder_ / fmt::format("{}{}-{:x}{}", use_ == Use::rows ? prefix : words_prefix, getpid(), stamp, suffix);
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd_ < 0) return tl::unexpected<Error>(file_error("cannot create", path_, errno));
    // Somebody who opens the store may have taken the file away before the lock was on it.
    struct stat status {};
    if (flock(fd_, LOCK_EX) == 0 && fstat(fd_, &status) == 0 && status.st_nlink > 0) break;
    close(fd_);
  }
  bytes_ = 0;
  return {};
}

Status SpillFile::reserve(std::int64_t bytes) {
  if (fd_ < 0) {
    if (auto made = create(); !made) return made;
  }
  if (fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0)
    return tl::unexpected<Error>(file_error("cannot reserve room for", path_, errno));
  return {};
}

Status SpillFile::append(std::span<const Record> records) {
  if (records.empty()) return {};
  if (fd_ < 0) {
    if (auto made = create(); !made) return made;
  }
  std::string text;
  std::int64_t written = 0;
  int error = 0;
  for (std::size_t i = 0; i < records.size() && error == 0; ++i) {
    text += to_json_line(records[i]) + '\n';
    if (text.size() < block_bytes && i + 1 < records.size()) continue;
    error = write_all(fd_, text);
    written += static_cast<std::int64_t>(text.size());
    text.clear();
  }
  if (error == 0 && fdatasync(fd_) != 0) error = errno;
  if (error == 0) {
    bytes_ += written;
    return {};
  }
  if (ftruncate(fd_, bytes_) != 0) return tl::unexpected<Error>(file_error("cannot shorten", path_, errno));
  return tl::unexpected<Error>(file_error("cannot write", path_, error));
}

Status SpillFile::read(const std::function<void(const Record&)>& visit) const {
  if (empty()) return {};
  const int error = for_each_line(fd_, [&](std::string_view line) {
    if (const auto record = from_json_line(line)) visit(*record);
  });
  if (error != 0) return tl::unexpected<Error>(file_error("cannot read", path_, error));
  return {};
}

void SpillFile::discard() {
  if (fd_ < 0) return;
  // Emptied first: should the name stay (a folder that became read-only), nothing is left to take in twice.
  if (ftruncate(fd_, 0) != 0 && unlink(path_.c_str()) != 0) return;
  unlink(path_.c_str());
  close(fd_);
  fd_ = -1;
  bytes_ = 0;
}

Result<std::int64_t> LeftSpill::read(const std::function<void(const Record&)>& visit) const {
  std::int64_t unreadable = 0;
  const int error = for_each_line(fd_, [&](std::string_view line) {
    if (const auto record = from_json_line(line))
      visit(*record);
    else
      ++unreadable;
  });
  if (error != 0) return tl::unexpected<Error>(file_error("cannot read", path_, error));
  return unreadable;
}

bool spills_are_left(const fs::path& folder) {
  for (const fs::path& path : spill_files(folder)) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    struct stat status {};
    const bool left = fstat(fd, &status) == 0 && status.st_size > 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    if (left) return true;
  }
  return false;
}

std::vector<std::string> take_in_spills(const fs::path& folder,
                                        const std::function<Result<std::int64_t>(const LeftSpill&)>& apply) {
  const std::vector<fs::path> files = spill_files(folder);
  std::error_code ec;
  std::vector<std::string> notes;
  for (const auto& path : files) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
      if (errno != ENOENT) notes.push_back(file_error("cannot open", path, errno).message());
      continue;
    }
    struct stat status {};
    // Locked: its owner lives. Without a name: somebody else has just taken it in.
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &status) == 0 && status.st_nlink > 0) {
      const auto left_over = apply(LeftSpill(path, fd));
      if (!left_over) {
        notes.push_back(fmt::format("{} was not taken in: {}", path.string(), left_over.error().message()));
      } else if (*left_over == 0) {
        unlink(path.c_str());
      } else {
        const fs::path aside = path.string() + ".unread";
        fs::rename(path, aside, ec);
        notes.push_back(fmt::format("{} lines or records of {} could not be taken in; the file is kept as {}",
                                    *left_over, path.filename().string(), aside.filename().string()));
      }
    }
    close(fd);
  }
  return notes;
}

}  // namespace stacklab::store
