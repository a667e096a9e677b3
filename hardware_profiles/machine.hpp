// A machine: a hardware profile at a size. Every number knows where it comes from.
//
// A profile is a JSON file (hardware_profiles/profiles/NAME.json, built into the library; a path to
// a user's own file works the same). It describes one device and one of two networks:
//
//   cluster  nodes of `devices_per_node` devices behind switches (NVLink), every device with a NIC
//            of its own on its own rail (rail-optimized InfiniBand): a device sends to any device
//            of its node at scale_up bandwidth, to its counterpart of any other node at its NIC's
//   torus    devices in a 2-D or 3-D grid with links in both directions of every dimension, closed
//            to a ring (wraparound) where the slice's shape allows it
//
// For what-ifs a network can be written in place of a profile's name, with a profile's device or
// with none (network/network_text.hpp): "ring(bandwidth=50GiB/s,latency=500ns,device=h100)".
//
//   Machine m = make_machine(load_profile("dgx-h100", place), 16, std::nullopt);   // two nodes
//   Machine t = make_machine(load_profile("tpu-v5p", place), 64, std::nullopt);    // 4x4x4
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/units.hpp"
#include "hardware_profiles/network/network_text.hpp"

namespace shardsim {

// Where a number comes from. `kind`: vendor, code, measured, derived, estimate.
struct Source {
  std::string kind;
  std::string reference;  // document, file, table
  std::string date;       // of the source or of its reading, YYYY-MM or YYYY-MM-DD
  std::string note;
};

template <class T>
struct Sourced {
  T value{};
  Source source;
};

struct DeviceProfile {
  std::string name;                         // "H100 SXM5 80 GB"
  Sourced<Bytes> memory_capacity;           // what a program can use
  Sourced<Bandwidth> memory_bandwidth;      // peak
  std::map<DType, Sourced<FlopRate>> peak;  // dense, by dtype of the operands
  // Achieved over peak, measured: for KernelClass matmul, attention and memory.
  Sourced<double> matmul_efficiency;
  Sourced<double> attention_efficiency;
  Sourced<double> memory_efficiency;
  Sourced<Seconds> kernel_launch;  // from the end of one kernel to the start of the next
};

// One level of links as a collective sees it.
struct LinkProfile {
  Sourced<Bandwidth> bandwidth;  // one device, one direction
  Sourced<double> efficiency;    // achieved by large ring collectives over `bandwidth`
  Sourced<Seconds> latency;      // of one ring step
};

struct ClusterProfile {
  Sourced<std::int64_t> devices_per_node;
  LinkProfile scale_up;   // within a node
  LinkProfile scale_out;  // one NIC per device
};

// The shapes that can be had: those listed, and, where `multiple` is set, every shape with all
// sizes multiples of it, in ascending order, none beyond `largest`. Example, tpu-v5p:
//   listed 2x2x1 2x2x2 2x2x4 2x4x4, multiple 4, largest 16x20x28: also 4x4x4, 4x4x8, ... 16x20x28
struct SliceRule {
  std::vector<std::vector<std::int64_t>> listed;
  std::int64_t multiple = 0;          // 0: only what is listed
  std::vector<std::int64_t> largest;  // empty unless `multiple` is set
};

enum class WrapRule : std::uint8_t {
  axis_of_16,      // v5e, v6e: a dimension wraps iff its length is 16
  axis_of_32,      // v3: iff its length is 32
  multiples_of_4,  // v4, v5p: all wrap iff every dimension is a multiple of 4, else none
};

// A chip that programs see as several devices. They share the links of the chip; one more link is
// between them.
struct ChipProfile {
  Sourced<std::int64_t> devices;
  LinkProfile link;  // of one device to the other, one direction
};

struct TorusProfile {
  int dimensions = 2;
  LinkProfile link;                 // one link of a chip, one direction
  std::optional<ChipProfile> chip;  // where a chip is not one device
  Sourced<SliceRule> slices;
  Sourced<WrapRule> wraparound;
};

struct Profile {
  std::string name;   // "dgx-h100"
  std::string title;  // "NVIDIA DGX H100, 8 x H100 SXM5 80 GB, rail-optimized NDR InfiniBand"
  std::string path;   // the file it was read from; "built in" for shipped ones
  DeviceProfile device;
  Sourced<Seconds> collective_launch;  // fixed cost of one collective call
  std::variant<ClusterProfile, TorusProfile, NetworkDescription> network;
};

// A slice of a torus.
//
// Twisted: the sizes are k k 2k or k 2k 2k, in any order, and the link that closes a dimension of k
// leads k further in every dimension of 2k. Example, 4x4x8: up from (3, 0, 0) comes (0, 0, 4). All
// to all is nearer: 3.4 hops on average and the same for all links, where the plain torus has 4
// with half of them along z.
struct TorusShape {
  std::vector<std::int64_t> sizes;  // chips: x, y(, z)
  std::vector<bool> wraps;
  std::int64_t devices_per_chip = 1;
  bool twisted = false;

