// The yardstick of bench/ring.ts: folds a ring file as one would in C++ with the standard library's hash maps. Same events, same
// figures: TPS, contention with its top lists, edges and conflict waves, Space-Saving, lifecycle. Same checks: payloads have their
// fixed size, events belong to the open block, and what was announced came. It reads the file through a mapping, event by event as
// the format's authors do: copy the descriptor, look at its number again, copy the payload, look at the window.
// Prints one JSON line with the rate and sums to compare.
//
//   g++ -O2 -std=c++20 ring-fold.cpp -o ring-fold && ./ring-fold FILE ROUNDS

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <list>
#include <sys/mman.h>
#include <sys/stat.h>
#include <string_view>
#include <unistd.h>
#include <unordered_map>
#include <vector>

using Address = std::array<uint8_t, 20>;
using Id = std::array<uint8_t, 32>;
using SlotKey = std::array<uint8_t, 52>;

// The standard library has no hash for arrays, but one for bytes.
template <size_t N> struct BytesHash {
  size_t operator()(const std::array<uint8_t, N> &key) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char *>(key.data()), N});
  }
};

struct PairHash {
  size_t operator()(const std::pair<uint32_t, uint32_t> &pair) const {
    return (uint64_t(pair.first) << 32 | pair.second) * 0x9e3779b97f4a7c15ull;
  }
};

// Counters of equal count share a bucket; of equal minima the one that reached that count first is taken over.
template <typename Key, typename Hash> struct SpaceSaving {
  struct Bucket;
  struct Entry {
    Key key;
    typename std::list<Bucket>::iterator bucket;
  };
  struct Bucket {
    uint64_t count;
    std::list<Entry> entries;
  };
  static constexpr size_t COUNTERS = 1000;
  std::list<Bucket> buckets;
  std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> places;

  void add(const Key &key) {
    auto found = places.find(key);
    if (found != places.end()) return increment(found->second);
    if (places.size() < COUNTERS) {
      if (buckets.empty() || buckets.front().count != 1) buckets.push_front({1, {}});
      auto &entries = buckets.front().entries;
      entries.push_back({key, buckets.begin()});
      places.emplace(key, std::prev(entries.end()));
      return;
    }
    auto victim = buckets.front().entries.begin();
    places.erase(victim->key);
    victim->key = key;
    places.emplace(key, victim);
    increment(victim);
  }

  void increment(typename std::list<Entry>::iterator entry) {
    auto bucket = entry->bucket;
    auto next = std::next(bucket);
    if (next == buckets.end() || next->count != bucket->count + 1) next = buckets.insert(next, {bucket->count + 1, {}});
    next->entries.splice(next->entries.end(), bucket->entries, entry);
    entry->bucket = next;
    if (bucket->entries.empty()) buckets.erase(bucket);
  }

  void clear() {
    places.clear();
    buckets.clear();
  }

  uint64_t top(size_t length) const {
    uint64_t sum = 0;
    for (auto bucket = buckets.rbegin(); bucket != buckets.rend() && length > 0; ++bucket) {
      const size_t taken = std::min(length, bucket->entries.size());
      sum += taken * bucket->count;
      length -= taken;
    }
    return sum;
  }
};

struct Slot {
  uint32_t contract = 0, txns = 0, accesses = 0, lastTxn = 0, wave = 0;
  bool hasWriter = false;
};

struct Contract {
  Address address;
  uint32_t slots = 0, contended = 0, accesses = 0;
};

struct Sums {
  uint64_t events = 0, blocks = 0, unique = 0, contended = 0, withWriter = 0, txnTimeNs = 0, tps = 0, edges = 0, top = 0, depth = 0, accesses = 0;
};

struct Descriptor {
  uint64_t seqno;
  uint16_t type, padding;
  uint32_t payloadBytes;
  uint64_t timeNs, offset, blockSeqno, txn, account, unused;
};

// Bytes that the payload of each event type has at least.
constexpr uint16_t FIXED_BYTES[25] = {0,   16, 528, 4,  0,  0, 360, 56, 40, 8,   352, 28, 168,
                                      0,   4,  0,   0,  24, 32, 128, 0,  8,  152, 124, 16};

