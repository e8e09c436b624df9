// Cells in rows and columns, coloured by how near each value comes to a limit: below it in one hue, from it on in
// another, with a notched corner.
#pragma once

#include <QWidget>
#include <optional>
#include <vector>

namespace stacklab::ui {

struct HeatCells {
  int rows = 0, columns = 0;
  std::vector<double> values;  // by row; NaN: not known
  std::vector<bool> marked;    // columns underlined on the axis
  double limit = 0;            // what is not in order begins here; 0: none, the largest value stands for it
  double at(int row, int column) const {
    return values[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column)];
  }
  double largest() const;  // of the finite ones; 1: none is over 0
  int over() const;        // cells at or over the limit, or not finite though known
};

// The colour of a value, 0 to 1.5 times the limit.
QColor heat_color(double part, bool dark);

class HeatMap : public QWidget {
  Q_OBJECT
 public:
  // "layer", "head": what columns and rows are called.
  HeatMap(const QString& column_word, const QString& row_word, QWidget* parent = nullptr);

  void set_cells(HeatCells cells);
  const HeatCells& cells() const { return cells_; }
  void set_selected(std::optional<QPoint> cell);  // x: column, y: row
  std::optional<QPoint> selected() const { return selected_; }
  void set_column_note(const QString& note) { note_ = note; }
  void set_empty_text(const QString& text);
  QRectF cell_rect(int row, int column) const;
  QSize minimumSizeHint() const override { return {120, 90}; }

 signals:
  void cell_chosen(int row, int column);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF plot() const;
  std::optional<QPoint> cell_at(const QPointF& position) const;
  QString say(QPoint cell) const;
  void choose(QPoint cell);

  HeatCells cells_;
  std::optional<QPoint> selected_;
  QString column_word_, row_word_, note_, empty_text_;
};

// What the colours mean, with a tick at the limit.
class HeatLegend : public QWidget {
 public:
  explicit HeatLegend(QWidget* parent = nullptr);
  // limit 0: none, the colours end at most. word: of the limit, "clip".
  void set_scale(double limit, double most, const QString& word);
  QString end_text() const;  // the largest number of the scale
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {0, 0}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString text() const;
  double limit_ = 0, most_ = 0;
  QString word_;
};

}  // namespace stacklab::ui
