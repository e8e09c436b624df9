// The field for the filter: what may come next is offered while one types, what is wrong is said below, and the filter
// holds as soon as it is whole.
#pragma once

#include <QLineEdit>
#include <QWidget>

#include "engine/service/job_service.h"
#include "ui/theme/widgets.h"

class QListView;
class QStandardItemModel;

namespace stacklab::ui {

class FilterField : public QWidget {
  Q_OBJECT
 public:
  explicit FilterField(QWidget* parent = nullptr);
  void set_words(const FilterWords& words) { words_ = words; }
  void set_count(std::int64_t shown, std::int64_t all);
  QString text() const { return edit_->text(); }
  void set_text(const QString& text);  // as if typed
  QLineEdit* edit() const { return edit_; }
  QListView* offers() const { return offers_; }
  QString problem() const { return problem_->full_text(); }
  TextLabel* problem_label() const { return problem_; }

 signals:
  void changed(const stacklab::RunFilter& filter);
  void broken();  // what stands there is no filter, or no more

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void judge();
  void offer(bool asked);
  void take(int row);
  void place();

  QLineEdit* edit_;
  TextLabel *count_, *problem_;
  QListView* offers_;
  QStandardItemModel* model_;
  FilterWords words_;
  int from_ = 0, to_ = 0;              // letters that an offer takes the place of
  QString whole_{QStringLiteral("")};  // what is there, as far as it is a filter; else null
};

}  // namespace stacklab::ui
