// Files and folders that appear whole or not at all: written under a temporary name in the same folder, synced,
// renamed. A full disk, a file size limit or a read-only folder becomes an Error that names the path and the remedy,
// and the temporary is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace stacklab {

// "<action> <path>: <reason>" with what a person can do about this errno.
Error file_error(std::string_view action, const std::filesystem::path& path, int error_number);

// A write beyond the file size limit is then an error instead of the end of the process. Call first thing in main.
void ignore_file_size_signal();

// A descriptor to read a regular file by. Never waits, as a pipe's would. Errors: missing, a folder, no regular file.
Result<int> open_regular_file(const std::filesystem::path& file);

// The whole of a regular file of at most max_bytes. Errors: missing, a folder, too large, unreadable.
Result<std::string> read_file(const std::filesystem::path& file, std::int64_t max_bytes = std::int64_t{1} << 40);

class AtomicFile {
 public:
  // A symbolic link to a regular file is followed; the file it points at is replaced.
  static Result<AtomicFile> create(const std::filesystem::path& target);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();  // removes the temporary unless committed

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  // Syncs and renames. Afterwards the target is the new file, also after a power cut.
  Status commit();

 private:
  AtomicFile() = default;
  void discard();

  std::filesystem::path target_, temporary_;
  int fd_ = -1;
};

Status write_file_atomically(const std::filesystem::path& target, std::span<const std::byte> bytes);
Status write_file_atomically(const std::filesystem::path& target, std::string_view text);

class AtomicDirectory {
 public:
  // Makes the missing parents of target.
  static Result<AtomicDirectory> create(const std::filesystem::path& target);
  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&& other) noexcept;
  ~AtomicDirectory();  // removes the temporary unless committed

  // The folder to fill.
  const std::filesystem::path& path() const { return temporary_; }
  // Syncs every file in it and renames. A target that exists is an error, or with replace is exchanged in one step and
  // then removed.
  Status commit(bool replace = false);

 private:
  AtomicDirectory() = default;
  void discard();

  std::filesystem::path target_, temporary_;
};

// What is to be replaced or removed must be what this program made: refused, naming what is there, unless path is a
// folder (and no link to one) with nothing but files of these names in it.
Status expect_only_files(const std::filesystem::path& path, std::span<const std::string_view> names);

// Removes a folder with everything in it, so that no part of it ever stands under its name: it is renamed first. False
// where it stays. What the end of the process leaves of it, remove_stale_temporaries removes.
bool remove_folder(const std::filesystem::path& folder);

// Removes what dead processes left behind in folder: temporaries whose maker is gone. Never touches those of living
// processes.
void remove_stale_temporaries(const std::filesystem::path& folder);

}  // namespace stacklab
