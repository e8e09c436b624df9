// What the horizontal axis of all panels counts, and where each step of a curve lies on it.
#pragma once

#include <QString>
#include <memory>
#include <span>
#include <vector>

#include "ui/plots/column.h"
#include "ui/plots/ticks.h"

namespace stacklab::ui {

enum class XKind { step, tokens, flops, clock, process };
inline constexpr XKind x_kinds[] = {XKind::step, XKind::tokens, XKind::flops, XKind::clock, XKind::process};

QString x_name(XKind kind);  // "Step", for a choice
QString x_unit(XKind kind);  // "step", below the axis
QString x_word(XKind kind);  // "step", for files
XKind x_kind_from_word(const QString& word);
QString format_x(XKind kind, double x);
std::vector<Tick> x_ticks(XKind kind, AxisRange range, int most, bool log);
// The narrowest window that a zoom may choose where the whole axis has this span.
double narrowest_x(XKind kind, double whole);

// x of each point of a series, ascending; as far as the axis' own rows reach.
class MappedX {
 public:
  // rows: step -> x before scaling. Null: the steps themselves.
  void update(const Series& series, const Series* rows, double scale);
  std::span<const double> xs(const Series& series) const {
    return mapped_ ? std::span<const double>(xs_) : series.xs();
  }

 private:
  bool mapped_ = false;
  double scale_ = 1;
  const Series* rows_ = nullptr;
  std::uint64_t epoch_ = 0, rows_epoch_ = 0;
  std::vector<double> xs_;
};

// Where this step lies; linear between rows, the last one's x beyond them, 0 where there are none.
double x_at_step(const Series& rows, double step);

}  // namespace stacklab::ui
