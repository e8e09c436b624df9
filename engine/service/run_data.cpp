#include "engine/service/run_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/base/json_writer.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/base/thread_team.h"
#include "engine/data/catalogue.h"
#include "engine/data/import.h"
#include "engine/data/shard_builder.h"
#include "engine/tokenizer/tokenizer_json.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

bool is_path(const std::string& name, const fs::path& workspace) {
  std::error_code error;
  if (name.find('/') != std::string::npos) return true;
  return name.ends_with(".json") && !fs::exists(workspace / "tokenizers" / name, error);
}

// What the tokenizer at a path is called: its folder or file, made plain, and the beginning of its hash.
std::string name_of(const fs::path& path, std::string_view sha256) {
  fs::path source = path.lexically_normal();
  if (source.filename() == "tokenizer.json" || source.filename().empty()) source = source.parent_path();
  return fmt::format("{}-{}", import_name(source), sha256.substr(0, 8));
}

// What decides which shards come out. Keys in order.
std::string recipe_of(const CorpusInfo& corpus, const TokenCoding& coding, const DataConfig& data) {
  JsonWriter w;
  w.begin_object();
  w.member("corpus_sha256", corpus.sha256);
  w.member("tokenizer_sha256", coding.sha256());
  w.member("validation_fraction", data.validation_fraction);
  w.end_object();
  return w.text();
}

// <workspace>/shards/<corpus>-<what they are made from>
fs::path shards_folder(const fs::path& workspace, const CorpusInfo& corpus, const TokenCoding& coding,
                       const DataConfig& data) {
  const std::string key = sha256_hex(std::string_view(recipe_of(corpus, coding, data)));
  return workspace / "shards" / fmt::format("{}-{}", corpus.name, key.substr(0, 16));
}

}  // namespace

Result<std::vector<MixturePart>> mixture_of(const DataConfig& data) {
  if (!data.mixture.empty()) return parse_mixture(data.mixture);
  return std::vector<MixturePart>{{data.corpus, 1}};
}

Result<TokenCoding> coding_named(std::string_view name, const fs::path& workspace) {
  if (name == "bytes") return TokenCoding::bytes();
  if (is_path(std::string(name), workspace)) {
    Result<Tokenizer> tokenizer = read_tokenizer(fs::path(name));
    if (!tokenizer) return tl::unexpected(tokenizer.error());
    const std::string digest = sha256_hex(std::string_view(tokenizer_json(tokenizer->model())));
    return TokenCoding::of(std::move(*tokenizer), name_of(name, digest));
  }
  const fs::path folder = workspace / "tokenizers" / name;
  std::error_code error;
  if (!fs::exists(folder, error)) {
    std::vector<std::string> here = {"bytes"};
    for (const auto& entry : fs::directory_iterator(workspace / "tokenizers", error))
      here.push_back(entry.path().filename().string());
    std::string remedy = did_you_mean(name, here);
    if (remedy.empty())
      remedy = fmt::format("learn one: stacklab tokenizer train --input FILE --vocab N --out {}", folder.string());
    return usage_error(fmt::format("data.tokenizer: there is no tokenizer \"{}\" in the workspace", printable(name)),
                       remedy);
  }
  Result<Tokenizer> tokenizer = read_tokenizer(folder);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  return TokenCoding::of(std::move(*tokenizer), std::string(name));
}

Status check_vocabulary(const RunConfig& config, const TokenCoding& coding) {
  if (config.model.vocab_size >= coding.vocabulary_size()) return {};
  return usage_error(fmt::format("model.vocab_size: {} does not cover the {} tokens of the tokenizer {}",
                                 config.model.vocab_size, coding.vocabulary_size(), coding.name()),
                     fmt::format("set it to {}", coding.vocabulary_size()));
}

