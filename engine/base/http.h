// Files fetched by URL. A download that is broken off (a lost connection, a stop, a killed process) goes on where it
// ended. Beside the target stand meanwhile target.part, the bytes so far, and then and later target.json: the URL, what
// the server called that version of the file, its size and, once it is whole, its SHA-256.
// Proxies: the environment's http_proxy, https_proxy, all_proxy and no_proxy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "engine/base/result.h"

namespace stacklab {

struct Download {
  std::string url;  // http or https
  std::filesystem::path target;
  std::int64_t bytes = 0;  // that it must have; 0: not known
  std::string sha256;      // empty: recorded when it is first fetched, and checked from then on
};

struct DownloadLimits {
  int attempts = 6;  // in a row that come no further
  double connect_seconds = 30;
  double stall_seconds = 60;                     // without a byte
  double first_pause = 1.0, longest_pause = 60;  // between attempts, doubled each time
};

struct Downloaded {
  std::int64_t bytes = 0;
  std::string sha256;
};

// done and total in bytes; total 0: not known.
using DownloadProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Fetches the file unless it is there, and checks it either way. Processes that want the same file wait for the first.
// Errors (those of the server and the network after several attempts): no such host, refused, timeout; no such file,
// login wanted, a web page in place of a file; another size or SHA-256 than expected; full disk, read-only folder;
// stop.
Result<Downloaded> download(const Download& what, const DownloadProgress& progress, std::stop_token stop,
                            const DownloadLimits& limits = {});

}  // namespace stacklab
