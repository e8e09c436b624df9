#include "engine/data/tinyworld_corpus.h"

#include <algorithm>

#include "engine/base/atomic_file.h"
#include "engine/base/text.h"
#include "engine/data/catalogue.h"
#include "engine/data/tinyworld_lexicon.h"
#include "engine/data/tinyworld_streams.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

std::string described(const TinyWorldSettings& s) {
  std::string text = "seed " + std::to_string(s.seed) + ", people " + std::to_string(s.people) + ", items " +
                     std::to_string(s.items) + ", streams " + s.streams;
  if (!s.kinds.empty()) text += ", kinds " + s.kinds;
  return text;
}

Result<TinyWorld> world_of(const TinyWorldSettings& settings) {
  Result<TinyWorld> world = TinyWorld::create(settings.seed, settings.people, tinyworld_folder());
  if (!world || settings.kinds.empty()) return world;
  const Result<std::vector<StreamWeight>> kinds = parse_streams(settings.kinds);
  if (!kinds)
    return usage_error("\"" + settings.kinds + "\" are no kinds of documents", "write them so: entry:3,letter:1");
  std::vector<std::pair<std::string, std::size_t>> weights;
  for (const StreamWeight& one : *kinds) weights.emplace_back(one.stream, static_cast<std::size_t>(one.weight));
  if (Status set = world->weigh_documents(weights); !set) return tl::unexpected(set.error());
  return world;
}

}  // namespace

Result<CorpusInfo> write_tinyworld(const TinyWorldSettings& settings, CorpusWriter& writer,
                                   const CorpusProgress& progress, std::stop_token stop) {
  constexpr std::int64_t most = 100'000'000, at_once = 2048;
  if (settings.items < 1 || settings.items > most) {
    return usage_error("TinyWorld of " + std::to_string(settings.items) + " documents",
                       "choose from 1 to " + std::to_string(most));
  }
  progress("inventing the world", 0, settings.items);
  const Result<std::vector<StreamWeight>> streams = parse_streams(settings.streams);
  if (!streams) return tl::unexpected(streams.error());
  const Result<TinyWorld> world = world_of(settings);
  if (!world) return tl::unexpected(world.error());
  Result<TinyWorldMixture> mixture = TinyWorldMixture::create(*world, *streams);
  if (!mixture) return tl::unexpected(mixture.error());
  for (std::int64_t done = 0; done < settings.items;) {
    if (stop.stop_requested()) return stopped("stopped while TinyWorld was generated");
    progress("writing documents", done, settings.items);
    const std::int64_t n = std::min(at_once, settings.items - done);
    for (const WorldDocument& item : mixture->next(static_cast<std::size_t>(n), settings.threads)) {
      if (Status added = writer.add(item.text); !added) return tl::unexpected(added.error());
    }
    done += n;
  }
  CorpusInfo info;
  info.origin = "generator tinyworld, seed " + std::to_string(settings.seed) + ", " + format_integer(settings.people) +
                " people, streams " + settings.streams;
  const Lexicon& lexicon = world->lexicon();
  info.sources = {{"tinyworld", described(settings), lexicon.sha256, lexicon.bytes}};
  return info;
}

Result<Corpus> make_tinyworld(const TinyWorldSettings& settings, std::string_view name, const fs::path& workspace,
                              bool replace, const CorpusProgress& progress, std::stop_token stop) {
  if (!is_corpus_name(name)) {
    return usage_error("\"" + std::string(name) + "\" is not the name of a corpus",
                       "use letters, digits, '-', '_' and '.'");
  }
  const fs::path dir = corpus_folder(workspace, name);
  std::error_code error;
  if (fs::exists(dir, error)) {
    const Result<CorpusInfo> there = Corpus::describe(dir);
    if (there && there->sources.size() == 1 && there->sources[0].version == described(settings))
      return Corpus::open(dir);
    if (!replace) {
      return refused("there is another corpus " + dir.string() + (there ? ": " + there->origin : ""),
                     "give this one another name, or say --yes to replace it");
    }
  }
  // Before minutes of work, not after.
  if (fs::exists(dir, error)) {
    if (Status made_here = expect_corpus_files(dir); !made_here) return tl::unexpected(made_here.error());
  }
  remove_stale_temporaries(workspace / "data");
  Result<CorpusWriter> writer = CorpusWriter::create(dir);
  if (!writer) return tl::unexpected(writer.error());
  const CorpusProgress silent = [](std::string_view, std::int64_t, std::int64_t) {};
  Result<CorpusInfo> info = write_tinyworld(settings, *writer, progress ? progress : silent, std::move(stop));
  if (!info) return tl::unexpected(info.error());
  info->name = name;
  info->title = "TinyWorld, an invented world";
  info->licence = "MIT";
  if (replace && fs::exists(dir, error)) {
    if (Status removed = remove_corpus(name, workspace); !removed) return tl::unexpected(removed.error());
  }
  if (Status written = writer->commit(*info); !written) return tl::unexpected(written.error());
  return Corpus::open(dir);
}

Result<std::int64_t> tinyworld_search_items(const TinyWorldSettings& settings) {
  const Result<TinyWorld> world = world_of(settings);
  if (!world) return tl::unexpected(world.error());
  return static_cast<std::int64_t>(search_corpus_items(*world));
}

}  // namespace stacklab
