#include "engine/base/safetensors_shards.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/atomic_file.h"
#include "engine/base/json_reader.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t largest_index = std::int64_t{64} << 20;

bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

Result<SafetensorsShards> SafetensorsShards::open(const fs::path& index) {
  const auto bad = [&](const std::string& why) {
    return failed(fmt::format("{}: {}", index.string(), why), "fetch the model again");
  };
  const Result<std::string> text = read_file(index, largest_index);
  if (!text) return tl::unexpected(text.error());
  const auto json = parse_json_object(*text);
  if (!json) return bad(json.error());
  JsonFields top(*json);
  const auto& weight_map = top.object("weight_map");
  if (!top.error().empty()) return bad(top.error());

  // Every file once, before any tensor: what is looked up points into them.
  std::map<std::string, std::size_t> places;
  SafetensorsShards shards;
  for (const auto& [tensor, file] : weight_map.items()) {
    if (!file.is_string() || !is_file_name(file.get_ref<const std::string&>()))
      return bad(fmt::format("the file of \"{}\" is not the name of one beside it", printable(tensor)));
    if (!places.try_emplace(file.get<std::string>(), places.size()).second) continue;
    Result<Safetensors> opened = Safetensors::open(index.parent_path() / file.get<std::string>());
    if (!opened) return bad(opened.error().message());
    shards.files_.push_back(std::move(*opened));
  }
  for (const auto& [tensor, file] : weight_map.items()) {
    const SafetensorsEntry* entry = shards.files_[places[file.get<std::string>()]].find(tensor);
    if (entry == nullptr)
      return bad(fmt::format("the tensor \"{}\" is not in {}", printable(tensor), printable(file.get<std::string>())));
    shards.entries_.emplace(tensor, entry);
  }
  return shards;
}

const SafetensorsEntry* SafetensorsShards::find(std::string_view name) const {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : at->second;
}

std::vector<std::string> SafetensorsShards::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

}  // namespace stacklab
