#include "ui/pages/runs/launch_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QLineEdit>
#include <QLocale>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/config/fields.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

QString text(std::string_view s) { return QString::fromUtf8(s.data(), static_cast<qsizetype>(s.size())); }

// Where a key stands: by its beginning, the first that fits.
struct Place {
  const char* begins;
  int section;
};
constexpr const char* section_titles[] = {QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Name and length"),
                                          QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Model"),
                                          QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Data"),
                                          QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Batch and memory"),
                                          QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Optimiser, schedule"),
                                          QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Checkpoints"),
                                          QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Evaluation"),
                                          QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Budget and alerts"),
                                          QT_TRANSLATE_NOOP("stacklab::ui::LaunchForm", "Device and process")};
constexpr Place places[] = {{"train.batch_tokens", 3},
                            {"train.seq_len", 3},
                            {"train.precision", 3},
                            {"run.micro_batch", 3},
                            {"run.loss_chunk", 3},
                            {"run.recompute", 3},
                            {"run.memory_guard", 3},
                            {"name", 0},
                            {"train.", 0},
                            {"model.", 1},
                            {"data.", 2},
                            {"optim.", 4},
                            {"run.checkpoint", 5},
                            {"run.keep", 5},
                            {"run.disk", 5},
                            {"run.eval", 6},
                            {"run.budget", 7},
                            {"run.alert", 7},
                            {"", 8}};

int section_for(std::string_view key) {
  for (const Place& place : places)
    if (key.starts_with(place.begins)) return place.section;
  return 8;
}

// A small accent dot where a value differs from the one that one began with.
class Dot : public QWidget {
 public:
  using QWidget::QWidget;
  QSize sizeHint() const override { return {6, 6}; }
  bool on = false;

 protected:
  void paintEvent(QPaintEvent*) override {
    if (!on) return;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme()[Token::accent]);
    painter.drawEllipse(QRectF(width() / 2.0 - 2.5, height() / 2.0 - 2.5, 5, 5));
  }
};

QString sentence(const Error& error, const QString& key) {
  QString what = text(error.what);
  if (what.startsWith(key + QStringLiteral(": "))) what = what.mid(key.size() + 2);
  if (!what.isEmpty()) what[0] = what[0].toUpper();
  if (!error.remedy.empty()) what += QStringLiteral(": ") + text(error.remedy);
  return what + (what.endsWith(QLatin1Char('?')) ? QString() : QStringLiteral("."));
}

}  // namespace

QString field_title(const QString& key) {
  static const std::map<QString, QString> words = {{QStringLiteral("lr"), LaunchForm::tr("learning rate")},
                                                   {QStringLiteral("kv"), QStringLiteral("KV")},
                                                   {QStringLiteral("qk"), QStringLiteral("QK")},
                                                   {QStringLiteral("adam"), QStringLiteral("AdamW")},
                                                   {QStringLiteral("muon"), QStringLiteral("Muon")},
                                                   {QStringLiteral("ns"), LaunchForm::tr("Newton-Schulz")},
                                                   {QStringLiteral("nope"), QStringLiteral("NoPE")},
                                                   {QStringLiteral("rope"), QStringLiteral("RoPE")},
                                                   {QStringLiteral("attn"), LaunchForm::tr("attention")},
                                                   {QStringLiteral("eval"), LaunchForm::tr("evaluation")},
                                                   {QStringLiteral("eps"), LaunchForm::tr("epsilon")},
                                                   {QStringLiteral("coef"), LaunchForm::tr("weight")},
                                                   {QStringLiteral("seq"), LaunchForm::tr("sequence")},
                                                   {QStringLiteral("len"), LaunchForm::tr("length")},
                                                   {QStringLiteral("dim"), LaunchForm::tr("width")},
                                                   {QStringLiteral("vocab"), LaunchForm::tr("vocabulary")},
                                                   {QStringLiteral("usd"), LaunchForm::tr("dollars")},
                                                   {QStringLiteral("ffn"), LaunchForm::tr("feed-forward")},
                                                   {QStringLiteral("z"), QStringLiteral("z")}};
  static const std::map<QString, QString> whole = {
      {QStringLiteral("model.d_model"), LaunchForm::tr("Width")},
      {QStringLiteral("model.n_layers"), LaunchForm::tr("Layers")},
      {QStringLiteral("model.n_heads"), LaunchForm::tr("Query heads")},
      {QStringLiteral("model.n_kv_heads"), LaunchForm::tr("KV heads")},
      {QStringLiteral("model.intermediate"), LaunchForm::tr("Feed-forward width")},
      {QStringLiteral("model.vocab_size"), LaunchForm::tr("Vocabulary")},
      {QStringLiteral("optim.matrices"), LaunchForm::tr("Hidden matrices")},
      {QStringLiteral("optim.schedule.kind"), LaunchForm::tr("Schedule")},
      {QStringLiteral("train.tokens"), LaunchForm::tr("Tokens in all")},
      {QStringLiteral("train.batch_tokens"), LaunchForm::tr("Tokens per step")},
      {QStringLiteral("run.budget.tokens"), LaunchForm::tr("Token budget")},
      {QStringLiteral("run.budget.hours"), LaunchForm::tr("Hour budget")},
      {QStringLiteral("run.budget.usd"), LaunchForm::tr("Dollar budget")},
      {QStringLiteral("run.checkpoint_every"), LaunchForm::tr("Save every")},
      {QStringLiteral("run.keep_last"), LaunchForm::tr("Keep last")},
      {QStringLiteral("run.eval_every"), LaunchForm::tr("Evaluate every")},
      {QStringLiteral("run.log_every"), LaunchForm::tr("Record every")}};
  if (const auto at = whole.find(key); at != whole.end()) return at->second;
  QStringList parts = key.mid(key.lastIndexOf(QLatin1Char('.')) + 1).split(QLatin1Char('_'));
  for (QString& part : parts)
    if (const auto at = words.find(part); at != words.end()) part = at->second;
  QString title = parts.join(QLatin1Char(' '));
  if (!title.isEmpty()) title[0] = title[0].toUpper();
  return title;
}

