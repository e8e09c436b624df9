#include "engine/base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "engine/base/environment.h"

namespace stacklab {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view temporary_suffix = ".tmp~";

std::string remedy_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space or choose another folder";
    case EFBIG:
      return "the file size limit of this shell is too small: see ulimit -f";
    case EROFS:
    case EACCES:
    case EPERM:
      return "choose a folder that you may write to, or change its permissions";
    case ENOENT:
      return "check the path";
    case ENOTDIR:
      return "a part of the path is a file, not a folder";
    case EISDIR:
      return "this is a folder; name a file";
    case EMFILE:
    case ENFILE:
      return "too many files are open: see ulimit -n";
    case ENAMETOOLONG:
      return "choose a shorter name";
    case EIO:
      return "the disk reports a fault: check it before going on";
    default:
      return {};
  }
}

// ".<name>.<boot>-<pid>-<start>-<n>.tmp~": unique among processes, and tells whether its maker still lives.
fs::path temporary_for(const fs::path& target) {
  static std::atomic<unsigned> counter{0};
  const ProcessIdentity self = current_process();  // not kept: a fork would inherit it
  return target.parent_path() / fmt::format(".{}.{}-{}-{}-{}{}", target.filename().string().substr(0, 100),
                                            self.boot_id.substr(0, 8), self.pid, self.start_ticks, counter++,
                                            temporary_suffix);
}

Status sync_path(const fs::path& path, bool folder) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (folder ? O_DIRECTORY : 0));
  if (fd < 0) return tl::unexpected(file_error("cannot open", path, errno));
  const int failed_with = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some file systems cannot sync folders; there is nothing else to do there.
  if (failed_with != 0 && !(folder && failed_with == EINVAL))
    return tl::unexpected(file_error("cannot write", path, failed_with));
  return {};
}

fs::path folder_of(const fs::path& target) { return target.has_parent_path() ? target.parent_path() : fs::path("."); }

const char* kind_of_file(const fs::file_status& status) {
  switch (status.type()) {
    case fs::file_type::regular:
      return "a file";
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::symlink:
      return "a link";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::not_found:
      return "missing";
    default:
      return "a device";
  }
}

Error irregular(const fs::path& file, const fs::file_status& status) {
  return {Error::Kind::failed,
          fmt::format("cannot read {}: it is {}, not a regular file", file.string(), kind_of_file(status)),
          "name a file; what a pipe gives must be stored in one first"};
}

}  // namespace

Error file_error(std::string_view action, const fs::path& path, int error_number) {
  return {Error::Kind::failed, fmt::format("{} {}: {}", action, path.string(), std::strerror(error_number)),
          remedy_for(error_number)};
}

void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

Result<int> open_regular_file(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int code = errno;
    std::error_code error;
    if (code == ENOENT && fs::is_symlink(file, error))
      return failed(fmt::format("cannot open {}: it is a link to {}, which is missing", file.string(),
                                fs::read_symlink(file, error).string()),
                    "mend the link, or name the file itself");
    // A socket cannot even be opened.
    if (code == ENXIO) return tl::unexpected(irregular(file, fs::status(file, error)));
    return tl::unexpected(file_error("cannot open", file, code));
  }
  struct stat status {};
  int code = ::fstat(fd, &status) == 0 ? 0 : errno;
  if (code == 0 && S_ISDIR(status.st_mode)) code = EISDIR;
  if (code == 0 && S_ISREG(status.st_mode)) return fd;
  ::close(fd);
  if (code != 0) return tl::unexpected(file_error("cannot read", file, code));
  std::error_code error;
  return tl::unexpected(irregular(file, fs::status(file, error)));
}

