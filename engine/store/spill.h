// Where records go while the data base cannot take them: a file of JSON lines below the workspace's runs/, one per
// process, locked by its owner while it lives. Whoever opens the store next takes in what dead owners left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/store/records.h"

namespace stacklab::store {

// This process's own file; made when first needed.
class SpillFile {
 public:
  enum class Use { rows, words };  // words: what happened and how it ended, on a disk that has room for nothing else
  explicit SpillFile(std::filesystem::path folder, Use use = Use::rows) : folder_(std::move(folder)), use_(use) {}
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // All of them are on disk, or none and an error.
  Status append(std::span<const Record> records);
  // Makes the file with so much room of its own, to be filled later whatever the disk has left.
  Status reserve(std::int64_t bytes);
  bool empty() const { return bytes_ == 0; }
  std::int64_t bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // Calls visit for every record in order.
  Status read(const std::function<void(const Record&)>& visit) const;
  // What was appended is in the data base now.
  void discard();

 private:
  Status create();

  std::filesystem::path folder_, path_;
  Use use_;
  int fd_ = -1;
  std::int64_t bytes_ = 0;
};

// A file that a dead process left.
class LeftSpill {
 public:
  LeftSpill(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  const std::filesystem::path& path() const { return path_; }
  // Calls visit for every record in order; returns how many lines could not be read.
  Result<std::int64_t> read(const std::function<void(const Record&)>& visit) const;

 private:
  std::filesystem::path path_;
  int fd_;
};

// Whether a dead process left something in folder.
bool spills_are_left(const std::filesystem::path& folder);

// Calls apply for every such file in folder. apply puts the records into the store and returns how many had no place
// there; on an error the file stays for another time. A file that was taken in whole is removed; one with lines or
// records left over is kept under another name. Returns what is worth telling.
std::vector<std::string> take_in_spills(const std::filesystem::path& folder,
                                        const std::function<Result<std::int64_t>(const LeftSpill&)>& apply);

}  // namespace stacklab::store
