#include "engine/model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "engine/base/text.h"

namespace stacklab {
namespace {

constexpr std::size_t most_listed = 5;

// "3 missing: a, b, c"
void add_list(std::string& text, std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const auto listed = static_cast<std::ptrdiff_t>(std::min(names.size(), most_listed));
  text +=
      fmt::format("{}{} {}: {}{}", text.empty() ? "" : "; ", names.size(), what,
                  fmt::join(names.begin(), names.begin() + listed, ", "), names.size() > most_listed ? ", ..." : "");
}

// What wrappers of PyTorch put before the names of everything that they wrap.
struct Wrapper {
  std::string_view prefix, by;
};
constexpr std::array<Wrapper, 2> wrappers = {
    {{"module.", "DataParallel or DistributedDataParallel"}, {"_orig_mod.", "torch.compile"}}};

// The prefix that all of the file's names share, of those that wrappers write; empty: none.
std::string wrapper_prefix(const Safetensors& file) {
  std::string prefix;
  if (file.entries().empty()) return prefix;
  for (bool longer = true; longer;) {
    longer = false;
    for (const Wrapper& w : wrappers) {
      const std::string with = prefix + std::string(w.prefix);
      if (!std::all_of(file.entries().begin(), file.entries().end(),
                       [&](const SafetensorsEntry& e) { return e.name.starts_with(with); }))
        continue;
      prefix = with;
      longer = true;
    }
  }
  return prefix;
}

std::string wrapped_by(std::string_view prefix) {
  std::string by;
  for (const Wrapper& w : wrappers)
    if (prefix.find(w.prefix) != std::string_view::npos) by += (by.empty() ? "" : " and ") + std::string(w.by);
  return by;
}

Status check_tie(const Safetensors& file, std::string_view source_name) {
  const SafetensorsEntry *head = file.find(head_name), *embedding = file.find(embedding_name);
  if (!head || !embedding) return {};
  if (head->type == embedding->type && head->shape == embedding->shape &&
      std::ranges::equal(head->bytes, embedding->bytes))
    return {};
  return failed(
      fmt::format("{}: {} is not {}, but model.tie_embeddings says so", source_name, head_name, embedding_name),
      "set model.tie_embeddings to false");
}

}  // namespace

SafetensorsType file_type(DType type) {
  return type == DType::f64    ? SafetensorsType::f64
         : type == DType::bf16 ? SafetensorsType::bf16
         : type == DType::u8   ? SafetensorsType::u8
                               : SafetensorsType::f32;
}

std::vector<std::int64_t> file_shape(const Shape& shape) { return {shape.dim.begin(), shape.dim.begin() + shape.rank}; }

Status load_tensors(const Safetensors& file, std::string_view source_name, std::span<const NamedTensor> tensors,
                    bool tied_head) {
  if (tied_head)
    if (Status s = check_tie(file, source_name); !s) return s;
  std::vector<std::string> missing, unexpected, different;
  std::set<std::string_view> wanted;
  for (const NamedTensor& t : tensors) {
    wanted.insert(t.name);
    const SafetensorsEntry* e = file.find(t.name);
    if (!e)
      missing.push_back(t.name);
    else if (e->type != file_type(t.view.dtype) || e->shape != file_shape(t.view.shape))
      different.push_back(fmt::format("{} ({} [{}] in the file, {} [{}] in the model)", t.name, to_string(e->type),
                                      fmt::join(e->shape, ", "), to_string(file_type(t.view.dtype)),
                                      fmt::join(file_shape(t.view.shape), ", ")));
  }
  for (const SafetensorsEntry& e : file.entries())
    if (!wanted.contains(e.name) && !(tied_head && e.name == head_name)) unexpected.push_back(printable(e.name));

  std::string what;
  add_list(what, "missing", missing);
  add_list(what, "unexpected", unexpected);
  add_list(what, "of another type or shape", different);
  if (!what.empty()) {
    std::string remedy = "load it with the config that it was trained with";
    if (const std::string prefix = wrapper_prefix(file); !prefix.empty())
      remedy = fmt::format("{} put \"{}\" before every name: save the model that it wraps", wrapped_by(prefix), prefix);
    else if (!tied_head && missing == std::vector<std::string>{std::string(head_name)} && unexpected.empty())
      remedy = "the head is the embedding there: set model.tie_embeddings to true";
    return failed(fmt::format("{}: not the tensors of this model: {}", source_name, what), remedy);
  }
  for (const NamedTensor& t : tensors) {
    const std::span<const std::byte> bytes = file.find(t.name)->bytes;
    if (!bytes.empty()) std::memcpy(t.view.data, bytes.data(), bytes.size());
  }
  return {};
}

}  // namespace stacklab