Result<std::string> read_file(const fs::path& file, std::int64_t max_bytes) {
  const Result<int> opened = open_regular_file(file);
  if (!opened) return tl::unexpected(opened.error());
  const int fd = *opened;
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  struct stat status {};
  if (::fstat(fd, &status) != 0) return tl::unexpected(file_error("cannot read", file, errno));
  const auto too_large = [&] {
    return failed(fmt::format("cannot read {}: it is larger than {} bytes", file.string(), max_bytes));
  };
  if (status.st_size > max_bytes) return too_large();
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t used = 0;
  for (;;) {
    // One byte more than promised, to notice growth (and files of /proc, which claim to be empty).
    if (used == text.size()) text.resize(used + (used == 0 ? 4096 : 1 + used / 8));
    const ssize_t n = ::read(fd, text.data() + used, text.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(file_error("cannot read", file, errno));
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
    if (static_cast<std::int64_t>(used) > max_bytes) return too_large();
  }
  text.resize(used);
  return text;
}

Result<AtomicFile> AtomicFile::create(const fs::path& target) {
  std::error_code ignored;
  AtomicFile file;
  file.target_ = target;
  if (fs::is_symlink(target, ignored)) {
    const fs::path real = fs::canonical(target, ignored);
    if (!ignored) file.target_ = real;
  }
  if (file.target_.filename().empty()) return tl::unexpected(file_error("cannot write", target, EISDIR));
  const fs::file_status status = fs::status(file.target_, ignored);
  if (fs::is_directory(status)) return tl::unexpected(file_error("cannot write", target, EISDIR));
  if (fs::exists(status) && !fs::is_regular_file(status))
    return failed(fmt::format("cannot write {}: it is not a regular file", target.string()), "name a file");
  file.temporary_ = temporary_for(file.target_);
  file.fd_ = ::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.fd_ < 0) {
    const int code = errno;
    file.temporary_.clear();
    return tl::unexpected(file_error("cannot write", target, code));
  }
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    target_ = std::move(other.target_);
    temporary_ = std::exchange(other.temporary_, {});
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(std::exchange(temporary_, {}).c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) return failed(fmt::format("cannot write {}: an earlier write failed", target_.string()));
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), 1 << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int code = errno;
      discard();
      return tl::unexpected(file_error("cannot write", target_, code));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status AtomicFile::commit() {
  if (fd_ < 0) return failed(fmt::format("cannot write {}: an earlier write failed", target_.string()));
  int code = ::fsync(fd_) == 0 ? 0 : errno;
  if (::close(std::exchange(fd_, -1)) != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(temporary_.c_str(), target_.c_str()) != 0) code = errno;
  if (code != 0) {
    discard();
    return tl::unexpected(file_error("cannot write", target_, code));
  }
  temporary_.clear();
  return sync_path(folder_of(target_), true);
}

Status write_file_atomically(const fs::path& target, std::span<const std::byte> bytes) {
  Result<AtomicFile> file = AtomicFile::create(target);
  if (!file) return tl::unexpected(file.error());
  if (Status written = file->write(bytes); !written) return written;
  return file->commit();
}

Status write_file_atomically(const fs::path& target, std::string_view text) {
  return write_file_atomically(target, std::as_bytes(std::span(text)));
}

Result<AtomicDirectory> AtomicDirectory::create(const fs::path& target) {
  AtomicDirectory directory;
  // "runs/x/" and "runs/x" are the same folder.
  directory.target_ = target.has_filename() ? target : target.parent_path();
  std::error_code error;
  fs::create_directories(folder_of(directory.target_), error);
  if (error) return tl::unexpected(file_error("cannot make the folder", folder_of(directory.target_), error.value()));
  const fs::path temporary = temporary_for(directory.target_);
  if (::mkdir(temporary.c_str(), 0777) != 0) return tl::unexpected(file_error("cannot make the folder", target, errno));
  directory.temporary_ = temporary;
  return directory;
}

AtomicDirectory::AtomicDirectory(AtomicDirectory&& other) noexcept
    : target_(std::move(other.target_)), temporary_(std::exchange(other.temporary_, {})) {}

