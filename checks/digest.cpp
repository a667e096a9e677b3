#include "checks/digest.hpp"

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "base/json.hpp"

namespace shardsim {

std::string text_digest(std::string_view text) {
  const boost::uuids::name_generator_sha1 named(boost::uuids::ns::oid());
  return boost::uuids::to_string(named(text.data(), text.size()));
}

std::string digest_of(const Json& document) {
  // nlohmann's other document type sorts its keys.
  const nlohmann::json sorted = document;
  return text_digest(sorted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace shardsim
