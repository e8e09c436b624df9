// Faults that a careless change could make, put into a backend from outside: the oracles must see each of them.
#include <memory>
#include <type_traits>

#include "tests/golden_tests/golden.h"

namespace stacklab::golden {
namespace {

template <class T>
concept AttentionOp = std::is_same_v<T, op::Attention> || std::is_same_v<T, op::AttentionBackward>;
template <class T>
concept RaggedOp = std::is_same_v<T, op::RaggedAttention> || std::is_same_v<T, op::RaggedAttentionBackward>;

class FaultyBackend final : public Backend {
 public:
  FaultyBackend(const Backend& inner, std::string fault) : inner_(inner), fault_(std::move(fault)) {}
  std::string_view name() const override { return inner_.name(); }
  bool supports(DType real) const override { return inner_.supports(real); }
  Needs needs(const Op& operation) const override { return inner_.needs(operation); }
  void run(const Op& operation, const KernelContext& context) const override {
    Op broken = operation;
    const bool dropped = std::visit([&](auto& o) { return inject(o); }, broken);
    if (!dropped) inner_.run(broken, context);
  }

 private:
  // Changes the operation, or returns true when it is not to be run at all.
  template <class T>
  bool inject(T& o) const {
    if constexpr (AttentionOp<T>) {
      if (fault_ == "wrong_mask") one_document(o.cu_seqlens, o.qkv.rows());
      if (fault_ == "no_scale") o.shape.scale = 1;
      if (fault_ == "position_off_by_one") shift(o.positions);
    }
    if constexpr (RaggedOp<T>) {
      if (fault_ == "wrong_mask") {
        // One document also hides where queries and keys differ in number.
        one_document(o.cu_q, o.q.rows());
        one_document(o.cu_k, o.k.rows());
      }
      if (fault_ == "no_scale") o.shape.scale = 1;
    }
    if constexpr (std::is_same_v<T, op::Rope>)
      if (fault_ == "position_off_by_one") shift(o.positions);
    if constexpr (requires { o.dw; })
      if (fault_ == "accumulate_instead_of_assign" && o.dw.present() && !o.dw.accumulate) add_to_garbage(o.dw);
    if constexpr (requires {
                    o.eps;
                    o.gain;
                  })
      if (fault_ == "norm_without_eps") o.eps = 0;
    if constexpr (std::is_same_v<T, op::EmbeddingBackward>)
      if (fault_ == "tied_gradient_missing") return o.dtable.accumulate;
    return false;
  }

  void one_document(TensorView& cu, std::int64_t rows) const {
    std::vector<std::int32_t>& all =
        borrowed_.emplace_back(static_cast<std::size_t>(cu.rows()), static_cast<std::int32_t>(rows));
    all[0] = 0;
    cu.data = reinterpret_cast<std::byte*>(all.data());
  }
  // From the middle on: rotary positions count by their differences alone.
  void shift(TensorView& positions) const {
    const std::int32_t* from = positions.as<std::int32_t>();
    std::vector<std::int32_t>& all = borrowed_.emplace_back(from, from + positions.rows());
    for (std::size_t t = all.size() / 2; t < all.size(); ++t) all[t] += 1;
    positions.data = reinterpret_cast<std::byte*>(all.data());
  }
  static void add_to_garbage(GradView& g) {
    for (std::int64_t i = 0; i < g.view.size(); ++i) {
      if (g.view.dtype == DType::f64)
        g.view.as<double>()[i] = 0.01;
      else
        g.view.as<float>()[i] = 0.01f;
    }
    g.accumulate = true;
  }

  const Backend& inner_;
  std::string fault_;
  mutable std::vector<std::vector<std::int32_t>> borrowed_;  // what changed operands point at
};

}  // namespace

std::vector<std::string> fault_names() {
  return {"wrong_mask",           "no_scale", "position_off_by_one", "accumulate_instead_of_assign", "norm_without_eps",
          "tied_gradient_missing"};
}

std::unique_ptr<Backend> with_fault(const Backend& backend, std::string_view fault) {
  for (const std::string& name : fault_names())
    if (name == fault) return std::make_unique<FaultyBackend>(backend, name);
  return nullptr;
}

}  // namespace stacklab::golden
