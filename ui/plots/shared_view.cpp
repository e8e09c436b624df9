#include "ui/plots/shared_view.h"

#include <algorithm>

namespace stacklab::ui {
namespace {
constexpr qint64 join_within_ms = 700;
constexpr std::size_t most_views = 100;
}  // namespace

void SharedView::push(const View& view, bool join) {
  if (view == views_[at_]) return;
  const bool joins = join && at_ > 0 && since_joined_.isValid() && since_joined_.elapsed() < join_within_ms;
  views_.resize(at_ + 1);
  if (joins) {
    views_[at_] = view;
  } else {
    views_.push_back(view);
    if (views_.size() > most_views) views_.erase(views_.begin() + 1);
    at_ = views_.size() - 1;
  }
  if (join)
    since_joined_.start();
  else
    since_joined_.invalidate();
  emit stack_changed();
  emit changed();
}

void SharedView::back() {
  if (!can_go_back()) return;
  --at_;
  since_joined_.invalidate();
  emit stack_changed();
  emit changed();
}

void SharedView::forward() {
  if (!can_go_forward()) return;
  ++at_;
  since_joined_.invalidate();
  emit stack_changed();
  emit changed();
}

void SharedView::reset() { push(View{}); }

void SharedView::set_smoothing(double beta) {
  beta = std::clamp(beta, 0.0, 0.995);
  if (beta == smoothing_) return;
  smoothing_ = beta;
  emit changed();
}

void SharedView::set_raw_shown(bool shown) {
  if (shown == raw_shown_) return;
  raw_shown_ = shown;
  emit changed();
}

void SharedView::set_robust(bool robust) {
  if (robust == robust_) return;
  robust_ = robust;
  emit changed();
}

void SharedView::set_log_x(bool log) {
  if (log == log_x_) return;
  log_x_ = log;
  emit changed();
}

void SharedView::set_x_kind(XKind kind) {
  if (kind == x_kind_) return;
  x_kind_ = kind;
  views_ = {View{}};
  at_ = 0;
  set_crosshair(std::nullopt);
  emit stack_changed();
  emit changed();
}

void SharedView::set_crosshair(std::optional<double> x) {
  if (x == crosshair_) return;
  crosshair_ = x;
  emit crosshair_changed();
}

}  // namespace stacklab::ui

#include <moc_shared_view.cpp>
