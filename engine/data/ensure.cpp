#include <algorithm>

#include "engine/base/atomic_file.h"
#include "engine/base/counted.h"
#include "engine/base/http.h"
#include "engine/base/text.h"
#include "engine/data/catalogue.h"
#include "engine/data/document_reader.h"
#include "engine/data/extract.h"
#include "engine/data/packages.h"
#include "engine/data/parquet.h"
#include "engine/data/tinyworld_corpus.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

Result<Corpus> unknown_corpus(std::string_view name, const fs::path& workspace,
                              const std::vector<CatalogueItem>& catalogue) {
  std::vector<std::string> names;
  for (const CatalogueItem& item : catalogue) names.push_back(item.name);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(workspace / "data", error)) {
    const std::string found = entry.path().filename().string();
    if (entry.is_directory() && is_corpus_name(found) && std::find(names.begin(), names.end(), found) == names.end())
      names.push_back(found);
  }
  std::string remedy = did_you_mean(name, names);
  if (remedy.empty()) {
    for (const std::string& known : names) remedy += (remedy.empty() ? "known are: " : ", ") + known;
  }
  return usage_error("no corpus \"" + std::string(name) + "\" in the catalogue or the workspace", remedy);
}

// A text of the packages themselves that says what may be done with them.
std::string licence_text(const fs::path& unpacked, const std::vector<std::string>& packages) {
  std::string text;
  for (const std::string& package : packages) {
    const Result<std::string> part = read_file(unpacked / "usr/share/doc" / package / "copyright", 1 << 20);
    if (part && text.find(*part) == std::string::npos) text += (text.empty() ? "" : "\n") + *part;
  }
  return text;
}

// What was written, beside the documents.
struct Made {
  CorpusInfo info;
  std::int64_t lines = 0;
  std::string licence;
};

Result<Made> make_from_packages(const CatalogueItem& item, const PackageSource& source, const fs::path& folder,
                                CorpusWriter& writer, const CorpusProgress& progress, std::stop_token stop) {
  const fs::path unpacked = folder / "unpacked";
  const auto fetch = [&](const std::vector<std::string>& names, std::vector<CorpusSource>* sources) -> Status {
    Result<std::vector<FetchedPackage>> packages = fetch_packages(
        names, folder,
        [&](std::int64_t bytes) {
          progress(item.title + ": fetched " + format_bytes(static_cast<double>(bytes)) + " of packages", 0, 0);
        },
        stop);
    if (!packages) return tl::unexpected(packages.error());
    if (sources) {
      for (const FetchedPackage& package : *packages) sources->push_back(package.source);
    }
    return unpack_packages(*packages, unpacked, stop);
  };

  Made made;
  progress(item.title + ", about " + format_bytes(static_cast<double>(item.about_bytes)) + ", " + item.licence +
               ": fetching it from the distribution's packages",
           0, item.about_bytes);
  if (Status fetched = fetch(source.packages, &made.info.sources); !fetched) return tl::unexpected(fetched.error());
  for (const CorpusSource& package : made.info.sources) {
    made.info.origin += (made.info.origin.empty() ? "package " : ", ") + package.name + " " + package.version;
  }
  progress(item.title + ", from " + made.info.origin + ": unpacking", 0, item.about_bytes);
  Result<Extracted> text = extract(
      source.extraction, unpacked,
      [&]() -> Status {
        progress(item.title + ": fetching the libraries of its program", 0, item.about_bytes);
        return fetch(source.runtime_packages, nullptr);
      },
      stop);
  if (!text) return tl::unexpected(text.error());
  for (std::size_t i = 0; i < text->documents.size(); ++i) {
    const std::uint64_t begin = text->documents.offsets[i];
    const auto document = std::string_view(text->documents.bytes).substr(begin, text->documents.offsets[i + 1] - begin);
    if (Status added = writer.add(document); !added) return tl::unexpected(added.error());
  }
  made.lines = text->lines;
  made.licence = licence_text(unpacked, source.packages);
  return made;
}

Result<Made> make_from_generator(const CatalogueItem& item, const GeneratorSource& source, CorpusWriter& writer,
                                 const CorpusProgress& progress, std::stop_token stop) {
  if (source.generator != "tinyworld") {
    return failed("unknown generator \"" + source.generator + "\"",
                  "the catalogue is of another version of the program");
  }
  const auto say = [&](std::string_view detail, std::int64_t done, std::int64_t total) {
    progress(item.title + ": " + std::string(detail), done, total);
  };
  Result<CorpusInfo> info = write_tinyworld(source.settings, writer, say, std::move(stop));
  if (!info) return tl::unexpected(info.error());
  return Made{std::move(*info), 0, {}};
}

