#include "engine/data/packages.h"

#include <algorithm>
#include <array>

#include "engine/base/process.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr const char* other_ways = "check the network, or use the corpus \"tinyworld\" or text of your own";
constexpr double download_seconds = 300, lists_seconds = 90, unpack_seconds = 120;

std::string joined(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The line of apt that says why, without its "E: ".
std::string reason(const ProcessResult& result) {
  std::string last = "exit code " + std::to_string(result.exit_code);
  for (const std::string& line : split(result.errors, '\n')) {
    if (line.starts_with("E: ")) return std::string(trim(line.substr(3)));
    if (!trim(line).empty()) last = std::string(trim(line));
  }
  return last;
}

// Whether fresh package lists could help.
bool lists_are_at_fault(const ProcessResult& result) {
  constexpr std::array<std::string_view, 5> signs = {"Unable to locate package", "no installation candidate",
                                                     "has no candidate", "find a source to download", "404  Not Found"};
  return std::any_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return result.errors.find(sign) != std::string::npos; });
}

class AptGet {
 public:
  AptGet(fs::path folder, std::function<void()> meanwhile, std::stop_token stop)
      : folder_(std::move(folder)), meanwhile_(std::move(meanwhile)), stop_(std::move(stop)) {}

  Result<ProcessResult> download(std::span<const std::string> names) const {
    std::vector<std::string> command = {"download"};
    command.insert(command.end(), names.begin(), names.end());
    return run(std::move(command), download_seconds);
  }

  // From here on with package lists of our own, kept in the folder.
  Result<ProcessResult> update_own_lists() {
    const fs::path own = folder_ / "apt";
    std::error_code error;
    for (const char* part : {"lists/partial", "cache/archives/partial"}) {
      fs::create_directories(own / part, error);
      if (error) return failed("cannot make the folder " + (own / part).string() + ": " + error.message());
    }
    options_ = {"-o", "Dir::State=" + own.string(),
                "-o", "Dir::State::lists=" + (own / "lists").string(),
                "-o", "Dir::State::status=/var/lib/dpkg/status",
                "-o", "Dir::Cache=" + (own / "cache").string()};
    return run({"-o", "APT::Update::Error-Mode=any", "update"}, lists_seconds);
  }

 private:
  Result<ProcessResult> run(std::vector<std::string> command, double seconds) const {
    ProcessOptions process;
    // As root apt would drop to a user who may not write here.
    process.arguments = {"apt-get", "-qq",
                         "-o",      "Acquire::Retries=1",
                         "-o",      "Acquire::http::Timeout=15",
                         "-o",      "Acquire::https::Timeout=15",
                         "-o",      "APT::Sandbox::User="};
    process.arguments.insert(process.arguments.end(), options_.begin(), options_.end());
    process.arguments.insert(process.arguments.end(), command.begin(), command.end());
    process.folder = folder_;
    process.environment = {{"LC_ALL", "C"}};
    process.output_limit = 1 << 20;
    process.timeout_seconds = seconds;
    process.meanwhile = meanwhile_;
    return run_process(process, stop_);
  }

  fs::path folder_;
  std::function<void()> meanwhile_;
  std::stop_token stop_;
  std::vector<std::string> options_;
};

Result<std::string> field_of(const fs::path& package, const char* field, std::stop_token stop) {
  ProcessOptions process;
  process.arguments = {"dpkg-deb", "--field", package.string(), field};
  process.timeout_seconds = unpack_seconds;
  const Result<ProcessResult> result = run_process(process, std::move(stop));
  if (!result) return tl::unexpected(result.error());
  if (result->exit_code != 0)
    return failed(package.filename().string() + " is not a package: " + reason(*result), other_ways);
  return std::string(trim(result->output));
}

std::int64_t bytes_below(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    std::error_code gone;  // apt renames files meanwhile
    if (const std::uintmax_t size = i->file_size(gone); !gone) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

Result<FetchedPackage> describe(const std::string& name, const fs::path& folder, std::stop_token stop) {
  FetchedPackage package;
  package.source.name = name;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(name + "_") && file.ends_with(".deb")) package.file = entry.path();
  }
  if (package.file.empty()) return failed("apt-get brought no file of package " + name, other_ways);
  const Result<std::string> version = field_of(package.file, "Version", std::move(stop));
  if (!version) return tl::unexpected(version.error());
  package.source.version = *version;
  Result<std::string> sha256 = sha256_file(package.file);
  if (!sha256) return tl::unexpected(sha256.error());
  package.source.sha256 = *sha256;
  package.source.bytes = static_cast<std::int64_t>(fs::file_size(package.file, error));
  return package;
}

}  // namespace

Result<std::vector<FetchedPackage>> fetch_packages(std::span<const std::string> names, const fs::path& folder,
                                                   const std::function<void(std::int64_t bytes)>& fetched,
                                                   std::stop_token stop) {
  const auto cannot = [&](const std::string& why) {
    return failed("cannot fetch the packages " + joined(names) + ": " + why, other_ways);
  };
  AptGet apt(
      fs::absolute(folder), [&] { fetched(bytes_below(folder)); }, stop);
  Result<ProcessResult> result = apt.download(names);
  if (result && result->exit_code != 0 && lists_are_at_fault(*result)) {
    const Result<ProcessResult> lists = apt.update_own_lists();
    if (!lists) {
      result = tl::unexpected(lists.error());
    } else if (lists->exit_code != 0) {
      return cannot(reason(*result) + "; package lists: " + reason(*lists));
    } else {
      result = apt.download(names);
    }
  }
  if (!result) {
    if (result.error().kind == Error::Kind::stopped) return tl::unexpected(result.error());
    return cannot(result.error().what + " (apt-get is part of Debian and its relatives)");
  }
  if (result->exit_code != 0) return cannot(reason(*result));

  std::vector<FetchedPackage> packages;
  for (const std::string& name : names) {
    Result<FetchedPackage> package = describe(name, fs::absolute(folder), stop);
    if (!package) return tl::unexpected(package.error());
    packages.push_back(std::move(*package));
  }
  return packages;
}

Status unpack_packages(std::span<const FetchedPackage> packages, const fs::path& folder, std::stop_token stop) {
  for (const FetchedPackage& package : packages) {
    const Result<std::string> kib = field_of(package.file, "Installed-Size", stop);
    if (!kib) return tl::unexpected(kib.error());
    std::error_code error;
    const std::int64_t needed = parse_int(*kib).value_or(0) * 1024;
    const fs::space_info disk = fs::space(folder.parent_path(), error);
    if (!error && needed > 0 && static_cast<std::uintmax_t>(needed) > disk.available) {
      return failed(package.source.name + " unpacks to " + format_bytes(static_cast<double>(needed)) + ", and " +
                        folder.parent_path().string() + " has " + format_bytes(static_cast<double>(disk.available)) +
                        " left",
                    "free some, or choose another workspace");
    }
    ProcessOptions process;
    process.arguments = {"dpkg-deb", "--extract", package.file.string(), folder.string()};
    process.environment = {{"LC_ALL", "C"}};
    process.timeout_seconds = unpack_seconds;
    const Result<ProcessResult> result = run_process(process, stop);
    if (!result) return tl::unexpected(result.error());
    if (result->exit_code != 0) {
      return failed("cannot unpack " + package.file.filename().string() + ": " + reason(*result), "is the disk full?");
    }
  }
  return {};
}

}  // namespace stacklab
