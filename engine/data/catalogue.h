// The catalogue of corpora (resources/corpora.json): what each is, where it comes from, and what must come out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/corpus.h"
#include "engine/data/tinyworld_corpus.h"

namespace stacklab {

// How text is got out of unpacked packages. "verses": run a program of theirs that prints a reference and a text on
// each line; a chapter is a document. "{unpacked}" in the arguments stands for the folder that the packages were
// unpacked into. The other kinds read files (patterns of extract.h, gzip undone) and cut each as cutting.h says:
// "files", "fortunes", "dictionary", "glosses", "sections".
struct ExtractionRecipe {
  std::string kind;
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> files;
};

// Text inside packages of the distribution, which are unpacked and not installed.
struct PackageSource {
  std::vector<std::string> packages;  // hold the text
  std::vector<std::string>
      runtime_packages;  // hold libraries of the extracting program, fetched only where they are missing
  ExtractionRecipe extraction;
};

// Text that is generated here: TinyWorld is the one generator so far.
struct GeneratorSource {
  std::string generator;
  TinyWorldSettings settings;
};

// Files by URL: JSON on each line, or whatever the readers of files know.
struct UrlSource {
  struct File {
    std::string url;
    std::int64_t bytes = 0;  // 0: not known
    std::string sha256;      // empty: recorded when it is first fetched
  };
  std::string page;  // where its owners describe it, licence included
  std::string text;  // the field that holds the text
  std::vector<File> files;
  std::int64_t take = 1;  // of the files, unless a person says otherwise
};

struct CatalogueItem {
  std::string name;
  std::string title;
  std::string licence;
  std::int64_t about_bytes = 0;
  std::variant<PackageSource, GeneratorSource, UrlSource> source;
  // What must come out, since another version of a package may hold something else. 0: not known.
  std::int64_t documents = 0;
  std::int64_t lines = 0;
  std::int64_t about_documents = 0;  // as about_bytes: within a tenth
};

// Errors name the file and the entry.
Result<std::vector<CatalogueItem>> load_catalogue(const std::filesystem::path& file);
std::filesystem::path catalogue_file();

// Letters, digits, '-', '_' and '.', the first neither '.' nor '-': such a name leads nowhere else in the file system,
// and is no option.
bool is_corpus_name(std::string_view name);
std::filesystem::path corpus_folder(const std::filesystem::path& workspace, std::string_view name);

// As fetch_corpus, with this catalogue.
Result<Corpus> ensure_corpus(std::string_view name, const std::filesystem::path& workspace,
                             const std::vector<CatalogueItem>& catalogue, const CorpusProgress& progress,
                             std::stop_token stop, std::int64_t files = 0);

}  // namespace stacklab