AtomicDirectory& AtomicDirectory::operator=(AtomicDirectory&& other) noexcept {
  if (this != &other) {
    discard();
    target_ = std::move(other.target_);
    temporary_ = std::exchange(other.temporary_, {});
  }
  return *this;
}

AtomicDirectory::~AtomicDirectory() { discard(); }

void AtomicDirectory::discard() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(std::exchange(temporary_, {}), ignored);
}

Status AtomicDirectory::commit(bool replace) {
  std::error_code error;
  for (fs::recursive_directory_iterator i(temporary_, error), end; !error && i != end; i.increment(error)) {
    const bool folder = i->is_directory();
    if (!folder && !i->is_regular_file()) continue;
    if (Status synced = sync_path(i->path(), folder); !synced) return synced;
  }
  if (error) return tl::unexpected(file_error("cannot read", temporary_, error.value()));
  if (Status synced = sync_path(temporary_, true); !synced) return synced;

  // Without replace an existing target, even an empty one, stays as it is.
  int code = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  if (code == EEXIST && replace) {
    code = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
    if (code == 0) discard();  // what was the target
  }
  // File systems without these flags get the nearest thing.
  if (code == EINVAL || code == ENOSYS) {
    const fs::path old = replace ? temporary_for(target_) : fs::path();
    if (fs::exists(target_, error)) {
      if (!replace) return tl::unexpected(file_error("cannot make the folder", target_, EEXIST));
      if (::rename(target_.c_str(), old.c_str()) != 0)
        return tl::unexpected(file_error("cannot replace", target_, errno));
    }
    code = ::rename(temporary_.c_str(), target_.c_str()) == 0 ? 0 : errno;
    if (replace) fs::remove_all(old, error);
  }
  if (code != 0) return tl::unexpected(file_error("cannot make the folder", target_, code));
  temporary_.clear();
  return sync_path(folder_of(target_), true);
}

Status expect_only_files(const fs::path& path, std::span<const std::string_view> names) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::is_directory(status))
    return refused(fmt::format("{} is {}, not a folder that this program made", path.string(), kind_of_file(status)),
                   "name another folder, or remove it yourself");
  for (fs::directory_iterator i(path, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    std::error_code ignored;
    if (fs::is_regular_file(i->symlink_status(ignored)) && std::ranges::find(names, name) != names.end()) continue;
    return refused(fmt::format("{} holds {}, which this program did not make", path.string(), name),
                   "name another folder, or move that away");
  }
  if (error) return tl::unexpected(file_error("cannot read", path, error.value()));
  return {};
}

bool remove_folder(const fs::path& folder) {
  const fs::path temporary = temporary_for(folder);
  if (::rename(folder.c_str(), temporary.c_str()) != 0) return false;
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  return true;
}

void remove_stale_temporaries(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    if (!name.starts_with('.') || !name.ends_with(temporary_suffix)) continue;
    const std::size_t dot = name.rfind('.', name.size() - temporary_suffix.size() - 1);
    char boot[9] = {};
    int pid = 0;
    unsigned long long start = 0;
    unsigned number = 0;
    if (dot == std::string::npos ||
        std::sscanf(name.c_str() + dot, ".%8[0-9a-f]-%d-%llu-%u", boot, &pid, &start, &number) != 4)
      continue;
    ProcessIdentity maker = current_process();
    if (maker.boot_id.starts_with(boot)) {
      maker.pid = pid;
      maker.start_ticks = start;
      if (process_alive(maker)) continue;
    } else {
      // Another boot, or another computer on a shared disk: only what is older than a day is surely dead.
      const auto age = fs::file_time_type::clock::now() - fs::last_write_time(i->path(), error);
      if (error || age < std::chrono::hours(24)) continue;
    }
    std::error_code ignored;
    fs::remove_all(i->path(), ignored);
  }
}

}  // namespace stacklab