enum Counted { TXNS, ACCESS_LIST_ENTRIES, AUTH_LIST_ENTRIES, LOGS, CALL_FRAMES, ACCOUNTS, STORAGE, TRANSIENT, COUNTED };
enum Moment { PERF_ENTER, PERF_EXIT, HEADER_START, END, MOMENTS };

struct TxnTimes {
  uint8_t seen = 0;
  uint64_t ns[MOMENTS];
};

struct OpenBlock {
  bool isOpen = false;
  uint64_t seqno, txnCount, announced[COUNTED], came[COUNTED];
};

static uint32_t u32At(const uint8_t *payload) {
  uint32_t value;
  memcpy(&value, payload, 4);
  return value;
}

struct Fold {
  SpaceSaving<Address, BytesHash<20>> accounts;
  SpaceSaving<SlotKey, BytesHash<52>> storage;
  std::unordered_map<SlotKey, Slot, BytesHash<52>> slots;
  std::unordered_map<Address, uint32_t, BytesHash<20>> contractOf;
  std::unordered_map<Id, int, BytesHash<32>> stages;
  std::vector<Contract> contracts;
  std::vector<std::vector<uint32_t>> contractsOfTxn;
  std::vector<std::vector<std::pair<Slot *, bool>>> accessesOfTxn;
  std::vector<TxnTimes> times;
  OpenBlock open;
  uint64_t window[3] = {0, 0, 0};
  uint64_t ended = 0;
  Sums sums;

  void restart() {
    accounts.clear();
    storage.clear();
    stages.clear();
    window[0] = window[1] = window[2] = ended = 0;
    open.isOpen = false;
    sums = {};
  }

  bool isInBlock(const Descriptor &slot) {
    if (!open.isOpen) return false;
    if (slot.blockSeqno == open.seqno && slot.txn <= open.txnCount) return true;
    open.isOpen = false;
    return false;
  }

  void mark(const Descriptor &slot, Moment moment) {
    TxnTimes &its = times[slot.txn - 1];
    its.seen |= 1 << moment;
    its.ns[moment] = slot.timeNs;
  }

  void blockStart(const Descriptor &slot, const uint8_t *payload) {
    uint64_t count;
    memcpy(&count, payload + 448, 8);
    slots.clear();
    contractOf.clear();
    contracts.clear();
    contractsOfTxn.assign(count, {});
    accessesOfTxn.assign(count, {});
    times.assign(count, {});
    open = {true, slot.seqno, count, {}, {}};
    open.announced[TXNS] = count;
    stage(payload, 1);
  }

  void stage(const uint8_t *payload, int value) {
    Id id;
    memcpy(id.data(), payload, 32);
    stages[id] = value;
  }

  void accountAccess(const Descriptor &slot, const uint8_t *payload) {
    Address address;
    memcpy(address.data(), payload + 4, 20);
    accounts.add(address);
    if (!isInBlock(slot)) return;
    ++open.came[ACCOUNTS];
    open.announced[STORAGE] += u32At(payload + 144);
    open.announced[TRANSIENT] += u32At(payload + 148);
  }

  void storageAccess(const Descriptor &descriptor, const uint8_t *payload) {
    const uint64_t txn = descriptor.txn;
    SlotKey key;
    memcpy(key.data(), payload, 20);
    memcpy(key.data() + 20, payload + 27, 32);
    storage.add(key);
    if (!isInBlock(descriptor)) return;
    ++open.came[payload[26] ? TRANSIENT : STORAGE];
    if (payload[26]) return;
    auto [found, isNew] = slots.try_emplace(key);
    Slot &slot = found->second;
    if (isNew) {
      Address address;
      memcpy(address.data(), payload, 20);
      auto [contract, isNewContract] = contractOf.try_emplace(address, uint32_t(contracts.size()));
      if (isNewContract) contracts.push_back({address});
      slot.contract = contract->second;
    }
    ++slot.accesses;
    if (txn == 0) return;
    if (payload[25]) slot.hasWriter = true;
    accessesOfTxn[txn - 1].push_back({&slot, payload[25] != 0});
    if (slot.lastTxn == txn) return;
    slot.lastTxn = uint32_t(txn);
    ++slot.txns;
    auto &touched = contractsOfTxn[txn - 1];
    if (std::find(touched.begin(), touched.end(), slot.contract) == touched.end()) touched.push_back(slot.contract);
  }

