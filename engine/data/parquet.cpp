#include "engine/data/parquet.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>

#include "engine/base/paths.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/data/parquet_module.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

struct Module {
  decltype(&stacklab_parquet_open) open = nullptr;
  decltype(&stacklab_parquet_next) next = nullptr;
  decltype(&stacklab_parquet_rows) rows = nullptr;
  decltype(&stacklab_parquet_close) close = nullptr;
};

Result<Module> load() {
  const fs::path file = executable_path().parent_path() / "stacklab_parquet.so";
  std::error_code error;
  if (!fs::exists(file, error))
    return failed("Parquet files need Apache Arrow, which this build is without",
                  "build Stacklab where CMake finds Arrow (see CONTRIBUTING.md), or turn the file into JSON lines");
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: Arrow's threads live on
  if (library == nullptr)
    return failed(fmt::format("Apache Arrow cannot be loaded: {}", ::dlerror()), "install it again");
  Module module;
  const auto find = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(library, name));
    return function != nullptr;
  };
  if (!find(module.open, "stacklab_parquet_open") || !find(module.next, "stacklab_parquet_next") ||
      !find(module.rows, "stacklab_parquet_rows") || !find(module.close, "stacklab_parquet_close"))
    return failed(fmt::format("{} is of another build", file.string()), "build again");
  return module;
}

}  // namespace

Status parquet_available() {
  const Result<Module> module = load();
  return module ? Status() : tl::unexpected(module.error());
}

Result<FileDigest> read_parquet(const fs::path& file, const std::string& column, const TakePart& take,
                                const ReadSoFar& so_far, std::stop_token stop) {
  const Result<Module> module = load();
  if (!module) return failed(file.string() + ": " + module.error().what, module.error().remedy);
  // It cannot be hashed on the way: its parts are not read in order.
  Result<std::string> digest = sha256_file(file);
  if (!digest) return tl::unexpected(digest.error());
  std::error_code ignored;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(file, ignored));

  std::array<char, 400> why{};
  const auto bad = [&] {
    return failed(fmt::format("{}: {}", file.string(), printable(why.data(), why.size())),
                  "check the file; --field names the column of the text");
  };
  const std::unique_ptr<void, decltype(module->close)> reader(
      module->open(file.c_str(), column.c_str(), why.data(), why.size()), module->close);
  if (!reader) return bad();
  for (;;) {
    if (stop.stop_requested()) return stopped("stopped while documents were read");
    const char* text = nullptr;
    std::size_t size = 0;
    const int code = module->next(reader.get(), &text, &size, why.data(), why.size());
    if (code < 0) return bad();
    if (code == 0) break;
    if (size > 0)
      if (Status done = take({text, size}, true); !done) return tl::unexpected(done.error());
    std::int64_t done = 0, all = 0;
    module->rows(reader.get(), &done, &all);
    if (all > 0 && done % 1024 == 0)
      so_far(
          static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(done) / static_cast<double>(all)));
  }
  return FileDigest{std::move(*digest), bytes};
}

}  // namespace stacklab