// The files stay in <workspace>/downloads/<name>/: what broke off goes on, and what is there is not fetched again.
Result<Made> make_from_urls(const CatalogueItem& item, const UrlSource& source, const fs::path& workspace,
                            std::int64_t wanted, CorpusWriter& writer, const CorpusProgress& progress,
                            std::stop_token stop) {
  const std::int64_t all = static_cast<std::int64_t>(source.files.size()), n = wanted > 0 ? wanted : source.take;
  if (wanted < 0 || n > all) {
    return usage_error("corpus \"" + item.name + "\" has no " + std::to_string(wanted) + " files",
                       "choose from 1 to " + std::to_string(all));
  }
  std::vector<fs::path> files;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::string& url = source.files[static_cast<std::size_t>(i)].url;
    std::string name = url.substr(url.rfind('/') + 1);
    name = name.substr(0, name.find_first_of("?#"));
    const auto kind = kind_of_name(name);
    if (!kind || *kind == FileKind::text) {
      return failed("corpus \"" + item.name + "\": this program reads no files such as " + name,
                    "convert them to JSON lines, or use another corpus");
    }
    // Before gigabytes are fetched, not after.
    if (*kind == FileKind::parquet)
      if (Status can = parquet_available(); !can) {
        return failed("corpus \"" + item.name + "\": " + can.error().what, can.error().remedy);
      }
    files.push_back(workspace / "downloads" / item.name / (std::to_string(i) + "-" + name));
  }
  Made made;
  for (std::int64_t i = 0; i < n; ++i) {
    const UrlSource::File& file = source.files[static_cast<std::size_t>(i)];
    const fs::path& target = files[static_cast<std::size_t>(i)];
    const std::string which =
        item.title + ", " + item.licence + ": file " + std::to_string(i + 1) + " of " + std::to_string(n);
    const Result<Downloaded> fetched = download(
        {file.url, target, file.bytes, file.sha256},
        [&](std::int64_t done, std::int64_t total) { progress(which, done, total); }, stop);
    if (!fetched) {
      Error error = fetched.error();
      if (error.kind != Error::Kind::stopped) error.remedy += "; its page is " + source.page;
      return tl::unexpected(std::move(error));
    }
    made.info.sources.push_back({file.url, "", fetched->sha256, fetched->bytes});
  }
  for (std::int64_t i = 0; i < n; ++i) {
    progress(item.title + ": reading file " + std::to_string(i + 1) + " of " + std::to_string(n), i, n);
    const fs::path& file = files[static_cast<std::size_t>(i)];
    ReadOptions reading;
    reading.field = source.text;
    const auto take = [&](std::string_view part, bool last) -> Status {
      if (Status done = writer.append(part); !done || !last) return done;
      return writer.end_document();
    };
    auto read = read_documents(
        file, *kind_of_name(file), reading, take, [](std::int64_t) {}, stop);
    if (!read) {
      if (read.error().kind == Error::Kind::failed) read.error().remedy = "remove the file, to have it fetched again";
      return tl::unexpected(read.error());
    }
  }
  made.info.origin = source.page + ", " + std::to_string(n) + " of " + std::to_string(all) + " files";
  made.licence = item.licence + "\nSee " + source.page + "\n";
  return made;
}

Status check_expected(const CatalogueItem& item, const Made& made, const CorpusWriter& writer) {
  const auto differs = [&](const char* what, std::int64_t found, std::int64_t expected) {
    return failed("corpus \"" + item.name + "\": " + made.info.origin + " gave " + std::to_string(found) + " " + what +
                      ", not " + std::to_string(expected),
                  "what it was made from has changed; use another corpus of the catalogue or text of your own");
  };
  const std::int64_t documents = writer.documents(), bytes = writer.bytes();
  if (item.documents && documents != item.documents) return differs("documents", documents, item.documents);
  if (item.lines && made.lines != item.lines) return differs("lines", made.lines, item.lines);
  const auto within_a_tenth = [](std::int64_t found, std::int64_t about) {
    return found >= about - about / 10 && found <= about + about / 10;
  };
  if (item.about_documents && !within_a_tenth(documents, item.about_documents))
    return differs("documents", documents, item.about_documents);
  // What comes by URL is checked by size and SHA-256.
  if (!std::holds_alternative<UrlSource>(item.source) && !within_a_tenth(bytes, item.about_bytes))
    return differs("bytes", bytes, item.about_bytes);
  return {};
}

Status expect_present(std::string_view name, const fs::path& workspace) {
  std::error_code error;
  if (is_corpus_name(name) && fs::is_directory(corpus_folder(workspace, name), error)) return {};
  std::vector<std::string> here;
  for (const auto& entry : fs::directory_iterator(workspace / "data", error)) {
    if (is_corpus_name(entry.path().filename().string())) here.push_back(entry.path().filename().string());
  }
  return usage_error("no corpus \"" + std::string(name) + "\" in the workspace", did_you_mean(name, here));
}

}  // namespace