  void blockEnd(const Descriptor &end) {
    if (!isInBlock(end)) return;
    open.isOpen = false;
    window[0] = window[1];
    window[1] = window[2];
    window[2] = open.came[TXNS];
    // There is no value before the window is whole.
    if (++ended >= 3) sums.tps += window[0] + window[1] + window[2] / 2;
    for (int what = 0; what < COUNTED; ++what)
      if (open.came[what] < open.announced[what]) return;
    ++sums.blocks;
    for (const TxnTimes &its : times) {
      if ((its.seen & 3) == 3) sums.txnTimeNs += its.ns[PERF_EXIT] > its.ns[PERF_ENTER] ? its.ns[PERF_EXIT] - its.ns[PERF_ENTER] : 0;
      else if ((its.seen & 12) == 12) sums.txnTimeNs += its.ns[END] > its.ns[HEADER_START] ? its.ns[END] - its.ns[HEADER_START] : 0;
    }
    std::vector<std::pair<const SlotKey *, const Slot *>> contended;
    for (const auto &[key, slot] : slots) {
      if (slot.txns == 0) continue;
      ++sums.unique;
      Contract &contract = contracts[slot.contract];
      ++contract.slots;
      contract.accesses += slot.accesses;
      if (slot.txns < 2) continue;
      ++sums.contended;
      ++contract.contended;
      if (slot.hasWriter) ++sums.withWriter;
      contended.push_back({&key, &slot});
    }
    const size_t topSlots = std::min<size_t>(20, contended.size());
    std::partial_sort(contended.begin(), contended.begin() + topSlots, contended.end(), [](const auto &a, const auto &b) {
      if (a.second->txns != b.second->txns) return a.second->txns > b.second->txns;
      if (a.second->accesses != b.second->accesses) return a.second->accesses > b.second->accesses;
      return *a.first < *b.first;
    });
    for (size_t at = 0; at < topSlots; ++at) sums.top += contended[at].second->txns;
    std::vector<Contract> ranked = contracts;
    const size_t topContracts = std::min<size_t>(15, ranked.size());
    std::partial_sort(ranked.begin(), ranked.begin() + topContracts, ranked.end(), [](const auto &a, const auto &b) {
      if (a.contended != b.contended) return a.contended > b.contended;
      const double scoreA = double(a.contended) / a.slots, scoreB = double(b.contended) / b.slots;
      return scoreA != scoreB ? scoreA > scoreB : a.address < b.address;
    });
    for (size_t at = 0; at < topContracts; ++at) sums.top += ranked[at].contended;
    edges();
    waves();
  }

  // A transaction belongs to the wave after the last one in which an earlier one wrote a slot that it touches.
  void waves() {
    uint32_t depth = 0;
    for (const auto &accesses : accessesOfTxn) {
      uint32_t wave = 1;
      for (const auto &[slot, isModified] : accesses) wave = std::max(wave, slot->wave + 1);
      for (const auto &[slot, isModified] : accesses)
        if (isModified) slot->wave = std::max(slot->wave, wave);
      depth = std::max(depth, wave);
    }
    sums.depth += depth;
  }

  void edges() {
    std::unordered_map<std::pair<uint32_t, uint32_t>, uint32_t, PairHash> shared;
    for (auto &touched : contractsOfTxn) {
      std::sort(touched.begin(), touched.end(), [&](uint32_t a, uint32_t b) { return contracts[a].address < contracts[b].address; });
      for (size_t a = 0; a < touched.size(); ++a)
        for (size_t b = a + 1; b < touched.size(); ++b) ++shared[{touched[a], touched[b]}];
    }
    std::vector<std::pair<std::pair<uint32_t, uint32_t>, uint32_t>> list(shared.begin(), shared.end());
    const size_t top = std::min<size_t>(15, list.size());
    std::partial_sort(list.begin(), list.begin() + top, list.end(), [&](const auto &x, const auto &y) {
      if (x.second != y.second) return x.second > y.second;
      const Address &xa = contracts[x.first.first].address, &ya = contracts[y.first.first].address;
      if (xa != ya) return xa < ya;
      return contracts[x.first.second].address < contracts[y.first.second].address;
    });
    for (size_t at = 0; at < top; ++at) sums.edges += list[at].second;
  }