LaunchForm::LaunchForm(QWidget* parent) : QStackedWidget(parent) { build(); }

void LaunchForm::build() {
  std::vector<QGridLayout*> grids;
  for (const char* title : section_titles) {
    sections_.push_back({tr(title)});
    auto* scroll = new QScrollArea(this);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    auto* body = new QWidget(scroll);
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(12, 14, 16, 14);
    auto* heading = new TextLabel(TextRole::body, Token::text, true, body);
    heading->set_full_text(sections_.back().title);
    column->addWidget(heading);
    column->addSpacing(8);
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(3);
    grid->setColumnStretch(3, 1);
    grids.push_back(grid);
    column->addLayout(grid);
    column->addStretch();
    scroll->setWidget(body);
    addWidget(scroll);
  }
  for (const FieldInfo& field : field_infos()) {
    const QString key = text(field.key);
    const int section = section_for(field.key);
    QGridLayout* grid = grids[static_cast<std::size_t>(section)];
    QWidget* body = static_cast<QScrollArea*>(widget(section))->widget();
    Row row;
    row.key = key;
    row.section = section;
    row.help = text(field.help);
    row.zero_word = text(field.zero_word);
    row.dot = new Dot(body);
    auto* label = new TextLabel(TextRole::body, Token::text2, false, body);
    label->set_full_text(field_title(key));
    label->setToolTip(key);
    if (field.type == "boolean") {
      auto* box = new QCheckBox(body);
      connect(box, &QCheckBox::toggled, this,
              [this, key](bool on) { take(rows_.at(key), on ? QStringLiteral("true") : QStringLiteral("false")); });
      row.control = box;
    } else if (!field.rules.choices.empty()) {
      auto* box = new QComboBox(body);
      for (const std::string& choice : field.rules.choices) box->addItem(text(choice));
      connect(box, &QComboBox::textActivated, this, [this, key](const QString& value) { take(rows_.at(key), value); });
      row.control = box;
    } else {
      auto* edit = new QLineEdit(body);
      connect(edit, &QLineEdit::textChanged, this, [this, key](const QString& value) {
        if (!filling_) take(rows_.at(key), value);
      });
      row.control = edit;
    }
    row.control->setAccessibleName(field_title(key));
    row.control->setAccessibleDescription(row.help);
    row.control->setToolTip(key);
    row.control->setMinimumWidth(metrics().scaled(field.type == "text" ? 190 : 150));
    row.control->setMaximumWidth(metrics().scaled(220));
    row.hint = new TextLabel(TextRole::secondary, Token::text3, false, body);
    row.hint->setWordWrap(true);
    row.error = new TextLabel(TextRole::secondary, Token::bad, false, body);
    row.error->setWordWrap(true);
    row.error->hide();
    const QString unit = text(field.unit);
    if (!unit.isEmpty()) row.help = unit + QStringLiteral("; ") + row.help.at(0).toLower() + row.help.mid(1);
    const int line = grid->rowCount();
    grid->addWidget(row.dot, line, 0);
    grid->addWidget(label, line, 1);
    grid->addWidget(row.control, line, 2);
    grid->addWidget(row.hint, line, 3);
    grid->addWidget(row.error, line + 1, 2, 1, 2);
    grid->setRowMinimumHeight(line, metrics().control() + 6);
    order_ << key;
    rows_.emplace(key, std::move(row));
  }
}

QString LaunchForm::value_text(const RunConfig& config, const QString& key) {
  RunConfig copy = config;
  for (const Field& field : fields_of(copy)) {
    if (text(field.key) != key) continue;
    return std::visit(
        [&](const auto* value) -> QString {
          using T = std::decay_t<decltype(*value)>;
          if constexpr (std::is_same_v<T, bool>)
            return *value ? QStringLiteral("true") : QStringLiteral("false");
          else if constexpr (std::is_same_v<T, std::string>)
            return QString::fromStdString(*value);
          else if constexpr (std::is_same_v<T, double>)
            return *value == 0 && !field.zero_word.empty() ? text(field.zero_word)
                                                           : QString::fromStdString(shortest(*value));
          else
            return *value == 0 && !field.zero_word.empty() ? text(field.zero_word) : QString::number(*value);
        },
        field.value);
  }
  return {};
}

