#include "ui/models/snapshot.h"

#include <QJsonDocument>
#include <QJsonObject>

namespace stacklab::ui {

ConfigFacts config_facts(const std::string& config_json) {
  const QJsonObject root = QJsonDocument::fromJson(QByteArray::fromStdString(config_json)).object();
  const QJsonObject model = root["model"].toObject(), data = root["data"].toObject(), train = root["train"].toObject(),
                    run = root["run"].toObject();
  ConfigFacts facts;
  facts.corpus = data["corpus"].toString().toStdString();
  facts.tokenizer = data["tokenizer"].toString().toStdString();
  facts.device = run["device"].toString().toStdString();
  facts.precision = train["precision"].toString().toStdString();
  facts.vocab_size = model["vocab_size"].toInteger();
  facts.d_model = model["d_model"].toInteger();
  facts.n_layers = model["n_layers"].toInteger();
  facts.seq_len = train["seq_len"].toInteger();
  facts.batch_tokens = train["batch_tokens"].toInteger();
  facts.tokens = train["tokens"].toInteger();
  const QJsonObject optim = root["optim"].toObject();
  facts.n_heads = model["n_heads"].toInteger();
  facts.nope_every = model["nope_every"].toInteger();
  facts.qk_clip = optim["qk_clip"].toDouble();
  facts.grad_clip = optim["grad_clip"].toDouble();
  return facts;
}

bool is_notice(const RunEvent& event) {
  return !event.is_alert() && event.kind != RunEvent::Kind::info && event.kind != RunEvent::Kind::checkpoint;
}

}  // namespace stacklab::ui
