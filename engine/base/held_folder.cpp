#include "engine/base/held_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace stacklab {
namespace {

bool same(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

HeldFolder::HeldFolder(std::filesystem::path folder)
    : path_(std::move(folder)), fd_(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

HeldFolder::HeldFolder(HeldFolder&& other) noexcept : path_(other.path_), fd_(std::exchange(other.fd_, -1)) {}

HeldFolder::~HeldFolder() {
  if (fd_ >= 0) ::close(fd_);
}

bool HeldFolder::in_place() const {
  struct stat held {
  }, named{};
  return fd_ >= 0 && ::fstat(fd_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 && same(held, named);
}

std::filesystem::path HeldFolder::now_at() const {
  std::error_code ec;
  const auto place = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd_), ec);
  struct stat held {
  }, named{};
  // The kernel writes " (deleted)" behind the name of one that is gone.
  const bool there = !ec && fd_ >= 0 && ::fstat(fd_, &held) == 0 && ::stat(place.c_str(), &named) == 0;
  return there && same(held, named) ? place : std::filesystem::path();
}

std::string HeldFolder::fate() const {
  if (fd_ < 0) return "was not there";
  if (const auto place = now_at(); !place.empty()) return fmt::format("was moved to {}", place.string());
  struct stat named {};
  return ::stat(path_.c_str(), &named) == 0 ? "was replaced" : "was deleted";
}

}  // namespace stacklab
