// What a starting run goes through, told step by step, so that the first minute explains itself.
#pragma once

#include <QFrame>
#include <QString>
#include <optional>
#include <vector>

#include "ui/models/snapshot.h"
#include "ui/theme/widgets.h"

class QGridLayout;

namespace stacklab::ui {

// Collects the phases of one run as they pass by: text, starting, training, evaluation.
class Journey {
 public:
  enum class Status { waiting, active, done, failed };
  struct Step {
    QString phase;  // as Progress names it
    QString title;  // "Text"
    QString detail;
    QString result = {};  // what is known of it afterwards; empty: the detail stands
    Status status = Status::waiting;
    double began = 0, ended = 0;  // unix time; 0: not seen
    std::int64_t done = 0, total = 0;
  };

  Journey();
  void clear();
  // progress as a job or the store reports it now; run may be null while there is no row.
  void update(const Progress& progress, const RunInfo* run, double now);
  void set_result(const QString& phase, const QString& result);
  const std::vector<Step>& steps() const { return steps_; }
  bool is_preparing() const;  // before the first training step

 private:
  std::vector<Step> steps_;
};

class JourneyStrip : public QFrame {
  Q_OBJECT
 public:
  explicit JourneyStrip(QWidget* parent = nullptr);
  void set_texts(const QString& title, const QString& sentence);
  void show_journey(const Journey& journey, double now, double left_seconds, double tokens_per_second);
  void set_closable(bool closable);
  void set_plain();              // the steps alone, without a frame
  void set_folded(bool folded);  // title and sentence alone

 signals:
  void dismissed();

 private:
  struct Row {
    class GlyphLabel* glyph;
    TextLabel *title, *detail, *aside;
    ThinProgress* bar;
  };
  TextLabel *title_, *sentence_;
  QPushButton* close_;
  QWidget* table_;
  QGridLayout* grid_;
  std::vector<Row> rows_;
};

}  // namespace stacklab::ui
