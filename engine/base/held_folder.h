// A folder that is remembered as itself, not by its name: to tell when it is moved, deleted or replaced.
#pragma once

#include <filesystem>
#include <string>

namespace stacklab {

class HeldFolder {
 public:
  explicit HeldFolder(std::filesystem::path folder);
  HeldFolder(HeldFolder&& other) noexcept;
  HeldFolder& operator=(HeldFolder&&) = delete;
  ~HeldFolder();

  const std::filesystem::path& path() const { return path_; }
  // Whether it is where it was. False, too, when it was not there to begin with.
  bool in_place() const;
  // Where it is now; empty: nowhere, or not known.
  std::filesystem::path now_at() const;
  // What became of one that is not in its place: "was moved to /new/place", "was deleted", "was replaced",
  // "was not there".
  std::string fate() const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace stacklab
