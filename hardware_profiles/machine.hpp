// A machine: a hardware profile at a size. Every number knows where it comes from.
//
// A profile is a JSON file (hardware_profiles/profiles/NAME.json, built into the library; a path to
// a user's own file works the same). It describes one device and one of three networks:
//
//   cluster  nodes of `devices_per_node` devices on a fabric of their own (NVSwitch, direct links,
//            PCIe) and, between nodes, `nics_per_node` NICs on as many rails: a device sends into
//            its node at scale_up bandwidth, to its counterpart of another node through its NICs
//   torus    devices in a 2-D or 3-D grid with links in both directions of every dimension, closed
//            to a ring (wraparound) where the slice's shape allows it
//   graph    devices and switches by name and what joins them, as a user gives them
//            (network/given_graph.hpp); collectives are simulated link by link
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
#include "hardware_profiles/calibration.hpp"
#include "hardware_profiles/kernel_data.hpp"
#include "hardware_profiles/network/network_text.hpp"
#include "hardware_profiles/sourced.hpp"

namespace shardsim {

// What kernels of one class reach of the peak of their operands' type, by shape: products of [m, k]
// x [k, n], however many, and attention of m queries over n keys with k numbers in each.
//
//   time = overhead + operations / (peak * efficiency) * (1 + depth / k + side / m + side / n)
//
// `depth` stands for what is done once for each number of the result (it is written; a softmax
// takes its exponential), `side` for what is done once for each number of the operands: products as
// deep, or as wide, as these reach half of the efficiency. What measurements did not tell is left
// out.
//
// Example: efficiency 0.8, depth 100, side 50: 4096 x 4096 x 4096 reaches 0.8 / 1.049 = 0.76 of the
// peak, 4096 x 4096 x 128 has 0.44 and 64 x 4096 x 4096 has 0.44.
struct EfficiencySurface {
  Sourced<double> efficiency;
  std::optional<Sourced<double>> depth = {};
  std::optional<Sourced<double>> side = {};
  std::optional<Sourced<Seconds>> overhead = {};  // of a kernel, beyond its launch
};
using EfficiencySurfaces = std::map<DType, EfficiencySurface>;

// One level of links as a collective sees it.
struct LinkProfile {
  Sourced<Bandwidth> bandwidth;  // one direction of a device, a NIC, a torus link
  Sourced<double> efficiency;    // achieved by large ring collectives over `bandwidth`
  Sourced<Seconds> latency;      // of one ring step
};

// From a device to the memory of its host: PCIe, NVLink-C2C. The efficiency is that of a large copy
// of memory that is pinned, the latency that of a small one.
struct HostLinkProfile : LinkProfile {  // bandwidth: one direction
  // Neighbours that share it, as GPUs behind one PCIe switch do; none: each device has its own.
  std::optional<Sourced<std::int64_t>> devices = {};
  // Whether copies there and back leave each other their bandwidth; none: they do.
  std::optional<Sourced<bool>> full_duplex = {};
};

// Of a host: all its memory controllers, which its devices share, and what work that streams
// through memory reaches of them.
struct HostMemoryProfile {
  Sourced<Bandwidth> bandwidth;
  Sourced<double> efficiency;
  std::optional<Sourced<Bytes>> capacity = {};  // of a host; none: not known
};

// What a device draws: `idle`; an energy of every operation, at the clock that it sustains at
// `limit` with products alone; and a power while memory bounds it, which is about the same for
// copies, norms and softmax, near the bandwidth or far from it (sim/step/sustained_clock.hpp).
struct PowerProfile {
  Sourced<Power> limit;
  Sourced<Power> idle;                        // awake, with nothing to do
  std::map<DType, Sourced<Energy>> per_flop;  // by dtype of the operands
  Sourced<Power> moving;                      // above idle, while memory bounds a kernel
  // Standard deviation of the clock that devices of one model sustain at one limit, of the clock:
  // a step waits for the slowest of its devices. None: not known, and as if all were alike.
  std::optional<Sourced<double>> spread = {};
};

struct DeviceProfile {
  std::string name;                         // "H100 SXM5 80 GB"
  Sourced<Bytes> memory_capacity;           // what a program can use
  Sourced<Bandwidth> memory_bandwidth;      // peak
  std::map<DType, Sourced<FlopRate>> peak;  // dense, by dtype of the operands
  // Achieved over peak, measured: for KernelClass matmul, attention in both directions, and memory.
  Sourced<double> matmul_efficiency;
  Sourced<double> attention_efficiency;
  Sourced<double> memory_efficiency;
  // In their place where there is one for the type and the kernel's shape is known.
  EfficiencySurfaces matmul_surfaces = {};
  EfficiencySurfaces attention_surfaces = {};
  EfficiencySurfaces attention_backward_surfaces = {};
  Sourced<Seconds> kernel_launch;  // from the end of one kernel to the start of the next
  // What the host takes to issue a task, by who does it ("eager"): Plan::issued_by.
  std::map<std::string, Sourced<Seconds>> host_launch = {};
  // Of device memory that a stack's libraries take as room to work in (cuBLAS), by the same names.
  std::map<std::string, Sourced<Bytes>> workspaces = {};
  // Multiprocessors of a GPU (compute units), of which collectives take some; none: not known, or
  // collectives take none.
  std::optional<Sourced<std::int64_t>> sms;
  // How many of them a product goes without for a thread block of a copying collective; none: 1.
  std::optional<Sourced<double>> sms_per_block = {};
  // Rows and columns of a TPU's multipliers (MXU): an operand of [k, n] is laid out on them in
  // squares, of which parts stay idle where k or n are no multiples; none: nothing is lost so.
  std::optional<Sourced<std::int64_t>> matrix_unit = {};
  std::optional<HostLinkProfile> host_link = {};      // none: not known
  std::optional<HostMemoryProfile> host_memory = {};  // none: the same
  std::optional<KernelData> kernels = {};             // none: the efficiencies alone
  std::optional<PowerProfile> power = {};             // none: the clock is that of the efficiencies
  std::optional<Sourced<Power>> power_limit = {};     // none: that of `power`
};

// How the devices of a node are joined.
enum class Fabric : std::uint8_t {
  nvswitch,   // NVLink to switches: any device at full bandwidth to any other
  nvlink,     // NVLink from every device to every other
  cube_mesh,  // NVLink as in DGX-1, two squares with their diagonals joined: cube_mesh_links
  xgmi,       // Infinity Fabric from every device to every other
  pcie,       // over PCIe switches or the host
};

// How many of its six NVLinks lead from a V100 of a DGX-1 to each of the others: nvidia-smi topo -m
// (gist.github.com/ashwin/e139748bdba15f5af63f0146d01ee4c3).
inline constexpr std::array<std::array<int, 8>, 8> cube_mesh_links = {{{0, 1, 1, 2, 2, 0, 0, 0},
                                                                       {1, 0, 2, 1, 0, 2, 0, 0},
                                                                       {1, 2, 0, 2, 0, 0, 1, 0},
                                                                       {2, 1, 2, 0, 0, 0, 0, 1},
                                                                       {2, 0, 0, 0, 0, 1, 1, 2},
                                                                       {0, 2, 0, 0, 1, 0, 2, 1},
                                                                       {0, 0, 1, 0, 1, 2, 0, 2},
                                                                       {0, 0, 0, 1, 2, 1, 2, 0}}};
inline constexpr int cube_mesh_links_of_a_device = 6;

// Not through switches: what two devices have is less than what one has.
[[nodiscard]] constexpr bool is_direct(Fabric fabric) {
  return fabric == Fabric::nvlink || fabric == Fabric::cube_mesh || fabric == Fabric::xgmi;
}

struct ScaleUpProfile : LinkProfile {  // bandwidth: all links of one device
  Sourced<Fabric> fabric;
};

// One tier of switches between nodes.
struct SwitchTier {
  Sourced<std::int64_t> nodes;       // that one switch, or one of each rail, serves
  Sourced<double> oversubscription;  // of the wires up: 2 is half as many as down
};

// Above the leaves may be spines, and above several of these one switch.
struct SwitchProfile {
  Sourced<bool> rails;  // the NICs of one number of all nodes have leaves of their own
  SwitchTier leaf;
  std::optional<SwitchTier> spine;
};

// Switches between nodes that add up what their ports bring and send the sum back to all
// (InfiniBand SHARP), and a library that lets them: NCCL's CollNet.
struct ReductionProfile {
  // Of an all-reduce's array, sent and received once by a NIC, over `bandwidth` of the NIC.
  Sourced<double> efficiency;
  // Whether the library hands switches these, too; none: it does not.
  std::optional<Sourced<bool>> all_gather;
  std::optional<Sourced<bool>> reduce_scatter;
};

// Fewer NICs than devices are shared by neighbours, more are dealt out evenly: one number divides
// the other.
struct ScaleOutProfile : LinkProfile {  // bandwidth: one NIC
  Sourced<std::int64_t> nics_per_node;
  std::optional<SwitchProfile> switches;           // none: not known (network/machine_graph.hpp)
  std::optional<ReductionProfile> reduction = {};  // none: switches do not reduce, or are not asked
};

enum class HostCpu : std::uint8_t { intel, amd, arm, power };

// What NCCL's detection of the topology sees of a node besides the above.
struct NcclProfile {
  Sourced<double> compute_capability;                  // 9.0 of an H100
  std::optional<Sourced<Bandwidth>> nvlink_bandwidth;  // one link, one direction, as sold
  Sourced<std::int64_t> pcie_generation;               // of the 16 lanes to a GPU
  Sourced<std::int64_t> gpus_per_pcie_switch;          // 1: none share one
  Sourced<HostCpu> cpu;
  std::optional<Sourced<Seconds>> network_latency;  // that the NIC's plugin reports; none: 0
  std::optional<Sourced<bool>> unpacks_on_gpu;      // what NICs receive (GPUDirect-TCPX); none: no
};

// Which of RCCL's tables of constants holds.
enum class AmdArchitecture : std::uint8_t { gfx942 };

// What RCCL's detection of the topology sees of a node of AMD's GPUs besides the above.
struct RcclProfile {
  Sourced<AmdArchitecture> architecture;
  Sourced<Bandwidth> link_bandwidth;      // that it counts for a link between two GPUs
  Sourced<std::int64_t> pcie_generation;  // of the 16 lanes to a GPU
  Sourced<HostCpu> cpu;
};

// A node is what scale_up joins: more than a host in a GB200 NVL72 rack, a node of 72 and 18 hosts
// of 4; less where NVLink bridges join groups of 4 of a host's 8, and scale_out is the host's PCIe.
struct ClusterProfile {
  Sourced<std::int64_t> devices_per_node;
  std::optional<Sourced<std::int64_t>> devices_per_host;  // divides or is divided; none: as many
  ScaleUpProfile scale_up;                                // within a node
  std::optional<ScaleOutProfile> scale_out;               // none: there is one node only
  std::optional<NcclProfile> nccl;                        // none: not known, or NCCL does not run
  std::optional<RcclProfile> rccl;                        // none: the same of RCCL
};

[[nodiscard]] std::int64_t devices_per_host(const ClusterProfile& cluster);

// What a device can send to the other members of a group of which `members` are on its node: all it
// has through switches or PCIe, over direct links (members - 1) / (devices_per_node - 1) of it.
// (In a cube mesh on average: some pairs have two links and some none.)
//
// Example, 8 x MI300X, 7 links of 64 GB/s: 448 GB/s among eight, 64 GB/s between two.
[[nodiscard]] Bandwidth bandwidth_inside(const ClusterProfile& cluster, std::int64_t members);

// The ways out of a node: a NIC each, or all NICs of a device where it has several.
//
// Example: 4 x 25 GB/s for 8 devices are 4 ways of 25 GB/s, each of two neighbours; 32 x 12.5 GB/s
// for 8 devices are 8 ways of 50 GB/s.
struct WaysOut {
  std::int64_t per_node = 1;  // at most devices_per_node
  Bandwidth bandwidth{0};     // of each
};
[[nodiscard]] WaysOut ways_out(const ClusterProfile& cluster);  // requires scale_out
// The number of the way of a device, counted through all nodes.
[[nodiscard]] std::int64_t way_of(std::int64_t device, const ClusterProfile& cluster);

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
  // Of a chip through its host to the data centre's network; none: slices stay apart.
  std::optional<LinkProfile> dcn;
  Sourced<SliceRule> slices;
  Sourced<WrapRule> wraparound;
  // Kinds of collectives, "all-gather", that XLA runs in turn with what is computed; the others run
  // beside it; none: all do.
  std::optional<Sourced<std::vector<std::string>>> synchronous = {};
};