void LaunchForm::set_config(const RunConfig& config, const RunConfig& base) {
  config_ = config;
  base_ = base;
  filling_ = true;
  for (auto& [key, row] : rows_) {
    const QString value = value_text(config_, key);
    const QSignalBlocker quiet(row.control);
    if (auto* box = qobject_cast<QCheckBox*>(row.control)) box->setChecked(value == QLatin1String("true"));
    if (auto* box = qobject_cast<QComboBox*>(row.control)) box->setCurrentText(value);
    if (auto* edit = qobject_cast<QLineEdit*>(row.control)) edit->setText(value);
    row.own_error.clear();
    show(row);
  }
  filling_ = false;
  whole_key_.clear();
  whole_problem_.clear();
  count();
  emit edited();
}

void LaunchForm::take(Row& row, const QString& value) {
  const std::string key = row.key.toStdString() + "=";
  Status done = set_field(config_, key + value.trimmed().toStdString());
  // Numbers as this person's screen shows them, too; never another number than they read there.
  bool whole = false, any = false;
  const QLocale screen;
  const qlonglong integer = done ? 0 : screen.toLongLong(value.trimmed(), &whole);
  const double number = done || whole ? 0 : screen.toDouble(value.trimmed(), &any);
  if (whole || (any && std::isfinite(number)))
    if (const Status read = set_field(config_, key + (whole ? std::to_string(integer) : shortest(number))); read)
      done = read;
  row.own_error = done ? QString() : sentence(done.error(), row.key);
  show(row);
  count();
  emit edited();
}

void LaunchForm::show(Row& row) {
  const QString now = value_text(config_, row.key), before = value_text(base_, row.key);
  row.changed = row.own_error.isEmpty() && now != before;
  static_cast<Dot*>(row.dot)->on = row.changed;
  row.dot->update();
  row.hint->set_full_text(row.changed ? tr("was %1").arg(before.isEmpty() ? tr("empty") : before) : row.help);
  const QString error = !row.own_error.isEmpty() ? row.own_error : row.key == whole_key_ ? whole_problem_ : QString();
  row.error->set_full_text(error);
  row.error->setVisible(!error.isEmpty());
  row.control->setAccessibleDescription(error.isEmpty() ? row.help : error);
  const bool wrong = !error.isEmpty();
  if (row.control->property("wrong").toBool() != wrong) {
    row.control->setProperty("wrong", wrong);
    row.control->setStyleSheet(wrong ? QStringLiteral("border: 1px solid %1;").arg(theme()[Token::bad].name())
                                     : QString());
  }
}

void LaunchForm::count() {
  for (Section& section : sections_) section.changed = section.wrong = 0;
  for (const auto& [key, row] : rows_) {
    Section& section = sections_[static_cast<std::size_t>(row.section)];
    section.changed += row.changed ? 1 : 0;
    section.wrong += !row.own_error.isEmpty() || key == whole_key_ ? 1 : 0;
  }
  emit sections_changed();
}

QString LaunchForm::problem_key() const {
  for (const QString& key : order_)
    if (!rows_.at(key).own_error.isEmpty()) return key;
  return whole_key_;
}

QString LaunchForm::own_problem() const {
  for (const QString& key : order_)
    if (const Row& row = rows_.at(key); !row.own_error.isEmpty())
      return tr("%1: %2").arg(field_title(key), row.own_error);
  return {};
}

void LaunchForm::set_whole_problem(const QString& key, const QString& said) {
  const QString before = whole_key_;
  whole_key_ = rows_.count(key) ? key : QString();
  whole_problem_ = said;
  for (const QString& touched : {before, whole_key_})
    if (const auto at = rows_.find(touched); at != rows_.end()) show(at->second);
  count();
}

int LaunchForm::section_of(const QString& key) const {
  const auto at = rows_.find(key);
  return at == rows_.end() ? 0 : at->second.section;
}

void LaunchForm::reveal(const QString& key) {
  const auto at = rows_.find(key);
  if (at == rows_.end()) return;
  setCurrentIndex(at->second.section);
  at->second.control->setFocus();
  static_cast<QScrollArea*>(currentWidget())->ensureWidgetVisible(at->second.control);
}

QWidget* LaunchForm::control(const QString& key) const { return rows_.at(key).control; }
QString LaunchForm::error_of(const QString& key) const { return rows_.at(key).error->full_text(); }
QString LaunchForm::hint_of(const QString& key) const { return rows_.at(key).hint->full_text(); }

void LaunchForm::type(const QString& key, const QString& value) {
  QWidget* control = rows_.at(key).control;
  if (auto* box = qobject_cast<QCheckBox*>(control)) return box->setChecked(value == QLatin1String("true"));
  if (auto* box = qobject_cast<QComboBox*>(control)) {
    box->setCurrentText(value);
    return take(rows_.at(key), value);
  }
  static_cast<QLineEdit*>(control)->setText(value);
}

}  // namespace stacklab::ui

#include <moc_launch_form.cpp>
