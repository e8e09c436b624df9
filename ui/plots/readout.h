// What the curves say at one x, and the tip that shows it beside the cursor.
#pragma once

#include <QFrame>
#include <QString>
#include <cstdint>
#include <vector>

namespace stacklab::ui {

struct Readout {
  struct Row {
    std::int64_t number = 0;
    bool points = false;
    QString name, value, raw;
    bool bad = false;
    double distance = 0;  // to the cursor, in pixels
  };
  QString title;   // "step 9,120"
  QString aside;   // "4.78 B tokens"
  QString footer;  // "2 runs have no value here"
  std::vector<Row> rows;
};

class ReadoutTip : public QFrame {
 public:
  explicit ReadoutTip(QWidget* window);
  void show_at(const Readout& readout, const QPoint& cursor);  // in the window's coordinates; never over the cursor

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QSize measure() const;
  Readout readout_;
};

}  // namespace stacklab::ui