  void event(const Descriptor &slot, const uint8_t *payload) {
    ++sums.events;
    if (slot.type == 0 || slot.type >= 25) return;
    if (slot.payloadBytes < FIXED_BYTES[slot.type]) {
      if (slot.blockSeqno == open.seqno) open.isOpen = false;
      return;
    }
    switch (slot.type) {
    case 2: return blockStart(slot, payload);
    case 6: return blockEnd(slot);
    case 7: return stage(payload, 2);
    case 8: return stage(payload, 3);
    case 22: return accountAccess(slot, payload);
    case 23: return storageAccess(slot, payload);
    default:
      if (isInBlock(slot)) insideBlock(slot, payload);
    }
  }

  void insideBlock(const Descriptor &slot, const uint8_t *payload) {
    switch (slot.type) {
    case 10:
      ++open.came[TXNS];
      open.announced[ACCESS_LIST_ENTRIES] += u32At(payload + 344);
      open.announced[AUTH_LIST_ENTRIES] += u32At(payload + 348);
      return mark(slot, HEADER_START);
    case 11: ++open.came[ACCESS_LIST_ENTRIES]; return;
    case 12: ++open.came[AUTH_LIST_ENTRIES]; return;
    case 15: return mark(slot, PERF_ENTER);
    case 16: return mark(slot, PERF_EXIT);
    case 17:
      open.announced[LOGS] += u32At(payload + 4);
      open.announced[CALL_FRAMES] += u32At(payload + 16);
      return;
    case 18: ++open.came[LOGS]; return;
    case 19: ++open.came[CALL_FRAMES]; return;
    case 20: return mark(slot, END);
    case 21: open.announced[ACCOUNTS] += u32At(payload); return;
    default: return;
    }
  }
};

static double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const int file = open(argv[1], O_RDONLY);
  struct stat facts;
  if (file < 0 || fstat(file, &facts) != 0) return 1;
  const auto *ring = static_cast<const uint8_t *>(mmap(nullptr, facts.st_size, PROT_READ, MAP_SHARED, file, 0));
  if (ring == MAP_FAILED) return 1;
  uint64_t capacity, payloadBytes, lastSeqno;
  memcpy(&capacity, ring + 40, 8);
  memcpy(&payloadBytes, ring + 48, 8);
  memcpy(&lastSeqno, ring + 64, 8);
  const auto *slots = reinterpret_cast<const Descriptor *>(ring + (1 << 21));
  const uint8_t *payloads = ring + (1 << 21) + capacity * 64;
  std::vector<double> rates;
  Sums sums;
  // One fold for all rounds, as in a service that runs for days; what a new ring resets is reset.
  Fold fold;
  for (int round = 0; round < atoi(argv[2]); ++round) {
    const double before = cpuSeconds();
    fold.restart();
    std::vector<uint8_t> payload(1 << 16);
    for (uint64_t seqno = 1; seqno <= lastSeqno; ++seqno) {
      const Descriptor *place = &slots[(seqno - 1) % capacity];
      if (__atomic_load_n(&place->seqno, __ATOMIC_ACQUIRE) != seqno) return 1;
      const Descriptor slot = *place;
      if (__atomic_load_n(&place->seqno, __ATOMIC_ACQUIRE) != seqno || slot.payloadBytes > payload.size()) return 1;
      memcpy(payload.data(), payloads + slot.offset % payloadBytes, slot.payloadBytes);
      if (slot.offset < __atomic_load_n(reinterpret_cast<const uint64_t *>(ring + 128), __ATOMIC_ACQUIRE)) return 1;
      fold.event(slot, payload.data());
    }
    fold.sums.accesses = fold.accounts.top(10) + fold.storage.top(10);
    rates.push_back(fold.sums.events / (cpuSeconds() - before));
    sums = fold.sums;
  }
  std::sort(rates.begin(), rates.end());
  printf("{\"eventsPerSecond\":%.0f,\"sums\":{\"events\":%lu,\"blocks\":%lu,\"unique\":%lu,\"contended\":%lu,\"withWriter\":%lu,"
         "\"txnTimeNs\":%lu,\"tps\":%lu,\"edges\":%lu,\"top\":%lu,\"depth\":%lu,\"accesses\":%lu}}\n",
         rates[rates.size() / 2], sums.events, sums.blocks, sums.unique, sums.contended, sums.withWriter, sums.txnTimeNs, sums.tps,
         sums.edges, sums.top, sums.depth, sums.accesses);
}
