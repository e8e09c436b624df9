#include "engine/data/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "engine/base/counted.h"
#include "engine/base/missing_file.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/data/catalogue.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_sources = 1000;  // that a manifest lists one by one

struct InputFile {
  fs::path path;
  std::string name;  // within its input
  FileKind kind = FileKind::text;
};

struct Inputs {
  std::vector<InputFile> files;
  std::vector<std::string> left_out;
  std::int64_t bytes = 0;
};

Status add_folder(const fs::path& folder, Inputs& inputs) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const bool hidden = i->path().filename().string().starts_with('.');
    if (hidden && i->is_directory(error)) i.disable_recursion_pending();
    if (hidden || i->is_directory(error)) continue;
    // A pipe, or a link that leads nowhere.
    if (i->is_regular_file(error))
      found.push_back(i->path());
    else
      inputs.left_out.push_back(i->path().lexically_relative(folder).string());
    error.clear();
  }
  if (error)
    return failed("cannot read the folder " + folder.string() + ": " + error.message(), "check its permissions");
  std::ranges::sort(found);
  for (const fs::path& path : found) {
    const std::string name = path.lexically_relative(folder).string();
    if (const auto kind = kind_of_name(path))
      inputs.files.push_back({path, name, *kind});
    else
      inputs.left_out.push_back(name);
  }
  return {};
}

Result<Inputs> find_inputs(const std::vector<fs::path>& paths) {
  Inputs inputs;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      if (Status added = add_folder(path, inputs); !added) return tl::unexpected(added.error());
      continue;
    }
    if (!fs::exists(path, error)) return tl::unexpected(missing_file(path));
    inputs.files.push_back({path, path.filename().string(), kind_of_name(path).value_or(FileKind::text)});
  }
  if (inputs.files.empty())
    return failed("there is no text to read: no file" +
                      (inputs.left_out.empty() ? std::string() : " of a kind that is known, but " + inputs.left_out[0]),
                  "text, JSON lines (.jsonl) and Parquet are read, also packed (.gz, .zst)");
  for (const InputFile& file : inputs.files) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file.path, error);
    if (!error) inputs.bytes += static_cast<std::int64_t>(size);
  }
  return inputs;
}

}  // namespace

std::string import_name(const fs::path& input) {
  fs::path name = input.lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  name = name.filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  std::string plain = name.stem().string().substr(0, 60);
  for (char& c : plain)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.')) c = '-';
  while (!plain.empty() && (plain.front() == '.' || plain.front() == '-')) plain.erase(0, 1);
  return plain.empty() ? "text" : plain;
}

Result<std::string> import_sha256(const std::vector<fs::path>& paths, const CorpusProgress& progress,
                                  std::stop_token stop) {
  const Result<Inputs> inputs = find_inputs(paths);
  if (!inputs) return tl::unexpected(inputs.error());
  Sha256 all;
  std::int64_t done = 0;
  for (const InputFile& file : inputs->files) {
    std::int64_t size = 0;
    const auto so_far = [&](std::int64_t read) -> Status {
      if (stop.stop_requested()) return stopped("stopped while files were read");
      if (progress) progress("looking at " + printable(file.name), done + (size = read), inputs->bytes);
      return {};
    };
    const Result<std::string> digest = sha256_file(file.path, so_far);
    if (!digest) return digest;
    all.update(file.name + std::string(1, '\0') + *digest);
    done += size;
  }
  return all.hex();
}

Result<ImportReport> import_corpus(const fs::path& workspace, const ImportRequest& request,
                                   const CorpusProgress& progress, std::stop_token stop) {
  const Result<Inputs> inputs = find_inputs(request.inputs);
  if (!inputs) return tl::unexpected(inputs.error());
  ImportReport report;
  report.left_out = inputs->left_out;
  report.files = static_cast<std::int64_t>(inputs->files.size());
  CorpusInfo& info = report.info;
  info.name = request.name.empty() ? import_name(request.inputs[0]) : request.name;
  if (!is_corpus_name(info.name))
    return usage_error("\"" + printable(info.name) + "\" is not the name of a corpus",
                       "use letters, digits, '-', '_' and '.', the first no sign");
  const fs::path dir = workspace / "data" / info.name;
  std::error_code error;
  if (fs::exists(fs::symlink_status(dir, error)))
    return failed("there is a corpus " + info.name + " in the workspace already",
                  "choose another name with --name, or remove it: stacklab corpus remove " + info.name);
  for (const InputFile& file : inputs->files) {
    if (file.kind == FileKind::parquet) continue;
    if (Status fine = check_text(file.path); !fine) return tl::unexpected(fine.error());
  }

  remove_stale_temporaries(workspace / "data");
  Result<CorpusWriter> writer = CorpusWriter::create(dir);
  if (!writer) return tl::unexpected(writer.error());
  const auto take = [&](std::string_view part, bool last) -> Status {
    if (Status done = writer->append(part); !done || !last) return done;
    return writer->end_document();
  };
  Sha256 all;
  std::int64_t before = 0;
  for (const InputFile& file : inputs->files) {
    const auto so_far = [&](std::int64_t bytes) {
      if (progress) progress("reading " + printable(file.name), before + bytes, inputs->bytes);
    };
    const Result<FileDigest> digest = read_documents(file.path, file.kind, request.reading, take, so_far, stop);
    if (!digest) return tl::unexpected(digest.error());
    before += digest->bytes;
    all.update(file.name + std::string(1, '\0') + digest->sha256);
    if (inputs->files.size() <= most_sources) info.sources.push_back({file.name, "", digest->sha256, digest->bytes});
  }
  if (info.sources.empty()) info.sources = {{counted(report.files, "file"), "", all.hex(), before}};
  if (writer->documents() == 0)
    return failed("there is no text in " + request.inputs[0].string(), "check what it holds");
  info.title = info.name;
  info.licence = request.licence.empty() ? "not stated" : request.licence;
  info.origin = (report.files == 1 ? "a file" : counted(report.files, "file")) + " of one's own";
  if (Status written = writer->commit(info); !written) return tl::unexpected(written.error());
  Result<CorpusInfo> made = Corpus::describe(dir);
  if (!made) return tl::unexpected(made.error());
  info = std::move(*made);
  return report;
}

}  // namespace stacklab