  [[nodiscard]] std::string text() const;  // "4x4x8", "4x4x8_twisted"
  // Its closing link leads on in other dimensions.
  [[nodiscard]] bool twists(std::size_t dimension) const;

  // The sizes, and behind them, where there are several, the devices of a chip: for mesh axes they
  // are one more dimension, the fastest.
  [[nodiscard]] std::vector<std::int64_t> device_sizes() const;
};

struct Machine {
  Profile profile;
  std::int64_t devices = 1;
  std::int64_t nodes = 1;           // cluster: ceil(devices / devices_per_node)
  std::optional<TorusShape> torus;  // set iff the network is a torus
};

[[nodiscard]] std::vector<std::string> shipped_profiles();  // sorted names
// `name` is a shipped profile, a path ending in .json, or a network written in place, whose device
// is empty where it names none. Throws InputError with a suggestion.
[[nodiscard]] Profile load_profile(const std::string& name, const Place& place);

// Devices fill the nodes of a cluster, except that one node may be used in part: 1 to 8 devices, or
// 16, 24, ... with 8 per node. On a torus, `topology` ("4x4x4") says which slice; without it, it is
// the most cubic one of exactly that many devices: shortest longest side first, then longest
// shortest side (256 devices of tpu-v5p are 4x8x8, not 4x4x16). Shapes count chips. Behind
// the shape may stand what its closing links are like, other than the profile's rule has it:
//   4x4x8_open     none: a mesh
//   4x4x8_closed   all dimensions close, or it is an error
//   4x4x8_twisted  as in TorusShape
// Throws
// InputError for a device count or shape that the machine cannot have, naming legal ones near it.
[[nodiscard]] Machine make_machine(const Profile& profile, std::int64_t devices,
                                   const std::optional<std::string>& topology, const Place& place);

// How one axis of a mesh lies on a torus: the physical dimensions (with how much of each) that it
// walks through, major to minor; the devices of a chip are a dimension behind the others. An axis
// of size 1 walks through none.
struct TorusSpan {
  int dimension = 0;
  std::int64_t size = 1;    // extent along the dimension, at least 2
  std::int64_t stride = 1;  // distance between neighbours of the axis along the dimension
  friend bool operator==(const TorusSpan&, const TorusSpan&) = default;
};
// Where jax's mesh_utils.create_device_mesh puts the axes of a mesh (mesh_assignment.hpp has the
// rules). `logical` are mesh axis sizes, the last most intensive. Result: for every logical axis
// its spans. Throws InputError when the sizes do not multiply to the devices of the torus.
//
// Example: 4x4x8 with data=8, fsdp=4, tensor=4: tensor along x, fsdp along y, data along z.
[[nodiscard]] std::vector<std::vector<TorusSpan>> assign_mesh(
    const TorusShape& torus, const std::vector<std::int64_t>& logical, const Place& place);

}  // namespace shardsim
