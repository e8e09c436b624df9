#include "engine/data/tinyworld_streams.h"

#include <algorithm>
#include <array>
#include <thread>

#include "engine/base/text.h"
#include "engine/data/tinyworld_documents.h"
#include "engine/data/tinyworld_drills.h"
#include "engine/data/tinyworld_lexicon.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

class DocumentStream : public TinyWorldStream {
 public:
  DocumentStream(const TinyWorld& world, WorldPart part) : world_(world), part_(part) {}
  WorldDocument item(std::uint64_t index) const override { return tinyworld_document(world_, part_, index); }

 private:
  const TinyWorld& world_;
  WorldPart part_;
};

// First an entry about every entity, then every town's distances, then every town's prices of every year.
class LibraryStream : public TinyWorldStream {
 public:
  explicit LibraryStream(const TinyWorld& world) : world_(world) {}

  WorldDocument item(std::uint64_t index) const override {
    return tinyworld_document(world_, WorldPart::library, index, order(index));
  }

 private:
  std::optional<TinyWorldOrder> order(std::uint64_t index) const {
    for (std::size_t k = 0; k < entity_kinds; ++k) {
      const auto members = world_.members(static_cast<Kind>(k), WorldPart::library);
      if (index < members.size()) return TinyWorldOrder{"entry", {static_cast<Kind>(k), members[index]}, 0};
      index -= members.size();
    }
    const auto towns = world_.members(Kind::town, WorldPart::library);
    if (index < towns.size()) return TinyWorldOrder{"timetable", {Kind::town, towns[index]}, 0};
    index -= towns.size();
    const std::uint64_t years = static_cast<std::uint64_t>(world_.lexicon().price_years);
    if (index < towns.size() * years) {
      return TinyWorldOrder{
          "ledger",
          {Kind::town, towns[index / years]},
          static_cast<std::uint32_t>(world_.present_year()) - 1 - static_cast<std::uint32_t>(index % years)};
    }
    return std::nullopt;
  }

  const TinyWorld& world_;
};

class DrillStream : public TinyWorldStream {
 public:
  explicit DrillStream(const TinyWorld& world) : world_(world) {}
  WorldDocument item(std::uint64_t index) const override {
    return tinyworld_drill(world_.lexicon(), world_.seed(), index);
  }

 private:
  const TinyWorld& world_;
};

constexpr std::array<std::string_view, 5> names = {"documents", "validation", "test", "library", "drills"};

}  // namespace

std::span<const std::string_view> tinyworld_stream_names() { return names; }

std::uint64_t search_corpus_items(const TinyWorld& world) {
  std::uint64_t items = 0;
  for (std::size_t k = 0; k < entity_kinds; ++k)
    items += world.members(static_cast<Kind>(k), WorldPart::library).size();
  return items + world.members(Kind::town, WorldPart::library).size() *
                     (1 + static_cast<std::uint64_t>(world.lexicon().price_years));
}

Result<std::unique_ptr<TinyWorldStream>> tinyworld_stream(const TinyWorld& world, std::string_view name) {
  if (name == "documents") return std::make_unique<DocumentStream>(world, WorldPart::train);
  if (name == "validation") return std::make_unique<DocumentStream>(world, WorldPart::validation);
  if (name == "test") return std::make_unique<DocumentStream>(world, WorldPart::test);
  if (name == "library") return std::make_unique<LibraryStream>(world);
  if (name == "drills") return std::make_unique<DrillStream>(world);
  const std::vector<std::string> known(names.begin(), names.end());
  std::string remedy = did_you_mean(name, known);
  if (remedy.empty()) remedy = "there are documents, validation, test, library and drills";
  return usage_error("TinyWorld has no stream \"" + std::string(name) + "\"", remedy);
}

Result<std::vector<StreamWeight>> parse_streams(std::string_view text) {
  std::vector<StreamWeight> streams;
  for (const std::string& part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    const std::string name(trim(part.substr(0, colon)));
    std::optional<std::int64_t> weight = 1;
    if (colon != std::string::npos) weight = parse_int(trim(std::string_view(part).substr(colon + 1)));
    if (name.empty() || !weight || *weight < 1 || *weight > 1'000'000) {
      return usage_error("\"" + std::string(text) + "\" are no streams", "write them so: documents:9,drills:1");
    }
    if (std::any_of(streams.begin(), streams.end(), [&](const auto& other) { return other.stream == name; }))
      return usage_error("stream \"" + name + "\" is there twice", "write each once, with its weight");
    streams.push_back({name, *weight});
  }
  return streams;
}

std::string to_string(std::span<const StreamWeight> streams) {
  std::string text;
  for (const StreamWeight& one : streams)
    text += (text.empty() ? "" : ",") + one.stream + ":" + std::to_string(one.weight);
  return text;
}

Result<TinyWorldMixture> TinyWorldMixture::create(const TinyWorld& world, std::span<const StreamWeight> streams) {
  TinyWorldMixture mixture;
  for (const StreamWeight& one : streams) {
    Result<std::unique_ptr<TinyWorldStream>> stream = tinyworld_stream(world, one.stream);
    if (!stream) return tl::unexpected(stream.error());
    mixture.sources_.push_back({std::move(*stream), one.weight, 0});
    mixture.total_weight_ += one.weight;
  }
  if (mixture.sources_.empty()) return usage_error("no stream of TinyWorld is named", "name one, such as documents");
  return mixture;
}

std::vector<WorldDocument> TinyWorldMixture::next(std::size_t n, int threads) {
  std::vector<std::pair<const TinyWorldStream*, std::uint64_t>> plan(n);
  for (auto& [stream, index] : plan) {
    // Whose share is most behind; the first of equals.
    ++taken_;
    const auto behind = [&](const Source& source) {
      return static_cast<std::int64_t>(taken_) * source.weight -
             static_cast<std::int64_t>(source.taken) * total_weight_;
    };
    const auto source = std::max_element(sources_.begin(), sources_.end(),
                                         [&](const Source& a, const Source& b) { return behind(a) < behind(b); });
    stream = source->stream.get();
    index = source->taken++;
  }
  std::vector<WorldDocument> items(n);
  const std::size_t team =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), 1, std::max<std::size_t>(n, 1));
  const auto work = [&](std::size_t t) {
    for (std::size_t i = t; i < n; i += team) items[i] = plan[i].first->item(plan[i].second);
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t t = 1; t < team; ++t) helpers.emplace_back(work, t);
    work(0);
  }
  return items;
}

}  // namespace stacklab
