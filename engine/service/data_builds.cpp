#include "engine/service/data_builds.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/atomic_file.h"
#include "engine/base/clock.h"
#include "engine/base/environment.h"
#include "engine/base/json_writer.h"
#include "engine/base/missing_file.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/base/thread_team.h"
#include "engine/data/catalogue.h"
#include "engine/data/dataset.h"
#include "engine/data/shard_builder.h"
#include "engine/service/run_data.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t largest_recipe = 16 << 20;
constexpr std::size_t sample_tokens = 400;

// A corpus in the workspace, whatever the source was.
Result<std::string> have_source(const RecipeSource& source, const fs::path& workspace, const CorpusProgress& progress,
                                const std::stop_token& stop) {
  if (source.corpus.empty()) return take_in_text(source.path, source.reading, workspace, progress, stop);
  std::error_code error;
  if (!fs::exists(workspace / "data" / source.corpus, error)) {
    const Result<Corpus> made = ensure_corpus(source.corpus, workspace, progress, stop);
    if (!made) return tl::unexpected(made.error());
  }
  return source.corpus;
}

std::string canonical_recipe(const std::vector<CorpusInfo>& corpora, const DataRecipe& recipe,
                             const TokenCoding& coding) {
  JsonWriter w;
  const auto list = [&](const char* key, std::size_t first, const std::vector<RecipeSource>& sources) {
    w.key(key);
    w.begin_array();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      w.begin_object();
      w.member("corpus", corpora[first + i].name);
      w.member("sha256", corpora[first + i].sha256);
      w.member("weight", sources[i].weight);
      w.end_object();
    }
    w.end_array();
  };
  w.begin_object();
  list("held_out", recipe.sources.size(), recipe.held_out);
  w.member("shard_tokens", recipe.shard_tokens);
  list("sources", 0, recipe.sources);
  w.member("tokenizer", coding.name());
  w.member("tokenizer_sha256", coding.sha256());
  w.member("validation_fraction", recipe.validation_fraction);
  w.end_object();
  return w.text();
}

// Everything that shards are built from, in the workspace.
struct Ingredients {
  TokenCoding coding = TokenCoding::bytes();
  std::vector<ShardInput> inputs;
  ShardOptions options;
};

Result<Ingredients> have_ingredients(const fs::path& workspace, const DataRecipe& recipe,
                                     const CorpusProgress& progress, const std::stop_token& stop) {
  Result<TokenCoding> coding = coding_named(recipe.tokenizer, workspace);
  if (!coding) return tl::unexpected(coding.error());
  Ingredients all;
  std::vector<CorpusInfo> corpora;
  for (const bool held_out : {false, true}) {
    for (const RecipeSource& source : held_out ? recipe.held_out : recipe.sources) {
      const Result<std::string> name = have_source(source, workspace, progress, stop);
      if (!name) return tl::unexpected(name.error());
      const fs::path folder = workspace / "data" / *name;
      const Result<CorpusInfo> info = Corpus::describe(folder);
      if (!info) return tl::unexpected(info.error());
      corpora.push_back(*info);
      all.inputs.push_back({folder, source.weight, held_out});
    }
  }
  all.options = {recipe.validation_fraction, recipe.shard_tokens, canonical_recipe(corpora, recipe, *coding)};
  all.coding = std::move(*coding);
  return all;
}

bool is_recipe(const fs::path& file) {
  std::error_code error;
  if (file.extension() != ".json" || !fs::is_regular_file(file, error)) return false;
  const Result<std::string> json = read_file(file, largest_recipe);
  return json && parse_recipe(*json, file.string(), file.parent_path()).has_value();
}

// Whole and undamaged, or not at all.
Status copy_shards(const fs::path& from, const fs::path& to, bool replace, ThreadTeam& team,
                   const CorpusProgress& progress, const std::stop_token& stop) {
  // What is damaged must not be copied under the name of what it should be.
  if (const auto whole = Dataset::open({{from, 1}}, team, progress, stop); !whole) return tl::unexpected(whole.error());
  Result<AtomicDirectory> folder = AtomicDirectory::create(to);
  if (!folder) return tl::unexpected(folder.error());
  const Result<ShardManifest> manifest = read_shard_manifest(from);
  if (!manifest) return tl::unexpected(manifest.error());
  std::vector<std::string> names = {"manifest.json"};
  for (const ShardRecord& shard : manifest->shards) names.push_back(shard.path);
  std::error_code error;
  if (fs::exists(from / "tokenizer.json", error)) names.push_back("tokenizer.json");
  for (const std::string& name : names) {
    fs::copy_file(from / name, folder->path() / name, error);
    if (error) return tl::unexpected(file_error("cannot copy", from / name, error.value()));
  }
  return folder->commit(replace);
}

}  // namespace

Result<DataRecipe> recipe_of(const std::string& what, const fs::path& workspace) {
  std::error_code error;
  DataRecipe recipe;
  const bool is_corpus = is_corpus_name(what) && fs::exists(workspace / "data" / what, error);
  if (!is_corpus && fs::is_regular_file(what, error) && fs::path(what).extension() == ".json") {
    const Result<std::string> json = read_file(what, largest_recipe);
    if (!json) return tl::unexpected(json.error());
    return parse_recipe(*json, what, fs::path(what).parent_path());
  }
  RecipeSource source;
  if (!is_corpus && fs::exists(what, error))
    source.path = what;
  else if (is_corpus_name(what))
    source.corpus = what;
  else
    return usage_error(fmt::format("\"{}\" is no recipe, no file and no corpus", printable(what)),
                       missing_file(what).remedy);
  recipe.sources.push_back(std::move(source));
  return recipe;
}

