// Weights are loaded whole or not at all, and the message says what to do.
#include "engine/model/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

namespace stacklab {
namespace {

// The tensors of a model of one tiny layer, in memory.
class Model {
 public:
  explicit Model(bool tied, std::int64_t hidden = 4, std::int64_t layers = 1) : tied_(tied) {
    add("tok_emb.weight", {6, hidden});
    for (std::int64_t l = 0; l < layers; ++l) add("blocks." + std::to_string(l) + ".mlp.up.weight", {3, hidden});
    add("final_norm.weight", {hidden});
    if (!tied) add("lm_head.weight", {6, hidden});
  }
  std::vector<NamedTensor> tensors() {
    std::vector<NamedTensor> all;
    for (auto& [name, t] : memory_) all.push_back({name, make_view(t)});
    return all;
  }
  Status load(const std::string& file) {
    const auto parsed = Safetensors::parse(std::as_bytes(std::span(file)), "m.safetensors");
    if (!parsed) return tl::unexpected(parsed.error());
    return load_tensors(*parsed, "m.safetensors", tensors(), tied_);
  }
  const std::vector<float>& values(const std::string& name) const { return memory_.at(name).values; }

 private:
  struct Memory {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  void add(const std::string& name, std::vector<std::int64_t> shape) {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    memory_[name] = {shape, std::vector<float>(static_cast<std::size_t>(n), -1.0f)};
  }
  static TensorView make_view(Memory& m) {
    TensorView v;
    v.data = reinterpret_cast<std::byte*>(m.values.data());
    v.dtype = DType::f32;
    v.shape = m.shape.size() == 1 ? Shape{m.shape[0]} : Shape{m.shape[0], m.shape[1]};
    return v;
  }
  bool tied_;
  std::map<std::string, Memory> memory_;
};

// A file of f32 tensors, each filled with its own number.
class File {
 public:
  File& add(const std::string& name, const std::vector<std::int64_t>& shape, float value) {
    std::int64_t n = 1;
    std::string dims;
    for (const std::int64_t d : shape) n *= d, dims += (dims.empty() ? "" : ",") + std::to_string(d);
    const std::size_t begin = data_.size();
    for (std::int64_t i = 0; i < n; ++i) {
      char bytes[4];
      std::memcpy(bytes, &value, 4);
      data_.append(bytes, 4);
    }
    header_ += (header_.empty() ? "" : ",") + ("\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + dims) +
               "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(data_.size()) + "]}";
    return *this;
  }
  std::string bytes() const {
    const std::string header = "{" + header_ + "}";
    const std::uint64_t size = header.size();
    char length[8];
    std::memcpy(length, &size, 8);
    return std::string(length, 8) + header + data_;
  }

 private:
  std::string header_, data_;
};

File body(const std::string& prefix = "", std::int64_t hidden = 4, std::int64_t layers = 1) {
  File f;
  f.add(prefix + "tok_emb.weight", {6, hidden}, 2);
  for (std::int64_t l = 0; l < layers; ++l)
    f.add(prefix + "blocks." + std::to_string(l) + ".mlp.up.weight", {3, hidden}, 3);
  f.add(prefix + "final_norm.weight", {hidden}, 4);
  return f;
}

std::string fault(Model model, const File& file) {
  const Status loaded = model.load(file.bytes());
  if (loaded) return {};
  for (const NamedTensor& t : model.tensors())
    EXPECT_EQ(t.view.as<float>()[0], -1.0f) << "nothing is copied unless all fits";
  return loaded.error().message();
}

bool says(const std::string& message, std::string_view part) { return message.find(part) != std::string::npos; }

TEST(Weights, TiesAndHeads) {
  EXPECT_EQ(fault(Model(true), body()), "") << "tied, stored once";
  EXPECT_EQ(fault(Model(true), body().add("lm_head.weight", {6, 4}, 2)), "") << "tied, stored twice";
  EXPECT_EQ(fault(Model(false), body().add("lm_head.weight", {6, 4}, 5)), "") << "not tied";
  const std::string absent = fault(Model(false), body());
  EXPECT_TRUE(says(absent, "1 missing: lm_head.weight")) << absent;
  EXPECT_TRUE(says(absent, "model.tie_embeddings to true")) << absent;
  for (const File& other : {body().add("lm_head.weight", {6, 4}, 5), body().add("lm_head.weight", {4, 6}, 2)}) {
    const std::string different = fault(Model(true), other);
    EXPECT_TRUE(says(different, "lm_head.weight is not tok_emb.weight")) << different;
    EXPECT_TRUE(says(different, "model.tie_embeddings to false")) << different;
  }
  Model tied(true);
  ASSERT_TRUE(tied.load(body().bytes()));
  EXPECT_EQ(tied.values("tok_emb.weight")[5], 2.0f);
  EXPECT_EQ(tied.values("final_norm.weight")[3], 4.0f);
}

TEST(Weights, WhatIsMissingLeftOverOrAnotherShape) {
  const std::string deeper = fault(Model(true, 4, 2), body());
  EXPECT_TRUE(says(deeper, "1 missing: blocks.1.mlp.up.weight")) << deeper;
  const std::string shallower = fault(Model(true, 4, 1), body("", 4, 9));
  EXPECT_TRUE(says(shallower, "8 unexpected: blocks.1.mlp.up.weight, ")) << shallower;
  EXPECT_TRUE(says(shallower, ", ...")) << shallower;
  const std::string wider = fault(Model(true, 8), body());
  EXPECT_TRUE(says(wider, "3 of another type or shape")) << wider;
  EXPECT_TRUE(says(wider, "tok_emb.weight (F32 [6, 4] in the file, F32 [6, 8] in the model)")) << wider;
  const std::string all = fault(Model(true, 8, 2), body().add("extra\\n", {1}, 0));
  for (const char* part : {"m.safetensors", "1 missing", "1 unexpected: extra?", "3 of another"})
    EXPECT_TRUE(says(all, part)) << all;
}

TEST(Weights, PrefixesOfWrappersAreExplained) {
  for (const auto& [prefix, by] :
       std::map<std::string, std::string>{{"module.", "DistributedDataParallel"},
                                          {"_orig_mod.", "torch.compile"},
                                          {"module._orig_mod.", "torch.compile"},
                                          {"_orig_mod.module.", "DistributedDataParallel"}}) {
    const std::string message = fault(Model(true), body(prefix));
    EXPECT_TRUE(says(message, "\"" + prefix + "\"")) << message;
    EXPECT_TRUE(says(message, by)) << message;
  }
  EXPECT_FALSE(says(fault(Model(true), body("model.")), "wrap"));
}

}  // namespace
}  // namespace stacklab
