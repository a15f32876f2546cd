// SPDX-License-Identifier: Apache-2.0
// The transports and devices of UCX on this machine, read through its lower interface (UCT): the upper one (UCP) only
// logs them.
#include "kernels/base/build_config.hpp"
#include "tools/doctor/facts.hpp"
#include "trainer/base/versions.hpp"

#if GPUPS_HAS_UCX
#include <fmt/format.h>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>
#endif

#include <cstdlib>
#include <string>
#include <vector>

namespace gpups::tools {
namespace {

std::string environment(char const* name) {
  char const* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

#if GPUPS_HAS_UCX

using Resource = trainer::TransportFacts::Resource;

Resource::Kind kind_of(uct_device_type_t type) {
  switch (type) {
    case UCT_DEVICE_TYPE_NET:
      return Resource::Kind::kNetwork;
    case UCT_DEVICE_TYPE_SHM:
      return Resource::Kind::kSharedMemory;
    case UCT_DEVICE_TYPE_ACC:
      return Resource::Kind::kDevice;
    default:
      return Resource::Kind::kSelf;
  }
}

void add_resources(uct_component_h component, char const* domain_name, std::vector<Resource>& all) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  uct_md_h domain = nullptr;
  ucs_status_t const opened = uct_md_open(component, domain_name, config, &domain);
  uct_config_release(config);
  if (opened != UCS_OK) return;  // cannot be used here
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(domain, &resources, &count) == UCS_OK) {
    for (unsigned i = 0; i < count; ++i) {
      all.push_back({resources[i].tl_name, resources[i].dev_name, kind_of(resources[i].dev_type)});
    }
    uct_release_tl_resource_list(resources);
  }
  uct_md_close(domain);
}

void add_resources(uct_component_h component, std::vector<Resource>& all) {
  uct_component_attr_t attributes{};
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  if (uct_component_query(component, &attributes) != UCS_OK || attributes.md_resource_count == 0) return;
  std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  attributes.md_resources = domains.data();
  if (uct_component_query(component, &attributes) != UCS_OK) return;
  for (uct_md_resource_desc_t const& domain : domains) add_resources(component, domain.md_name, all);
}

std::vector<Resource> read_resources() {
  std::vector<Resource> all;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (uct_query_components(&components, &count) != UCS_OK) return all;
  for (unsigned i = 0; i < count; ++i) add_resources(components[i], all);
  uct_release_component_list(components);
  return all;
}

#endif

}  // namespace

trainer::TransportFacts read_transports() {
  trainer::TransportFacts facts{.wanted_devices = environment("UCX_NET_DEVICES"),
                                .wanted_transports = environment("UCX_TLS")};
#if GPUPS_HAS_UCX
  facts.resources = read_resources();
#endif
  return facts;
}

trainer::ProgramFacts read_program() {
  auto const versions = trainer::versions();
  trainer::ProgramFacts facts{.version = versions.at("gpups"),
                              .host_arch = fmt::format("{} ({})", versions.at("host_arch").get<std::string>(),
                                                       versions.at("host_level").get<std::string>()),
                              .cuda_architectures = versions.at("cuda_architectures")};
#if GPUPS_HAS_UCX
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  facts.ucx_header = fmt::format("{}.{}", UCP_API_MAJOR, UCP_API_MINOR);
  facts.ucx_library = fmt::format("{}.{}", major, minor);
#endif
  facts.pmix = GPUPS_HAS_PMIX;
  facts.hwloc = GPUPS_HAS_HWLOC;
  return facts;
}

}  // namespace gpups::tools