Result<Corpus> fetch_corpus(std::string_view name, const fs::path& workspace, std::int64_t files,
                            const CorpusProgress& progress, std::stop_token stop) {
  Result<std::vector<CatalogueItem>> catalogue = load_catalogue(catalogue_file());
  if (!catalogue) return tl::unexpected(catalogue.error());
  return ensure_corpus(name, workspace, *catalogue, progress, std::move(stop), files);
}

Result<Corpus> ensure_corpus(std::string_view name, const fs::path& workspace, const CorpusProgress& progress,
                             std::stop_token stop) {
  return fetch_corpus(name, workspace, 0, progress, std::move(stop));
}

Result<Corpus> ensure_corpus(std::string_view name, const fs::path& workspace,
                             const std::vector<CatalogueItem>& catalogue, const CorpusProgress& progress,
                             std::stop_token stop, std::int64_t files) {
  if (!is_corpus_name(name)) {
    return usage_error("\"" + std::string(name) + "\" is not the name of a corpus",
                       "use letters, digits, '-', '_' and '.'");
  }
  const fs::path dir = corpus_folder(workspace, name);
  std::error_code error;
  if (fs::exists(dir, error)) return Corpus::open(dir);
  const auto item =
      std::find_if(catalogue.begin(), catalogue.end(), [&](const CatalogueItem& i) { return i.name == name; });
  if (item == catalogue.end()) return unknown_corpus(name, workspace, catalogue);

  remove_stale_temporaries(workspace / "data");
  const CorpusProgress silent = [](std::string_view, std::int64_t, std::int64_t) {};
  const CorpusProgress& say = progress ? progress : silent;
  Result<CorpusWriter> writer = CorpusWriter::create(dir);
  if (!writer) return tl::unexpected(writer.error());
  const auto make = [&]() -> Result<Made> {
    if (const auto* source = std::get_if<GeneratorSource>(&item->source))
      return make_from_generator(*item, *source, *writer, say, stop);
    if (const auto* source = std::get_if<UrlSource>(&item->source))
      return make_from_urls(*item, *source, workspace, files, *writer, say, stop);
    // Never committed: it goes with everything in it, whichever way this ends.
    Result<AtomicDirectory> scratch = AtomicDirectory::create(corpus_folder(workspace, item->name + ".fetch"));
    if (!scratch) return tl::unexpected(scratch.error());
    return make_from_packages(*item, std::get<PackageSource>(item->source), fs::absolute(scratch->path()), *writer, say,
                              stop);
  };
  Result<Made> made = make();
  if (!made) return tl::unexpected(made.error());
  if (Status fine = check_expected(*item, *made, *writer); !fine) return tl::unexpected(fine.error());
  if (stop.stop_requested()) return stopped("corpus \"" + item->name + "\": stopped before it was written");

  made->info.name = item->name;
  made->info.title = item->title;
  made->info.licence = item->licence;
  const Status written = writer->commit(made->info, made->licence);
  // Another process may have been faster: its corpus is as good.
  if (!written && !fs::exists(dir, error)) return tl::unexpected(written.error());
  Result<Corpus> corpus = Corpus::open(dir);
  if (corpus) {
    const CorpusInfo& info = corpus->info();
    say(info.title + ": " + counted(info.documents, "document") + ", " + format_bytes(static_cast<double>(info.bytes)) +
            ", " + info.licence,
        info.bytes, info.bytes);
  }
  return corpus;
}

Result<std::string> corpus_licence(std::string_view name, const fs::path& workspace) {
  if (Status here = expect_present(name, workspace); !here) return tl::unexpected(here.error());
  const fs::path dir = corpus_folder(workspace, name);
  std::error_code error;
  if (fs::exists(dir / "licence.txt", error)) return read_file(dir / "licence.txt", 16 << 20);
  const Result<Corpus> corpus = Corpus::open(dir);
  if (!corpus) return tl::unexpected(corpus.error());
  return corpus->info().licence + "\n";
}

Status may_remove_corpus(std::string_view name, const fs::path& workspace) {
  if (Status here = expect_present(name, workspace); !here) return here;
  return expect_corpus_files(corpus_folder(workspace, name));
}

Status remove_corpus(std::string_view name, const fs::path& workspace) {
  if (Status may = may_remove_corpus(name, workspace); !may) return may;
  const fs::path dir = corpus_folder(workspace, name);
  std::error_code error;
  // Out of the way in one step, then removed: never half a corpus under its name.
  Result<AtomicDirectory> bin = AtomicDirectory::create(dir);
  if (!bin) return tl::unexpected(bin.error());
  fs::rename(dir, bin->path() / name, error);
  if (error) return tl::unexpected(file_error("cannot remove", dir, error.value()));
  return {};
}

}  // namespace stacklab
