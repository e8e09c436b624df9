// A panel's curves on Qt Charts. The chart is only ever handed what a screen can show (decimate.h), at most ten times a
// second and only while it is visible; grid, labels, marks and crosshair are painted by us (chart_paint.h).
#pragma once

#include <QChartView>
#include <QLineSeries>
#include <QPointer>
#include <QValueAxis>
#include <memory>
#include <optional>
#include <vector>

#include "ui/plots/chart_paint.h"
#include "ui/plots/coalescing_timer.h"
#include "ui/plots/column.h"
#include "ui/plots/decimate.h"
#include "ui/plots/readout.h"
#include "ui/plots/shared_view.h"
#include "ui/theme/theme.h"

namespace stacklab::ui {

struct Curve {
  QString id;               // unique in the chart
  QString group_id;         // what it belongs to, for files: the run's id
  QString group;            // and its name on screen
  QString name;             // "train", "val"
  QString metric;           // for files
  std::int64_t number = 0;  // of the run: colour and dash
  bool smooth = true;       // false: shown as it is, whatever the smoothing
  bool points = false;      // hollow circles instead of a line, never smoothed
  bool focused = false;
  bool baseline = false;  // others are held against it
  bool muted = false;     // in grey: one of several lines of a run that is not the chosen one
  // Where its steps lie on the x axis, if that does not count steps: step -> x / axis_scale.
  std::shared_ptr<const Series> axis = {};
  double axis_scale = 1;
  std::shared_ptr<const Series> seconds = {};  // time spent at each step; may be absent
  double tokens_per_step = 0;                  // 0: unknown
  std::shared_ptr<const Series> series;
};

struct ReferenceLine {
  double y = 0;
  QString label;
  bool limit = false;  // what lies above it is not in order
  bool operator==(const ReferenceLine&) const = default;
};

struct EventMark {
  double x = 0;
  Glyph glyph = Glyph::diamond;
  Token color = Token::info;
  QString text;
  bool line = true;  // a dotted line below the glyph
  bool operator==(const EventMark&) const = default;
};

struct ChartSetup {
  QString id;     // of the panel, for views and files
  QString title;  // "Loss"
  QString unit;   // "nats per token"
  ValueFormat format = ValueFormat::fixed3;
  bool log_y = false;
};

// What the badges of a panel say. Counts are of the shown window.
struct ChartFacts {
  std::size_t raw = 0, drawn = 0, hidden = 0, non_finite = 0;
  int curves_with_non_finite = 0;
  std::optional<double> first_non_finite;  // x, of all shown curves, whatever the window
  double first_non_finite_step = 0;
  QString first_non_finite_curve;
  bool robust_cuts = false;
  bool summed = false;  // of a long run: hidden is the least that it can be
  bool operator==(const ChartFacts&) const = default;
};

class CurveChart : public QChartView {
  Q_OBJECT
 public:
  CurveChart(ChartSetup setup, SharedView* shared, QWidget* parent = nullptr);
  ~CurveChart() override;

  const ChartSetup& setup() const { return setup_; }
  SharedView* shared() const { return shared_; }

  // What is on show. A curve that stays (same id) keeps its state.
  void set_curves(std::vector<Curve> curves);
  std::vector<Curve> curves() const;
  void set_reference_lines(std::vector<ReferenceLine> lines);
  void set_events(std::vector<EventMark> events);
  void set_empty_text(const QString& text);
  void set_expected_end(double x);  // the axis reaches at least so far
  void set_log_y(bool log);
  bool log_y() const { return setup_.log_y; }
  // The data of some curve has grown.
  void mark_dirty();

  const ChartFacts& facts() const { return facts_; }
  AxisRange x_range() const { return frame_.x; }  // in the axis' unit
  AxisRange y_range() const { return frame_.y; }
  QRectF plot_rect() const { return frame_.plot; }
  const std::vector<ChartFrame::Label>& end_labels() const { return frame_.end_labels; }
  bool refresh_pending() const { return dirty_ || timer_.pending(); }
  int refreshes() const { return refreshes_; }
  void refresh_now();

  // Shows x: centres the view there if it is outside, and puts the crosshair on it.
  void go_to(double x);
  // Data window that is shown, in data units (not log).
  AxisRange data_window() const;
  Readout readout(double x, std::optional<double> y_pixel) const;
  // Of each curve, in order: which of its points lie in the window.
  std::vector<std::pair<std::size_t, std::size_t>> shown_points() const;

 signals:
  void facts_changed();
  void menu_requested(const QPoint& global);

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  struct Drawn {  // which state the lines of a curve show
    std::uint64_t version = 0;
    AxisRange x;
    std::size_t points = 0;
    int columns = 0;
    double smoothing = -1;
    bool raw_shown = false, log_x = false, log_y = false, focused = false;
    bool operator==(const Drawn&) const = default;
  };
  struct Live {
    Curve curve;
    Smoother smoother;
    MappedX mapped;
    std::span<const double> xs() const { return mapped.xs(*curve.series); }
    std::vector<QLineSeries*> raw_lines, main_lines;
    std::vector<QPointF> dots, circles, gaps;
    std::size_t raw = 0, drawn = 0, hidden = 0, non_finite = 0;
    Drawn state;
    bool pens_stale = true;
  };

  void refresh_in_turn();  // now, or when the window has done other work
  void refresh();
  void lay_out();
  bool is_smoothed(const Curve& curve) const;
  AxisRange fit_x() const;
  AxisRange fit_y(AxisRange x_data);
  void draw_curve(Live& live, const Window& window);
  void draw_lines(Live& live, std::vector<QLineSeries*>& pool, const Decimated& decimated, bool main);
  void restack();
  void remove_lines(Live& live);
  void set_pens(Live& live);
  void collect_marks();
  void collect_facts();
  void describe();

  double x_at(double pixel) const;  // data unit
  double y_at(double pixel) const;  // axis unit
  std::optional<double> snapped(double x) const;
  std::optional<double> baseline_at(const Live& of, double x) const;
  QColor color_of(const Curve& curve) const;
  void hover(const QPointF& position);
  void show_tip(const QPointF& position);
  void hide_tip();
  void zoom_x(double factor, double around_pixel);
  void zoom_y(double factor, double around_pixel);
  void step_crosshair(int points);

  ChartSetup setup_;
  QPointer<SharedView> shared_;
  std::vector<std::unique_ptr<Live>> lives_;
  std::vector<ReferenceLine> references_;
  std::vector<EventMark> events_;
  double expected_end_ = 0;
  QValueAxis* axis_x_;
  QValueAxis* axis_y_;
  ChartFrame frame_;
  GridItem* grid_;
  MarksItem* marks_;
  CrosshairItem* crosshair_;
  QPointer<ReadoutTip> tip_;
  ChartFacts facts_;
  bool dirty_ = true, restack_ = false, dragging_ = false;
  QPointF press_;
  int refreshes_ = 0;
  CoalescingTimer timer_;
};

}  // namespace stacklab::ui
