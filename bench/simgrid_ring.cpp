// The ring all-reduce of flow_bench.cpp in SimGrid: an actor for every device, a message to the
// next one in every step. Its network model is told to share links as we do: no factors on
// bandwidth and latency, no windows, no cross traffic.
//
//   simgrid_ring DEVICES      prints simulated and wall time
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace {

namespace sg4 = simgrid::s4u;

constexpr double payload = 1024.0 * 1024 * 1024;
constexpr double bandwidth = 50 * payload;  // 50 GiB/s
constexpr double latency = 500e-9;

class Device {
 public:
  Device(std::size_t rank, std::size_t devices)
      : own_(sg4::Mailbox::by_name(std::to_string(rank))),
        next_(sg4::Mailbox::by_name(std::to_string((rank + 1) % devices))),
        devices_(devices) {}

  void operator()() {
    const auto bytes = static_cast<std::uint64_t>(payload / static_cast<double>(devices_));
    for (std::size_t step = 0; step < 2 * (devices_ - 1); ++step) {
      const sg4::CommPtr sent = next_->put_async(this, bytes);
      own_->get<Device>();
      sent->wait();
    }
  }

 private:
  sg4::Mailbox* own_;
  sg4::Mailbox* next_;
  std::size_t devices_;
};

std::vector<sg4::Host*> build_ring(std::size_t devices) {
  auto* zone = sg4::create_full_zone("ring");
  std::vector<sg4::Host*> hosts;
  for (std::size_t i = 0; i < devices; ++i) {
    hosts.push_back(zone->create_host(fmt::format("device-{}", i), 1.0)->seal());
  }
  for (std::size_t i = 0; i < devices; ++i) {
    const auto* link =
        zone->create_link(fmt::format("link-{}", i), bandwidth)->set_latency(latency)->seal();
    zone->add_route(hosts[i]->get_netpoint(), hosts[(i + 1) % devices]->get_netpoint(), nullptr,
                    nullptr, {sg4::LinkInRoute(link)}, /*symmetrical=*/false);
  }
  zone->seal();
  return hosts;
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: simgrid_ring DEVICES\n";
    return EXIT_FAILURE;
  }
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("contexts/stack-size:16");
  const std::size_t devices = std::stoul(argv[1]);
  const std::vector<sg4::Host*> hosts = build_ring(devices);
  for (std::size_t i = 0; i < devices; ++i) {
    sg4::Actor::create(std::to_string(i), hosts[i], Device(i, devices));
  }
  const auto begin = std::chrono::steady_clock::now();
  engine.run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  std::cout << fmt::format("{} devices: simulated {:.3f} ns, took {:.3f} s\n", devices,
                           sg4::Engine::get_clock() * 1e9, wall.count());
  return EXIT_SUCCESS;
}
