#include "engine/base/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/atomic_file.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

static_assert(std::endian::native == std::endian::little, "the container is little-endian and is read in place");

constexpr std::uint64_t largest_header = 100'000'000;
constexpr std::string_view metadata_key = "__metadata__";

struct TypeRow {
  SafetensorsType type;
  std::string_view word;
  std::int64_t bytes;
};
constexpr std::array<TypeRow, 15> type_rows = {{
    {SafetensorsType::f64, "F64", 8},
    {SafetensorsType::f32, "F32", 4},
    {SafetensorsType::f16, "F16", 2},
    {SafetensorsType::bf16, "BF16", 2},
    {SafetensorsType::i64, "I64", 8},
    {SafetensorsType::i32, "I32", 4},
    {SafetensorsType::i16, "I16", 2},
    {SafetensorsType::i8, "I8", 1},
    {SafetensorsType::u64, "U64", 8},
    {SafetensorsType::u32, "U32", 4},
    {SafetensorsType::u16, "U16", 2},
    {SafetensorsType::u8, "U8", 1},
    {SafetensorsType::boolean, "BOOL", 1},
    {SafetensorsType::f8_e4m3, "F8_E4M3", 1},
    {SafetensorsType::f8_e5m2, "F8_E5M2", 1},
}};

const TypeRow& row_of(SafetensorsType type) { return type_rows[static_cast<std::size_t>(type)]; }

// Bytes of a tensor; empty when a dimension is out of range or the product does not fit. A zero hides no overflow.
std::optional<std::uint64_t> byte_count(const std::vector<std::int64_t>& shape, SafetensorsType type) {
  std::uint64_t product = static_cast<std::uint64_t>(row_of(type).bytes);
  bool empty = false;
  for (const std::int64_t n : shape) {
    if (n < 0) return std::nullopt;
    empty |= n == 0;
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1)), &product))
      return std::nullopt;
    if (product > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  }
  return empty ? 0 : product;
}

struct RawEntry {
  std::string name;
  std::optional<SafetensorsType> type;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::int64_t>> offsets;
};

// Takes the header apart event by event: no tree is built, so nesting and duplicates are seen before they cost
// anything.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<RawEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string error;

  bool null() override { return unknown_field() || unexpected("null"); }
  bool boolean(bool) override { return unknown_field() || unexpected("true or false"); }
  bool number_integer(number_integer_t) override { return unknown_field() || unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override {
    if (unknown_field()) return true;
    return fail(fmt::format("{}: {} is not a whole number of 64 bits", where(), printable(text)));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (unknown_field()) return true;
    if (state_ != State::list) return unexpected("a number");
    if (value > static_cast<number_unsigned_t>(INT64_MAX))
      return fail(fmt::format("{}: {} is too large", where(), value));
    if (list_->size() >= 64) return fail(fmt::format("{}: more than 64 numbers", where()));
    list_->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::metadata) {
      metadata[key_] = value;
      return true;
    }
    if (unknown_field()) return true;
    if (state_ != State::entry || key_ != "dtype") return unexpected("a string");
    entries.back().type = safetensors_type_from_string(value);
    if (!entries.back().type)
      return fail(fmt::format("tensor \"{}\": unknown dtype \"{}\"", printable(entries.back().name), printable(value)));
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::start) {
      state_ = State::top;
    } else if (state_ == State::top) {
      state_ = key_ == metadata_key ? State::metadata : State::entry;
      if (state_ == State::entry) entries.push_back({key_, {}, {}, {}});
    } else {
      return unexpected("an object");
    }
    keys_.clear();
    return true;
  }
  bool end_object() override {
    state_ = state_ == State::top ? State::done : State::top;
    return true;
  }

  bool key(string_t& name) override {
    auto& seen = state_ == State::top ? top_keys_ : keys_;
    if (!seen.insert(name).second)
      return fail(state_ == State::top ? fmt::format("\"{}\" occurs twice", printable(name))
                                       : fmt::format("{}: \"{}\" occurs twice", where(), printable(name)));
    key_ = name;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::entry || (key_ != "shape" && key_ != "data_offsets")) return unexpected("a list");
    auto& list = key_ == "shape" ? entries.back().shape : entries.back().offsets;
    list_ = &list.emplace();
    state_ = State::list;
    return true;
  }
  bool end_array() override {
    state_ = State::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) override {
    const std::string_view what = e.what();
    return fail(fmt::format("the header is not JSON at byte {}: {}", position,
                            what.substr(std::min(what.size(), what.find("] ") + 2))));
  }

 private:
  enum class State { start, top, metadata, entry, list, done };

  std::string where() const {
    switch (state_) {
      case State::start:
        return "the header";
      case State::metadata:
        return fmt::format("metadata \"{}\"", printable(key_));
      case State::entry:
      case State::list:
        return fmt::format("tensor \"{}\", {}", printable(entries.back().name), printable(key_));
      default:
        return fmt::format("\"{}\"", printable(key_));
    }
  }
  // Fields that a later writer may add to a tensor are passed over when they are plain values.
  bool unknown_field() const {
    return state_ == State::entry && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets";
  }
  bool unexpected(std::string_view what) { return fail(fmt::format("{}: {} does not belong here", where(), what)); }
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }

  State state_ = State::start;
  std::string key_;
  std::set<std::string> top_keys_, keys_;
  std::vector<std::int64_t>* list_ = nullptr;
};

}  // namespace

