// Packages of the distribution as a source of text: fetched and unpacked into a folder, never installed, without root.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/corpus.h"

namespace stacklab {

struct FetchedPackage {
  CorpusSource source;  // name, version, size and SHA-256 of the package file
  std::filesystem::path file;
};

// Downloads the packages into folder. Where the system's package lists are missing or out of date, lists of our own are
// fetched into the folder: nothing of the system is changed. fetched(bytes) is called now and then. Errors: no apt-get
// here, no network, no such package, timeout, stop.
Result<std::vector<FetchedPackage>> fetch_packages(std::span<const std::string> names,
                                                   const std::filesystem::path& folder,
                                                   const std::function<void(std::int64_t bytes)>& fetched,
                                                   std::stop_token stop);

// Unpacks package files into folder. Errors: they say that they are larger than what the disk has left, damaged, stop.
Status unpack_packages(std::span<const FetchedPackage> packages, const std::filesystem::path& folder,
                       std::stop_token stop);

}  // namespace stacklab