Result<DataBuildReport> build_data(const fs::path& workspace, const DataRecipe& recipe, const fs::path& out,
                                   int threads, const CorpusProgress& progress, std::stop_token stop) {
  const double begin = steady_seconds();
  std::error_code error;
  // Before minutes of work, not after.
  if (fs::exists(fs::symlink_status(out, error)))
    return failed(out.string() + " exists", "name another folder, or remove this one");
  const Result<Ingredients> all = have_ingredients(workspace, recipe, progress, stop);
  if (!all) return tl::unexpected(all.error());
  ThreadTeam team(threads_for(threads));
  remove_stale_temporaries(fs::absolute(out, error).parent_path());
  Result<ShardManifest> manifest = build_shards(out, all->inputs, all->coding, all->options, team, progress, stop);
  if (!manifest) return tl::unexpected(manifest.error());
  return DataBuildReport{std::move(*manifest), steady_seconds() - begin};
}

Status take_in_corpus(RunConfig& config, const fs::path& workspace, const CorpusProgress& progress,
                      std::stop_token stop) {
  const std::string& named = config.data.corpus;
  const fs::path path = named;
  std::error_code error;
  if (!config.data.mixture.empty() || names_shards(config.data, workspace) ||
      (is_corpus_name(named) && fs::exists(workspace / "data" / named, error)))
    return {};
  if (named.find('/') == std::string::npos && !(kind_of_name(named) && fs::exists(named, error))) return {};
  const auto blame = [](Error why) {
    why.what = "data.corpus: " + why.what;
    return tl::unexpected<Error>(std::move(why));
  };
  if (fs::exists(path / "manifest.json", error)) {
    const Result<ShardManifest> manifest = read_shard_manifest(path);
    if (!manifest) return blame(manifest.error());
    const std::string name = fmt::format("{}-{}", import_name(path), manifest->corpus_hash());
    const fs::path copy = workspace / "shards" / name;
    ThreadTeam team(threads_for(config.run.threads));
    const bool there = fs::exists(copy, error);
    // A copy that was damaged since is made again where its source can be read.
    const auto usable = [&] { return Dataset::open({{copy, 1}}, team, progress, stop).has_value(); };
    if (!there || !usable()) {
      const Status copied = copy_shards(path, copy, there, team, progress, stop);
      // Another process may have been faster: its copy is as good.
      if (!copied && !usable()) return blame(copied.error());
    }
    config.data.corpus = name;
    return {};
  }
  if (is_recipe(path)) {
    const Result<DataRecipe> recipe = recipe_of(named, workspace);
    if (!recipe) return blame(recipe.error());
    const Result<Ingredients> all = have_ingredients(workspace, *recipe, progress, stop);
    if (!all) return blame(all.error());
    const std::string key = sha256_hex(std::string_view(all->options.recipe));
    const std::string name = fmt::format("{}-{}", import_name(path), key.substr(0, 16));
    const fs::path folder = workspace / "shards" / name;
    if (!fs::exists(folder, error)) {
      ThreadTeam team(threads_for(config.run.threads));
      const auto built = build_shards(folder, all->inputs, all->coding, all->options, team, progress, stop);
      if (!built && !fs::exists(folder, error)) return blame(built.error());
    }
    config.data.corpus = name;
    config.data.tokenizer = recipe->tokenizer;
    return {};
  }
  Result<std::string> name = take_in_text(path, {}, workspace, progress, std::move(stop));
  if (!name) return blame(name.error());
  config.data.corpus = std::move(*name);
  return {};
}

Result<ShardInspection> inspect_data(const fs::path& folder, int samples, int threads, const CorpusProgress& progress,
                                     std::stop_token stop) {
  Result<ShardManifest> manifest = read_shard_manifest(folder);
  if (!manifest) return tl::unexpected(manifest.error());
  ShardInspection seen{std::move(*manifest), {}, {}};
  ThreadTeam team(threads_for(threads));
  const Result<Dataset> data = Dataset::open({{folder, 1}}, team, progress, stop);
  if (!data) {
    if (data.error().kind == Error::Kind::stopped) return tl::unexpected(data.error());
    seen.fault = data.error();
    return seen;
  }
  for (const DataSource& source : data->sources()) {
    for (const ShardRole role : {ShardRole::train, ShardRole::held_out}) {
      const TokenDocuments& documents = role == ShardRole::train ? source.train : source.held_out;
      const std::size_t wanted =
          std::min<std::size_t>(documents.size(), static_cast<std::size_t>(std::max(samples, 0)));
      for (std::size_t s = 0; s < wanted; ++s) {
        // Spread over all of them.
        const TokenDocument document = documents.document(s * documents.size() / wanted);
        std::vector<TokenId> ids(std::min(document.size(), sample_tokens));
        for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = document[t];
        const Result<std::string> text = data->coding().decode(ids);
        if (!text) return tl::unexpected(text.error());
        seen.samples.push_back({role, source.name, static_cast<std::int64_t>(document.size()), *text});
      }
    }
  }
  return seen;
}

}  // namespace stacklab