std::string_view to_string(SafetensorsType type) { return row_of(type).word; }

std::optional<SafetensorsType> safetensors_type_from_string(std::string_view word) {
  for (const TypeRow& row : type_rows)
    if (row.word == word) return row.type;
  return std::nullopt;
}

std::int64_t bytes_per_element(SafetensorsType type) { return row_of(type).bytes; }

std::int64_t SafetensorsEntry::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  return n;
}

Result<Safetensors> Safetensors::open(const std::filesystem::path& file) {
  Result<MappedFile> mapped = MappedFile::open(file);
  if (!mapped) return tl::unexpected(mapped.error());
  const auto mapping = std::make_shared<const MappedFile>(std::move(*mapped));
  Result<Safetensors> parsed = parse(mapping->bytes(), file.string());
  if (parsed) parsed->mapping_ = mapping;
  return parsed;
}

Result<Safetensors> Safetensors::parse(std::span<const std::byte> bytes, std::string_view source_name) {
  const auto bad = [source_name](std::string_view cause) {
    return failed(fmt::format("{} is not a valid safetensors file: {}", source_name, cause), "fetch or save it again");
  };
  if (bytes.size() < 8) return bad(fmt::format("{} bytes are too few for the header's length", bytes.size()));
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  // An HTML error page saved under this name is the usual damage; '<' alone could be a length.
  if (header_size > bytes.size() - 8 && bytes[0] == std::byte{'<'}) return bad("it looks like a web page");
  if (header_size > largest_header) return bad(fmt::format("a header of {} bytes, more than 100 MB", header_size));
  if (header_size > bytes.size() - 8)
    return bad(fmt::format("the header should have {} bytes, the file has {} after the length", header_size,
                           bytes.size() - 8));
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  if (header_size == 0 || text[0] != '{') return bad("the header is not a JSON object");

  HeaderReader header;
  const bool parsed = nlohmann::json::sax_parse(text, text + header_size, &header);
  if (!parsed) return bad(header.error);

  const std::span<const std::byte> data = bytes.subspan(8 + static_cast<std::size_t>(header_size));
  Safetensors file;
  file.metadata_ = std::move(header.metadata);
  file.file_bytes_ = bytes;
  for (RawEntry& raw : header.entries) {
    const std::string name = printable(raw.name);
    const auto bad_tensor = [&](std::string_view cause) { return bad(fmt::format("tensor \"{}\": {}", name, cause)); };
    if (!raw.type) return bad_tensor("no dtype");
    if (!raw.shape) return bad_tensor("no shape");
    if (!raw.offsets) return bad_tensor("no data_offsets");
    if (raw.offsets->size() != 2) return bad_tensor(fmt::format("{} data_offsets instead of 2", raw.offsets->size()));
    const std::int64_t begin = (*raw.offsets)[0], end = (*raw.offsets)[1];
    if (begin > end) return bad_tensor(fmt::format("ends at {} before it begins at {}", end, begin));
    if (static_cast<std::uint64_t>(end) > data.size())
      return bad_tensor(fmt::format("ends at byte {}, but there are {} bytes of data", end, data.size()));
    const std::optional<std::uint64_t> expected = byte_count(*raw.shape, *raw.type);
    if (!expected) return bad_tensor(fmt::format("its shape [{}] is too large", fmt::join(*raw.shape, ", ")));
    if (*expected != static_cast<std::uint64_t>(end - begin))
      return bad_tensor(fmt::format("{} bytes, but {} [{}] needs {}", end - begin, to_string(*raw.type),
                                    fmt::join(*raw.shape, ", "), *expected));
    file.entries_.push_back({std::move(raw.name), *raw.type, std::move(*raw.shape),
                             data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))});
  }
  // By place; empty tensors share theirs with the next one, so they go first. Names settle the rest.
  std::stable_sort(file.entries_.begin(), file.entries_.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
                   });
  std::size_t expected = 0;
  for (std::size_t i = 0; i < file.entries_.size(); ++i) {
    const SafetensorsEntry& entry = file.entries_[i];
    const auto begin = static_cast<std::size_t>(entry.bytes.data() - data.data());
    if (begin != expected)
      return bad(fmt::format("tensor \"{}\" begins at byte {}, {} byte {}", printable(entry.name), begin,
                             begin < expected ? "inside the tensor before it, which ends at" : "leaving a hole from",
                             expected));
    expected += entry.bytes.size();
    file.by_name_.emplace(entry.name, i);
  }
  if (expected != data.size()) return bad(fmt::format("{} bytes after the last tensor", data.size() - expected));
  return file;
}

