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
  AptGet(fs::path folder, std::stop_token stop) : folder_(std::move(folder)), stop_(std::move(stop)) {}

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
    return run_process(process, stop_);
  }

  fs::path folder_;
  std::stop_token stop_;
  std::vector<std::string> options_;
};

Result<FetchedPackage> describe(const std::string& name, const fs::path& folder, std::stop_token stop) {
  FetchedPackage package;
  package.source.name = name;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(name + "_") && file.ends_with(".deb")) package.file = entry.path();
  }
  if (package.file.empty()) return failed("apt-get brought no file of package " + name, other_ways);
  ProcessOptions process;
  process.arguments = {"dpkg-deb", "--field", package.file.string(), "Version"};
  process.timeout_seconds = unpack_seconds;
  const Result<ProcessResult> version = run_process(process, std::move(stop));
  if (!version) return tl::unexpected(version.error());
  if (version->exit_code != 0)
    return failed(package.file.filename().string() + " is not a package: " + reason(*version), other_ways);
  package.source.version = std::string(trim(version->output));
  Result<std::string> sha256 = sha256_file(package.file);
  if (!sha256) return tl::unexpected(sha256.error());
  package.source.sha256 = *sha256;
  package.source.bytes = static_cast<std::int64_t>(fs::file_size(package.file, error));
  return package;
}

}  // namespace

Result<std::vector<FetchedPackage>> fetch_packages(std::span<const std::string> names, const fs::path& folder,
                                                   std::stop_token stop) {
  const auto cannot = [&](const std::string& why) {
    return failed("cannot fetch the packages " + joined(names) + ": " + why, other_ways);
  };
  AptGet apt(fs::absolute(folder), stop);
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
