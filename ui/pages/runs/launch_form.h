// The fields of a config, section by section, made from the config's own field list. What is typed is judged at once:
// what does not fit is said below the field, what differs from where one began is marked.
#pragma once

#include <QStackedWidget>
#include <map>
#include <vector>

#include "engine/config/run_config.h"
#include "ui/theme/widgets.h"

class QGridLayout;
class QLineEdit;

namespace stacklab::ui {

class LaunchForm : public QStackedWidget {
  Q_OBJECT
 public:
  explicit LaunchForm(QWidget* parent = nullptr);

  struct Section {
    QString title;
    int changed = 0, wrong = 0;
  };
  const std::vector<Section>& sections() const { return sections_; }

  // base: what one began from.
  void set_config(const RunConfig& config, const RunConfig& base);
  const RunConfig& config() const { return config_; }
  // What is wrong with the first field that is, as one sentence; empty: each holds by itself.
  QString own_problem() const;
  QString problem_key() const;
  // What the whole config gets wrong stands at the field that it names.
  void set_whole_problem(const QString& key, const QString& sentence);
  void reveal(const QString& key);
  QWidget* control(const QString& key) const;
  QString error_of(const QString& key) const;
  QString hint_of(const QString& key) const;
  void type(const QString& key, const QString& value);  // as a person would
  int section_of(const QString& key) const;
  static QString value_text(const RunConfig& config, const QString& key);  // as one types it, and --set takes it

 signals:
  void edited();            // config() or problem() has changed
  void sections_changed();  // counts

 private:
  struct Row {
    QString key, help, zero_word, own_error;
    int section = 0;
    QWidget* control = nullptr;
    QWidget* dot = nullptr;
    TextLabel *hint = nullptr, *error = nullptr;
    bool changed = false;
  };
  void build();
  void take(Row& row, const QString& value);
  void show(Row& row);
  void count();

  RunConfig config_, base_;
  std::vector<Section> sections_;
  std::map<QString, Row> rows_;
  QStringList order_;
  QString whole_key_, whole_problem_;
  bool filling_ = false;
};

// "optim.muon_lr" -> "Muon learning rate".
QString field_title(const QString& key);

}  // namespace stacklab::ui