const SafetensorsEntry* Safetensors::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &entries_[at->second];
}

namespace {

// How a file is laid out: its header, and its tensors in their order.
struct Layout {
  std::string header;  // padded
  std::vector<const SafetensorsEntry*> order;
  std::int64_t data_bytes = 0;
};

Result<Layout> lay_out(std::span<const SafetensorsEntry> entries, const std::map<std::string, std::string>& metadata) {
  Layout layout;
  for (const SafetensorsEntry& entry : entries) {
    if (!byte_count(entry.shape, entry.type))
      return failed(fmt::format("the shape [{}] of tensor \"{}\" is too large", fmt::join(entry.shape, ", "),
                                printable(entry.name)));
    if (entry.name == metadata_key) return failed("a tensor may not be called __metadata__");
    layout.order.push_back(&entry);
  }
  // Wide types first keeps every tensor aligned to its element.
  std::sort(layout.order.begin(), layout.order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    const std::int64_t wa = bytes_per_element(a->type), wb = bytes_per_element(b->type);
    return wa != wb ? wa > wb : a->name < b->name;
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const SafetensorsEntry* entry : layout.order) {
    if (!names.insert(entry->name).second)
      return failed(fmt::format("two tensors are called \"{}\"", printable(entry->name)));
    const std::uint64_t end = offset + *byte_count(entry->shape, entry->type);
    header[entry->name] = {{"dtype", to_string(entry->type)}, {"shape", entry->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  layout.data_bytes = static_cast<std::int64_t>(offset);
  try {
    layout.header = header.dump();
  } catch (const nlohmann::json::exception&) {
    return failed("a name or a metadata value is not UTF-8");
  }
  layout.header.resize((layout.header.size() + 7) / 8 * 8, ' ');
  if (layout.header.size() > largest_header) return failed("the header would be larger than 100 MB");
  return layout;
}

}  // namespace

Result<std::int64_t> safetensors_file_size(std::span<const SafetensorsEntry> entries,
                                           const std::map<std::string, std::string>& metadata) {
  const Result<Layout> layout = lay_out(entries, metadata);
  if (!layout) return tl::unexpected(layout.error());
  return static_cast<std::int64_t>(8 + layout->header.size()) + layout->data_bytes;
}

Status write_safetensors(const std::filesystem::path& file, std::span<const SafetensorsEntry> entries,
                         const std::map<std::string, std::string>& metadata) {
  const auto bad = [&file](std::string_view cause) {
    return failed(fmt::format("cannot write {}: {}", file.string(), cause));
  };
  const Result<Layout> layout = lay_out(entries, metadata);
  if (!layout) return bad(layout.error().what);
  for (const SafetensorsEntry& entry : entries)
    if (*byte_count(entry.shape, entry.type) != entry.bytes.size())
      return bad(fmt::format("tensor \"{}\" has {} bytes, which do not fit {} [{}]", printable(entry.name),
                             entry.bytes.size(), to_string(entry.type), fmt::join(entry.shape, ", ")));

  Result<AtomicFile> out = AtomicFile::create(file);
  if (!out) return tl::unexpected(out.error());
  const std::uint64_t header_size = layout->header.size();
  Status written = out->write(std::as_bytes(std::span(&header_size, 1)));
  if (written) written = out->write(layout->header);
  for (const SafetensorsEntry* entry : layout->order)
    if (written) written = out->write(entry->bytes);
  return written ? out->commit() : written;
}

}  // namespace stacklab