Result<std::string> take_in_text(const fs::path& input, const ReadOptions& reading, const fs::path& workspace,
                                 const CorpusProgress& progress, std::stop_token stop) {
  const Result<std::string> digest = import_sha256({input}, progress, stop);
  if (!digest) return digest;
  // Read in another way it is another text.
  const ReadOptions plain;
  std::string key = *digest;
  if (reading.separator != plain.separator || reading.blank_lines || reading.field != plain.field)
    key = sha256_hex(key + (reading.blank_lines ? "blank" : "") + reading.separator + std::string(1, '\0') +
                     reading.field);
  ImportRequest request;
  request.inputs = {input};
  request.name = fmt::format("{}-{}", import_name(input), key.substr(0, 8));
  request.reading = reading;
  const fs::path folder = workspace / "data" / request.name;
  std::error_code error;
  if (fs::exists(folder, error)) {
    if (Corpus::open(folder)) return request.name;
    // The text is at hand: a copy that was damaged is made again.
    if (Status removed = remove_corpus(request.name, workspace); !removed) return tl::unexpected(removed.error());
  }
  const Result<ImportReport> made = import_corpus(workspace, request, progress, stop);
  // Another process may have been faster: its copy is as good.
  if (!made && !fs::exists(folder, error)) return tl::unexpected(made.error());
  return request.name;
}

Status take_in_tokenizer(RunConfig& config, const fs::path& workspace) {
  if (!is_path(config.data.tokenizer, workspace)) return {};
  const fs::path path = config.data.tokenizer;
  Result<Tokenizer> tokenizer = read_tokenizer(path);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  const std::string name = name_of(path, sha256_hex(std::string_view(tokenizer_json(tokenizer->model()))));
  const fs::path folder = workspace / "tokenizers" / name;
  std::error_code error;
  const auto usable = [&] {
    const Result<Tokenizer> copy = read_tokenizer(folder);
    return copy && copy->model() == tokenizer->model();
  };
  if (!usable()) {
    const Status written = write_tokenizer(folder, tokenizer->model(), {}, fs::exists(folder, error));
    // Another process may have been faster: its copy is as good.
    if (!written && !usable()) return written;
  }
  config.data.tokenizer = name;
  return {};
}

bool has_shards(const std::string& corpus, const TokenCoding& coding, const DataConfig& data,
                const fs::path& workspace) {
  const auto here = Corpus::describe(workspace / "data" / corpus);
  std::error_code error;
  return here && fs::exists(shards_folder(workspace, *here, coding, data), error);
}

Result<Dataset> open_run_data(const RunConfig& config, const std::vector<MixturePart>& mixture,
                              const TokenCoding& coding, const fs::path& workspace, const CorpusProgress& progress,
                              std::stop_token stop) {
  ThreadTeam team(threads_for(config.run.threads));
  remove_stale_temporaries(workspace / "shards");
  std::vector<Dataset::Part> parts;
  for (const MixturePart& part : mixture) {
    const fs::path corpus = workspace / "data" / part.name;
    const Result<CorpusInfo> info = Corpus::describe(corpus);
    if (!info) return tl::unexpected(info.error());
    const fs::path folder = shards_folder(workspace, *info, coding, config.data);
    std::error_code error;
    if (!fs::exists(folder, error)) {
      ShardOptions options;
      options.validation_fraction = config.data.validation_fraction;
      options.recipe = recipe_of(*info, coding, config.data);
      const auto built = build_shards(folder, {{corpus}}, coding, options, team, progress, stop);
      // Another process may have been faster: its shards are as good.
      if (!built && !fs::exists(folder, error)) return tl::unexpected(built.error());
    }
    parts.push_back({folder, part.weight});
  }
  return Dataset::open(parts, team, progress, stop);
}

bool names_shards(const DataConfig& data, const fs::path& workspace) {
  std::error_code error;
  return data.mixture.empty() && is_corpus_name(data.corpus) &&
         fs::exists(workspace / "shards" / data.corpus / "manifest.json", error);
}

Result<Dataset> open_named_shards(const RunConfig& config, const fs::path& workspace, const CorpusProgress& progress,
                                  std::stop_token stop) {
  ThreadTeam team(threads_for(config.run.threads));
  Result<Dataset> data = Dataset::open({{workspace / "shards" / config.data.corpus, 1}}, team, progress, stop);
  if (!data) return data;
  if (data->coding().name() != config.data.tokenizer)
    return usage_error(fmt::format("data.tokenizer: {}, but the shards {} are of {}", printable(config.data.tokenizer),
                                   config.data.corpus, data->coding().name()),
                       fmt::format("set it to {}", data->coding().name()));
  if (Status fits = check_vocabulary(config, data->coding()); !fits) return tl::unexpected(fits.error());
  return data;
}

}  // namespace stacklab
