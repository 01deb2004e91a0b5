/// A link as a fluid: work of two classes waits and arrives at steady rates, and while both have
/// work the link divides itself between them as packets taking turns would:
///     share of a class = its packets' size / sum of both classes' packet sizes.
/// Work added now has left after min(own backlog / own share, backlog of both).
#pragma once
#include <moehub/units.hpp>

#include <cstddef>

namespace moehub::sim {

class FluidLink {
  public:
    /// Lets time pass. Must not go back.
    void advance(Ps now);
    /// Work in picoseconds of this link, and work per time that arrives from now on.
    void add(std::size_t kind, double work, double rate);
    /// Size of the packets that this class now has.
    void set_packet(std::size_t kind, double flits) { packet_[kind] = flits; }
    /// Picoseconds until the backlog of the class has left, if nothing more comes.
    double wait(std::size_t kind) const;
    /// Forgets rates; for when nothing arrives any more, so that no rounding is carried on.
    void still() { rate_[0] = rate_[1] = 0; }

  private:
    double share(std::size_t kind) const { return packet_[kind] / (packet_[0] + packet_[1]); }
    double step(double left);

    Ps last_ = 0;
    double backlog_[2] = {0, 0};
    double rate_[2] = {0, 0};
    double packet_[2] = {1, 1};
};

}  // namespace moehub::sim