struct Profile {
  std::string name;   // "dgx-h100"
  std::string title;  // "NVIDIA DGX H100, 8 x H100 SXM5 80 GB, rail-optimized NDR InfiniBand"
  std::string path;   // the file it was read from; "built in" for shipped ones
  DeviceProfile device;
  Sourced<Seconds> collective_launch;  // fixed cost of one collective call
  std::variant<ClusterProfile, TorusProfile, NetworkDescription> network;
  std::vector<Calibration> calibrations;  // of its class of machines; none: the model alone
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
  std::int64_t nodes = 1;           // cluster: ceil(devices / devices_per_node), NVLink domains
  std::optional<TorusShape> torus;  // set iff the network is a torus: one slice
  std::int64_t slices = 1;          // that have the devices, evenly

  // "4x4x8", "2 slices of 4x4x8". Of a torus.
  [[nodiscard]] std::string topology() const;
};

[[nodiscard]] std::vector<std::string> shipped_profiles();  // sorted names
// `name` is a shipped profile, a path ending in .json, or a network written in place, whose device
// is empty where it names none. Throws InputError with a suggestion.
[[nodiscard]] Profile load_profile(const std::string& name, const Place& place);

// Devices fill the nodes of a cluster, except that one node may be used in part: 1 to 8 devices, or
// 16, 24, ... with 8 per node. Domains of several hosts may be used in part, all alike and in whole
// hosts: 256 devices of gb200-nvl72 are four of 64. On a torus, `topology` ("4x4x4") says which
// slice; without it, it is the most cubic one of exactly that many devices: shortest longest side
// first, then longest shortest side (256 devices of tpu-v5p are 4x8x8, not 4x4x16). Shapes count
// chips. Behind the shape may stand what its closing links are like, other than the profile's rule
// has it:
//   4x4x8_open     none: a mesh
//   4x4x8_closed   all dimensions close, or it is an error
//   4x4x8_twisted  as in TorusShape
// Throws InputError for a device count or shape that the machine cannot have, naming legal ones
// near it, and for two nodes of a cluster or several slices whose profile has no network between
// them. Of several slices the topology is that of each.
[[nodiscard]] Machine make_machine(const Profile& profile, std::int64_t devices,
                                   const std::optional<std::string>& topology, const Place& place,
                                   std::int64_t slices = 1);

[[nodiscard]] std::int64_t devices_per_chip(const TorusProfile& torus);  // 1: a chip is a device
// The devices of the largest legal slice of at most `most`; 0 where all are larger.
[[nodiscard]] std::int64_t largest_slice(const TorusProfile& torus, std::int64_t most);

// Throws InputError when `devices` of a cluster need several nodes and nothing joins them.
void check_network_between_nodes(const Profile& profile, std::int64_t devices, const Place& place);

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
